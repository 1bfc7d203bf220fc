//===- Main.cu - Runs instructions on a GPU and stores their results *- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// hardware_truth FOLDER [FAMILY...]: writes FOLDER/FAMILY.bin for every family
// (or the named ones). A family's file is written as soon as it has run, so a
// fault in a later one loses nothing. Exit code 0 only if all went well.

#include "Device.cuh"

struct Family {
  const char *name;
  std::vector<truth::Case> (*run)();
};

static const Family families[] = {
    {"arithmetic", runArithmetic},
    {"convert", runConvert},
    {"integer", runInteger},
    {"matrix", runMatrix},
    {"mma", runMma},
    {"wgmma", runWgmma},
    {"tensor", runTensor},
};

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s FOLDER [FAMILY...]\n", argv[0]);
    return 2;
  }
  cudaDeviceProp properties;
  CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
  int driver = 0;
  CHECK_CUDA(cudaDriverGetVersion(&driver));
  printf("device: %s, sm_%d%d, driver API %d\n", properties.name,
         properties.major, properties.minor, driver);
  if (properties.major != 9 || properties.minor != 0) {
    fprintf(stderr, "expected an sm_90 device\n");
    return 1;
  }
  for (int i = 2; i < argc; ++i) {
    bool known = false;
    for (const Family &f : families)
      known = known || strcmp(f.name, argv[i]) == 0;
    if (!known) {
      fprintf(stderr, "unknown family '%s'\n", argv[i]);
      return 2;
    }
  }
  for (const Family &f : families) {
    bool wanted = argc == 2;
    for (int i = 2; i < argc; ++i)
      wanted = wanted || strcmp(f.name, argv[i]) == 0;
    if (!wanted)
      continue;
    std::vector<truth::Case> cases = f.run();
    std::string path = std::string(argv[1]) + "/" + f.name + ".bin";
    if (!truth::writeFile(path, cases)) {
      fprintf(stderr, "cannot write %s\n", path.c_str());
      return 1;
    }
    // Read back: the file must parse to what was written.
    FILE *file = fopen(path.c_str(), "rb");
    std::vector<uint8_t> bytes;
    uint8_t block[65536];
    for (size_t got; file && (got = fread(block, 1, sizeof(block), file)) > 0;)
      bytes.insert(bytes.end(), block, block + got);
    if (file)
      fclose(file);
    std::vector<truth::Case> again;
    if (!truth::parseFile(bytes.data(), bytes.size(), again) ||
        again.size() != cases.size()) {
      fprintf(stderr, "%s does not read back\n", path.c_str());
      return 1;
    }
    size_t results = 0;
    for (const truth::Case &c : cases)
      results += c.count;
    printf("%-12s %4zu cases, %8zu results, %8zu bytes\n", f.name, cases.size(),
           results, bytes.size());
    fflush(stdout);
  }
  CHECK_CUDA(cudaDeviceReset());
  printf("done\n");
  return 0;
}
