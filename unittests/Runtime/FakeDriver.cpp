//===- FakeDriver.cpp - A CUDA driver without a GPU -----------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"
#include "Humming/Runtime/JitLink.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cstring>

using namespace llvm;

namespace humming {

static FakeDriver *fake = nullptr;

static const char *nameOf(cu::Result code) {
  switch (code) {
  case cu::kInvalidValue:
    return "CUDA_ERROR_INVALID_VALUE";
  case cu::kOutOfMemory:
    return "CUDA_ERROR_OUT_OF_MEMORY";
  case cu::kNoDevice:
    return "CUDA_ERROR_NO_DEVICE";
  case cu::kInvalidImage:
    return "CUDA_ERROR_INVALID_IMAGE";
  case cu::kInvalidContext:
    return "CUDA_ERROR_INVALID_CONTEXT";
  case cu::kUnsupportedPtxVersion:
    return "CUDA_ERROR_UNSUPPORTED_PTX_VERSION";
  default:
    return nullptr;
  }
}

cu::Result FakeDriver::enter(const char *name) {
  std::lock_guard<std::mutex> lock(mutex);
  calls.push_back(name);
  auto it = faults.find(name);
  if (it == faults.end() || it->second.times == 0)
    return cu::kSuccess;
  if (it->second.times > 0)
    --it->second.times;
  return it->second.code;
}

int FakeDriver::count(StringRef name) const {
  return int(std::count(calls.begin(), calls.end(), name.str()));
}

void FakeDriver::clear() {
  calls.clear();
  images.clear();
  launches.clear();
}

static void recordLaunch(LaunchDescription::Grid grid, unsigned block,
                         unsigned sharedBytes, cu::Stream stream,
                         void **parameters) {
  FakeDriver::Launch launch;
  launch.grid = grid;
  launch.block = block;
  launch.sharedBytes = sharedBytes;
  launch.stream = stream;
  void **next = parameters;
  for (int i = 0; i < fake->numPointers; ++i)
    launch.pointers.push_back(*static_cast<uint64_t *>(*next++));
  for (int i = 0; i < fake->numNumbers; ++i)
    launch.numbers.push_back(*static_cast<int32_t *>(*next++));
  for (int i = 0; i < fake->numScalePointers; ++i)
    launch.scalePointers.push_back(*static_cast<uint64_t *>(*next++));
  next = parameters + 16;
  for (int i = 0; i < fake->numMaps; ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*next) % 64, 0u);
    launch.maps.push_back(*static_cast<int *>(*next++));
  }
  std::lock_guard<std::mutex> lock(fake->mutex);
  launch.captured = fake->capturing;
  fake->launches.push_back(std::move(launch));
}

static cu::Result loadImage(cu::Module *module, const void *image,
                            unsigned numOptions, int *options, void **values) {
  StringRef bytes(static_cast<const char *>(image), 4);
  cu::Result code = fake->enter("moduleLoadDataEx");
  if (bytes == "\x7f"
               "ELF") {
    std::lock_guard<std::mutex> lock(fake->mutex);
    fake->images.push_back("cubin");
  } else {
    StringRef text(static_cast<const char *>(image));
    Expected<PtxHeader> header = parsePtxHeader(text);
    if (!header) {
      consumeError(header.takeError());
      code = cu::kInvalidImage;
    } else if (header->version > maxPtxVersion(fake->version)) {
      code = cu::kUnsupportedPtxVersion;
    }
    std::lock_guard<std::mutex> lock(fake->mutex);
    fake->images.push_back(text.str());
  }
  if (code != cu::kSuccess) {
    for (unsigned i = 0; i < numOptions; ++i)
      if (options[i] == 5) // CU_JIT_ERROR_LOG_BUFFER
        std::strcpy(static_cast<char *>(values[i]), fake->errorLog.c_str());
    return code;
  }
  *module = reinterpret_cast<cu::Module>(uintptr_t(0x30));
  return code;
}

FakeDriver::FakeDriver() {
  fake = this;
  attributes = {{cu::kMaxThreadsPerBlock, 1024},
                {cu::kMaxGridX, 2147483647},
                {cu::kMaxGridY, 65535},
                {cu::kMaxGridZ, 65535},
                {cu::kMultiprocessorCount, 132},
                {cu::kMemoryClockKHz, 2619000},
                {cu::kMemoryBusWidthBits, 5120},
                {cu::kL2CacheBytes, 50 << 20},
                {cu::kComputeMajor, 9},
                {cu::kComputeMinor, 0},
                {cu::kMaxSharedPerBlockOptin, 232448}};

  table.init = [](unsigned) { return fake->enter("init"); };
  table.driverGetVersion = [](int *out) {
    *out = fake->version;
    return fake->enter("driverGetVersion");
  };
  table.getErrorName = [](cu::Result code, const char **out) -> cu::Result {
    *out = nameOf(code);
    return *out ? cu::kSuccess : cu::kInvalidValue;
  };
  table.getErrorString = [](cu::Result code, const char **out) -> cu::Result {
    *out = nameOf(code) ? "the driver's text" : nullptr;
    return *out ? cu::kSuccess : cu::kInvalidValue;
  };
  table.deviceGetCount = [](int *out) {
    *out = fake->devices;
    return fake->enter("deviceGetCount");
  };
  table.deviceGet = [](cu::Device *out, int ordinal) {
    *out = ordinal;
    return fake->enter("deviceGet");
  };
  table.deviceGetName = [](char *out, int size, cu::Device) {
    std::snprintf(out, size_t(size), "Fake GPU");
    return fake->enter("deviceGetName");
  };
  table.deviceGetAttribute = [](int *out, int attribute, cu::Device) {
    cu::Result code = fake->enter("deviceGetAttribute");
    auto it = fake->attributes.find(attribute);
    if (it == fake->attributes.end())
      return cu::Result(cu::kNotSupported);
    *out = it->second;
    return code;
  };
  table.primaryContextRetain = [](cu::Context *out, cu::Device) {
    *out = reinterpret_cast<cu::Context>(uintptr_t(0x20));
    return fake->enter("primaryContextRetain");
  };
  table.primaryContextRelease = [](cu::Device) {
    return fake->enter("primaryContextRelease");
  };
  table.contextSetCurrent = [](cu::Context) {
    return fake->enter("contextSetCurrent");
  };
  table.contextGetCurrent = [](cu::Context *out) {
    *out = nullptr;
    return fake->enter("contextGetCurrent");
  };
  table.contextSynchronize = [] { return fake->enter("contextSynchronize"); };
  table.moduleLoadDataEx = loadImage;
  table.moduleUnload = [](cu::Module) { return fake->enter("moduleUnload"); };
  table.moduleGetFunction = [](cu::Function *out, cu::Module, const char *) {
    *out = reinterpret_cast<cu::Function>(uintptr_t(0x40));
    return fake->enter("moduleGetFunction");
  };
  table.functionGetAttribute = [](int *out, int attribute, cu::Function) {
    *out = attribute == cu::kFunctionRegisters    ? fake->registers
           : attribute == cu::kFunctionLocalBytes ? fake->localBytes
                                                  : fake->staticShared;
    return fake->enter("functionGetAttribute");
  };
  table.functionSetAttribute = [](cu::Function, int attribute, int value) {
    if (attribute == cu::kFunctionMaxDynamicShared)
      fake->maxDynamicShared = value;
    return fake->enter("functionSetAttribute");
  };
  table.linkCreate = [](unsigned, int *, void **, cu::LinkState *out) {
    *out = reinterpret_cast<cu::LinkState>(uintptr_t(0x50));
    return fake->enter("linkCreate");
  };
  table.linkAddData = [](cu::LinkState, int, void *, size_t, const char *,
                         unsigned, int *,
                         void **) { return fake->enter("linkAddData"); };
  table.linkComplete = [](cu::LinkState, void **out, size_t *size) {
    static std::string cubin;
    cubin = makeCubin(unsigned(fake->attributes[cu::kComputeMajor] * 10 +
                               fake->attributes[cu::kComputeMinor]));
    *out = cubin.data();
    *size = cubin.size();
    return fake->enter("linkComplete");
  };
  table.linkDestroy = [](cu::LinkState) { return fake->enter("linkDestroy"); };
  table.launchKernel = [](cu::Function, unsigned x, unsigned y, unsigned z,
                          unsigned block, unsigned, unsigned, unsigned shared,
                          cu::Stream stream, void **parameters, void **) {
    cu::Result code = fake->enter("launchKernel");
    if (code == cu::kSuccess)
      recordLaunch({x, y, z}, block, shared, stream, parameters);
    return code;
  };
  table.launchKernelEx = [](const cu::LaunchConfig *config, cu::Function,
                            void **parameters, void **) {
    cu::Result code = fake->enter("launchKernelEx");
    if (code == cu::kSuccess)
      recordLaunch({config->gridX, config->gridY, config->gridZ},
                   config->blockX, config->sharedBytes, config->stream,
                   parameters);
    return code;
  };
  table.tensorMapEncodeTiled =
      [](void *map, int type, unsigned rank, void *address,
         const uint64_t *extents, const uint64_t *strides, const unsigned *box,
         const unsigned *, int, int swizzle, int, int fill) {
        cu::Result code = fake->enter("tensorMapEncodeTiled");
        std::lock_guard<std::mutex> lock(fake->mutex);
        std::memset(map, 0, 128);
        *static_cast<int *>(map) = int(fake->encodings.size());
        fake->encodings.push_back({address,
                                   type,
                                   {extents, extents + rank},
                                   {strides, strides + rank - 1},
                                   {box, box + rank},
                                   swizzle,
                                   fill});
        return code;
      };
  table.memAlloc = [](cu::DevicePtr *out, size_t) {
    // Addresses of their own, as those of a driver.
    *out = 0x10000 + 0x1000 * cu::DevicePtr(fake->allocations++);
    return fake->enter("memAlloc");
  };
  table.memFree = [](cu::DevicePtr) { return fake->enter("memFree"); };
  table.pointerGetAttribute = [](void *out, int, cu::DevicePtr pointer) {
    cu::Result code = fake->enter("pointerGetAttribute");
    if (pointer < fake->deviceMemory)
      return cu::Result(cu::kInvalidValue);
    *static_cast<unsigned *>(out) = 2; // CU_MEMORYTYPE_DEVICE
    return code;
  };
  table.memcpyHtoD = [](cu::DevicePtr to, const void *from, size_t bytes) {
    const auto *data = static_cast<const uint8_t *>(from);
    fake->uploads[to].assign(data, data + bytes);
    return fake->enter("memcpyHtoD");
  };
  table.memcpyDtoH = [](void *, cu::DevicePtr, size_t) {
    return fake->enter("memcpyDtoH");
  };
  table.memcpyDtoDAsync = [](cu::DevicePtr, cu::DevicePtr, size_t, cu::Stream) {
    return fake->enter("memcpyDtoDAsync");
  };
  table.memsetD8 = [](cu::DevicePtr, unsigned char, size_t) {
    return fake->enter("memsetD8");
  };
  table.streamCreate = [](cu::Stream *out, unsigned) {
    *out = reinterpret_cast<cu::Stream>(uintptr_t(0x60));
    return fake->enter("streamCreate");
  };
  table.streamDestroy = [](cu::Stream) { return fake->enter("streamDestroy"); };
  table.streamSynchronize = [](cu::Stream) {
    return fake->enter("streamSynchronize");
  };
  table.streamIsCapturing = [](cu::Stream, int *out) {
    *out = fake->capturing ? cu::kCaptureActive : cu::kCaptureNone;
    return fake->enter("streamIsCapturing");
  };
  table.streamBeginCapture = [](cu::Stream, int) {
    fake->capturing = true;
    for (Launch &launch : fake->launches)
      launch.captured = false; // those of an earlier graph
    return fake->enter("streamBeginCapture");
  };
  table.streamEndCapture = [](cu::Stream, cu::Graph *out) {
    fake->capturing = false;
    *out = reinterpret_cast<cu::Graph>(uintptr_t(0x70));
    return fake->enter("streamEndCapture");
  };
  table.eventCreate = [](cu::Event *out, unsigned) {
    *out = reinterpret_cast<cu::Event>(uintptr_t(0x80));
    return fake->enter("eventCreate");
  };
  table.eventDestroy = [](cu::Event) { return fake->enter("eventDestroy"); };
  table.eventRecord = [](cu::Event, cu::Stream) {
    return fake->enter("eventRecord");
  };
  table.eventSynchronize = [](cu::Event) {
    return fake->enter("eventSynchronize");
  };
  table.eventElapsedTime = [](float *out, cu::Event, cu::Event) {
    *out = fake->elapsed ? fake->elapsed() : 1.5f;
    return fake->enter("eventElapsedTime");
  };
  table.graphInstantiateWithFlags = [](cu::GraphExec *out, cu::Graph,
                                       unsigned long long) {
    *out = reinterpret_cast<cu::GraphExec>(uintptr_t(0x90));
    return fake->enter("graphInstantiateWithFlags");
  };
  table.graphInstantiate = [](cu::GraphExec *out, cu::Graph, cu::GraphNode *,
                              char *, size_t) {
    *out = reinterpret_cast<cu::GraphExec>(uintptr_t(0x90));
    return fake->enter("graphInstantiate");
  };
  table.graphGetNodes = [](cu::Graph, cu::GraphNode *, size_t *count) {
    *count = size_t(llvm::count_if(
        fake->launches, [](const Launch &launch) { return launch.captured; }));
    return fake->enter("graphGetNodes");
  };
  table.graphLaunch = [](cu::GraphExec, cu::Stream) {
    return fake->enter("graphLaunch");
  };
  table.graphDestroy = [](cu::Graph) { return fake->enter("graphDestroy"); };
  table.graphExecDestroy = [](cu::GraphExec) {
    return fake->enter("graphExecDestroy");
  };
}

FakeDriver::~FakeDriver() { fake = nullptr; }

LaunchDescription makeLaunchDescription() {
  LaunchDescription d;
  d.kernelName = "kernel";
  d.chip = "sm_90";
  d.ptxVersion = 78;
  d.assembler = "nvjitlink 13.0";
  d.blockThreads = 256;
  d.sharedBytes = 65536;
  d.blockN = 128;
  d.blockM = 16;
  d.splitK = 2;
  d.activation = "bf16";
  d.weight = "u4";
  d.scale = "bf16";
  d.granularity = "128";
  d.zeroPoint = "none";
  d.output = "bf16";
  d.config = "mma=m16n8k16,block=128x16x128";
  d.notes = {"runs as w4a16"};
  return d;
}

std::string makeCubin(unsigned chip) {
  std::string bytes(128, '\0');
  std::memcpy(bytes.data(),
              "\x7f"
              "ELF\x02\x01\x01\x29\x08",
              9);
  support::endian::write16le(bytes.data() + 18, 190);
  support::endian::write32le(bytes.data() + 48, 0x6000004 | chip << 8);
  return bytes;
}

std::string makePtx(StringRef chip, StringRef version) {
  return ("//\n.version " + version + "\n.target " + chip +
          "\n.address_size 64\n.visible .entry kernel() { ret; }\n")
      .str();
}

} // namespace humming
