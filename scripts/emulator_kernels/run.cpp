// Runs every kernel of kernels_sm80.ptx and kernels_sm90.ptx on the GPU and
// writes the first 1024 words of y, kernel by kernel, to outputs.bin. The two
// modules have to agree. Usage: run FOLDER
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#define CHECK(call)                                                            \
  do {                                                                         \
    CUresult r = call;                                                         \
    if (r != CUDA_SUCCESS) {                                                   \
      fprintf(stderr, "%s: error %d\n", #call, int(r));                        \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

// The same list as in unittests/Emulator/NvccTest.cpp.
struct Launch {
  const char *name;
  unsigned grid[2], block[2];
};
static const Launch launches[] = {
    {"scan", {4, 1}, {256, 1}},      {"histogram", {4, 1}, {128, 1}},
    {"transpose", {2, 2}, {32, 8}},  {"bits", {8, 1}, {128, 1}},
    {"floats", {8, 1}, {128, 1}},    {"halves", {8, 1}, {128, 1}},
    {"last_block", {8, 1}, {64, 1}}, {"tensor", {1, 1}, {32, 1}},
    {"barriers", {1, 1}, {128, 1}},  {"dsmem", {4, 1}, {128, 1}},
};

int main(int argc, char **argv) {
  std::string folder = argc > 1 ? argv[1] : ".";
  CHECK(cuInit(0));
  CUdevice device;
  CUcontext context;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  std::vector<uint32_t> x(4096), y(4096);
  uint32_t state = 12345;
  for (uint32_t &v : x)
    v = state = state * 1664525u + 1013904223u;
  std::map<std::string, std::vector<uint32_t>> outputs;
  for (std::string sm : {"sm80", "sm90"}) {
    std::ifstream file(folder + "/kernels_" + sm + ".ptx");
    std::stringstream text;
    text << file.rdbuf();
    CUmodule module;
    CHECK(cuModuleLoadData(&module, text.str().c_str()));
    for (const Launch &l : launches) {
      CUfunction f;
      if (cuModuleGetFunction(&f, module, l.name) != CUDA_SUCCESS)
        continue;
      CUdeviceptr px, py;
      CHECK(cuMemAlloc(&px, 4 * x.size()));
      CHECK(cuMemAlloc(&py, 4 * y.size()));
      CHECK(cuMemcpyHtoD(px, x.data(), 4 * x.size()));
      CHECK(cuMemsetD32(py, 0, y.size()));
      int n = 1000;
      void *args[] = {&px, &py, &n};
      CHECK(cuLaunchKernel(f, l.grid[0], l.grid[1], 1, l.block[0], l.block[1],
                           1, 0, 0, args, 0));
      CHECK(cuCtxSynchronize());
      CHECK(cuMemcpyDtoH(y.data(), py, 4 * y.size()));
      y.resize(1024);
      if (outputs.count(l.name) && outputs[l.name] != y) {
        fprintf(stderr, "%s: the modules disagree\n", l.name);
        return 1;
      }
      outputs[l.name] = y;
      y.resize(4096);
      printf("%s %s\n", l.name, sm.c_str());
    }
  }
  std::ofstream out(folder + "/outputs.bin", std::ios::binary);
  for (const Launch &l : launches)
    out.write(reinterpret_cast<char *>(outputs[l.name].data()), 4096);
}
