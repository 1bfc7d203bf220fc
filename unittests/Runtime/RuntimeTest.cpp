//===- RuntimeTest.cpp - Tests of devices, kernels and launches -----------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Runtime/Runtime.h"
#include "FakeDriver.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <atomic>
#include <thread>

using namespace humming;
using namespace llvm;

namespace {

std::string errorOf(Error error) { return toString(std::move(error)); }
template <typename T>
std::string errorOf(Expected<T> value) {
  return value ? "" : toString(value.takeError());
}
bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

class RuntimeTest : public testing::Test {
protected:
  void SetUp() override { driver = cantFail(CudaDriver::create(fake.table)); }

  std::shared_ptr<const Device> openDevice() {
    return cantFail(Device::open(*driver));
  }
  std::shared_ptr<const Kernel> loadKernel(const LaunchDescription &d) {
    return cantFail(Kernel::load(openDevice(), d, "", makeCubin(90)));
  }
  /// Arguments that every check accepts for makeLaunchDescription().
  static DenseArguments goodArguments() {
    auto at = [](uintptr_t address) {
      return reinterpret_cast<void *>(address);
    };
    DenseArguments a;
    a.x = at(0x100000);
    a.w = at(0x200000);
    a.scales = at(0x300000);
    a.c = at(0x400000);
    a.workspace = at(0x500000);
    a.workspaceBytes = 1 << 20;
    a.m = 17;
    a.n = 264;
    a.k = 512;
    a.ldx = 520;
    a.ldc = 272;
    return a;
  }

  FakeDriver fake;
  std::unique_ptr<CudaDriver> driver;
};

TEST_F(RuntimeTest, DeviceFacts) {
  auto device = openDevice();
  EXPECT_EQ(device->info().name, "Fake GPU");
  EXPECT_EQ(device->info().chip(), "sm_90");
  EXPECT_EQ(device->info().multiprocessors, 132);
  // 2 * 2.619 GHz * 640 bytes
  EXPECT_NEAR(device->info().memoryBandwidth, 3.352e12, 1e9);
  EXPECT_FALSE(device->info().bandwidthAssumed);
}

TEST_F(RuntimeTest, NoMemoryClockIsNotAnError) {
  fake.attributes.erase(cu::kMemoryClockKHz);
  EXPECT_GT(openDevice()->info().memoryBandwidth, 0);
  EXPECT_TRUE(openDevice()->info().bandwidthAssumed);
  fake.attributes[cu::kMemoryClockKHz] = 2000000;
  fake.attributes[cu::kMemoryBusWidthBits] = 0;
  EXPECT_GT(openDevice()->info().memoryBandwidth, 0);
  EXPECT_TRUE(openDevice()->info().bandwidthAssumed);
}

TEST_F(RuntimeTest, DeviceErrors) {
  EXPECT_EQ(errorOf(Device::open(*driver, 1)),
            "device: expected an ordinal from 0 to 0, got 1");
  fake.devices = 0;
  EXPECT_TRUE(contains(errorOf(Device::open(*driver)), "no CUDA device"));
  fake.devices = 1;
  for (const char *entry : {"deviceGetCount", "deviceGet", "deviceGetName",
                            "deviceGetAttribute", "primaryContextRetain"}) {
    fake.faults[entry] = {cu::kInvalidValue};
    EXPECT_TRUE(
        contains(errorOf(Device::open(*driver)), "CUDA_ERROR_INVALID_VALUE"))
        << entry;
    fake.faults.clear();
  }
}

TEST_F(RuntimeTest, LaunchCallsTheLaunchEntryAlone) {
  auto kernel = loadKernel(makeLaunchDescription());
  for (bool captured : {false, true}) {
    fake.capturing = captured;
    fake.clear();
    cu::Stream stream = reinterpret_cast<cu::Stream>(uintptr_t(0xABC0));
    ASSERT_EQ(errorOf(kernel->launch(stream, goodArguments())), "");
    ASSERT_EQ(fake.calls, std::vector<std::string>{"launchKernelEx"});
    const FakeDriver::Launch &launch = fake.launches.at(0);
    EXPECT_EQ(launch.stream, stream);
    EXPECT_EQ(launch.grid, (LaunchDescription::Grid{3, 2, 2}));
    EXPECT_EQ(launch.block, 256u);
    EXPECT_EQ(launch.sharedBytes, 65536u);
    EXPECT_EQ(launch.pointers,
              (std::vector<uint64_t>{0x100000, 0x200000, 0x300000, 0, 0,
                                     0x400000, 0x500000}));
    EXPECT_EQ(launch.numbers, (std::vector<int32_t>{17, 264, 512, 520, 272}));
  }
}

TEST_F(RuntimeTest, LaunchFollowsTheStreamOfEachCall) {
  auto kernel = loadKernel(makeLaunchDescription());
  fake.clear();
  for (uintptr_t stream : {0x10, 0x20, 0x10})
    ASSERT_EQ(errorOf(kernel->launch(reinterpret_cast<cu::Stream>(stream),
                                     goodArguments())),
              "");
  EXPECT_EQ(fake.launches[0].stream, reinterpret_cast<cu::Stream>(0x10));
  EXPECT_EQ(fake.launches[1].stream, reinterpret_cast<cu::Stream>(0x20));
  EXPECT_EQ(fake.launches[2].stream, reinterpret_cast<cu::Stream>(0x10));
}

TEST_F(RuntimeTest, DriverWithoutLaunchKernelEx) {
  DriverTable table = fake.table;
  table.launchKernelEx = nullptr;
  driver = cantFail(CudaDriver::create(table));
  auto kernel = loadKernel(makeLaunchDescription());
  fake.clear();
  ASSERT_EQ(errorOf(kernel->launch(nullptr, goodArguments())), "");
  EXPECT_EQ(fake.calls, std::vector<std::string>{"launchKernel"});
  EXPECT_EQ(fake.launches.at(0).grid, (LaunchDescription::Grid{3, 2, 2}));
}

TEST_F(RuntimeTest, TensorMapsAreEncodedOnce) {
  LaunchDescription d = makeLaunchDescription();
  d.activation = d.weight = "e4m3";
  d.weightLayout = "plain";
  d.kDivisor = 16;
  d.tensorMaps = {{"x", 16}, {"w", 128}};
  d.activationScale = "token";
  auto kernel = loadKernel(d);
  fake.clear();
  fake.numMaps = 2;
  DenseArguments a = goodArguments();
  a.ldx = 528;
  a.activationScales = reinterpret_cast<void *>(uintptr_t(0x600000));
  ASSERT_EQ(errorOf(kernel->launch(nullptr, a)), "");
  EXPECT_EQ(fake.launches.at(0).maps, (std::vector<int>{0, 1}));
  ASSERT_EQ(fake.encodings.size(), 2u);
  EXPECT_EQ(fake.encodings[0].address, a.x);
  EXPECT_EQ(fake.encodings[0].type, 0); // CU_TENSOR_MAP_DATA_TYPE_UINT8
  EXPECT_EQ(fake.encodings[0].extents, (std::vector<uint64_t>{512, 17}));
  EXPECT_EQ(fake.encodings[0].strides, (std::vector<uint64_t>{528}));
  EXPECT_EQ(fake.encodings[0].box, (std::vector<unsigned>{128, 16}));
  EXPECT_EQ(fake.encodings[0].swizzle, 3); // CU_TENSOR_MAP_SWIZZLE_128B
  EXPECT_EQ(fake.encodings[0].fill, 0);    // zeros
  EXPECT_EQ(fake.encodings[1].address, a.w);
  EXPECT_EQ(fake.encodings[1].extents, (std::vector<uint64_t>{512, 264}));
  EXPECT_EQ(fake.encodings[1].strides, (std::vector<uint64_t>{512}));
  EXPECT_EQ(fake.encodings[1].box, (std::vector<unsigned>{128, 128}));

  // The same again, in a capture too: nothing but the launch.
  for (bool captured : {false, true}) {
    fake.capturing = captured;
    fake.clear();
    ASSERT_EQ(errorOf(kernel->launch(nullptr, a)), "");
    EXPECT_EQ(fake.calls, std::vector<std::string>{"launchKernelEx"});
    EXPECT_EQ(fake.launches.at(0).maps, (std::vector<int>{0, 1}));
  }
  // Another batch is another map of x; those before it are remembered.
  DenseArguments other = a;
  other.m = 3;
  ASSERT_EQ(errorOf(kernel->launch(nullptr, other)), "");
  ASSERT_EQ(errorOf(kernel->launch(nullptr, a)), "");
  EXPECT_EQ(fake.launches.at(1).maps, (std::vector<int>{2, 1}));
  EXPECT_EQ(fake.launches.at(2).maps, (std::vector<int>{0, 1}));
  // So many matrices that old ones are encoded again.
  for (uintptr_t i = 0; i < 100; ++i) {
    other.w = reinterpret_cast<void *>(0x1000000 + 0x100000 * i);
    ASSERT_EQ(errorOf(kernel->launch(nullptr, other)), "");
    const FakeDriver::Launch &launch = fake.launches.back();
    EXPECT_EQ(fake.encodings[size_t(launch.maps[0])].extents[1], 3u);
    EXPECT_EQ(fake.encodings[size_t(launch.maps[1])].address, other.w);
  }
}

TEST_F(RuntimeTest, TensorMapsNeedTheirEntryPoint) {
  LaunchDescription d = makeLaunchDescription();
  d.tensorMaps = {{"x", 16}};
  fake.numMaps = 1;
  fake.faults["tensorMapEncodeTiled"] = {cu::kInvalidValue, 1};
  auto kernel = loadKernel(d);
  fake.clear();
  EXPECT_NE(errorOf(kernel->launch(nullptr, goodArguments()))
                .find("cannot encode the tensor map of 17 x 512 elements of 2 "
                      "bytes, 1040 bytes a row, for kernel"),
            std::string::npos);
  EXPECT_TRUE(fake.launches.empty());
  kernel.reset();

  DriverTable table = fake.table;
  table.tensorMapEncodeTiled = nullptr;
  driver = cantFail(CudaDriver::create(table));
  std::string message = errorOf(
      Kernel::load(cantFail(Device::open(*driver, 0)), d, "", makeCubin(90)));
  EXPECT_NE(message.find("cuTensorMapEncodeTiled (CUDA 12.0 or newer)"),
            std::string::npos)
      << message;
}

TEST_F(RuntimeTest, EmptyBatchLaunchesNothing) {
  auto kernel = loadKernel(makeLaunchDescription());
  fake.clear();
  DenseArguments a = goodArguments();
  a.m = 0;
  // An empty tensor may well have a null pointer.
  a.x = a.c = a.workspace = nullptr;
  EXPECT_EQ(errorOf(kernel->launch(nullptr, a)), "");
  EXPECT_TRUE(fake.calls.empty());
}

TEST_F(RuntimeTest, ThreadWithoutContextGetsIt) {
  auto kernel = loadKernel(makeLaunchDescription());
  fake.clear();
  fake.faults["launchKernelEx"] = {cu::kInvalidContext, 1};
  EXPECT_EQ(errorOf(kernel->launch(nullptr, goodArguments())), "");
  EXPECT_EQ(fake.calls,
            (std::vector<std::string>{"launchKernelEx", "contextSetCurrent",
                                      "launchKernelEx"}));
}

TEST_F(RuntimeTest, LaunchFailureSaysWhatWasLaunched) {
  auto kernel = loadKernel(makeLaunchDescription());
  fake.faults["launchKernelEx"] = {cu::kInvalidValue};
  EXPECT_EQ(errorOf(kernel->launch(nullptr, goodArguments())),
            "cannot launch kernel (grid 3x2x2, block 256, 65536 bytes of "
            "shared memory, m = 17, n = 264, k = 512): "
            "CUDA_ERROR_INVALID_VALUE (1): the driver's text");
}

TEST_F(RuntimeTest, EveryBadArgumentIsNamedAndReachesNoDriver) {
  auto kernel = loadKernel(makeLaunchDescription());
  fake.clear();
  using A = DenseArguments;
  auto misaligned = [](const void *pointer) {
    return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(pointer) + 8);
  };
  auto broken = [&](auto change) {
    A a = goodArguments();
    change(a);
    return errorOf(kernel->launch(nullptr, a));
  };
  std::pair<const char *, std::string> cases[] = {
      {"m: expected 0 or more, got -1", broken([](A &a) { a.m = -1; })},
      {"n: expected 1 or more, got 0", broken([](A &a) { a.n = 0; })},
      {"k: expected 1 or more, got -8", broken([](A &a) { a.k = -8; })},
      {"ldx: expected at least k = 512, got 504",
       broken([](A &a) { a.ldx = 504; })},
      {"ldc: expected at least n = 264, got 256",
       broken([](A &a) { a.ldc = 256; })},
      {"k: expected a multiple of 8", broken([](A &a) { a.k = 511; })},
      {"ldx: expected a multiple of 8", broken([](A &a) { a.ldx = 521; })},
      {"n: expected a multiple of 8", broken([](A &a) { a.n = 263; })},
      {"ldc: expected a multiple of 8", broken([](A &a) { a.ldc = 273; })},
      {"x: expected a device pointer, got null",
       broken([](A &a) { a.x = nullptr; })},
      {"w: expected a device pointer, got null",
       broken([](A &a) { a.w = nullptr; })},
      {"scales: expected a device pointer, got null",
       broken([](A &a) { a.scales = nullptr; })},
      {"c: expected a device pointer, got null",
       broken([](A &a) { a.c = nullptr; })},
      {"workspace: expected a device pointer, got null",
       broken([](A &a) { a.workspace = nullptr; })},
      {"zero_points: expected null", broken([](A &a) { a.zeroPoints = a.w; })},
      {"bias: expected null", broken([](A &a) { a.bias = a.w; })},
      {"x: expected an address that is a multiple of 16, got 0x100008",
       broken([&](A &a) { a.x = misaligned(a.x); })},
      {"w: expected an address", broken([&](A &a) { a.w = misaligned(a.w); })},
      {"scales: expected an address",
       broken([&](A &a) { a.scales = misaligned(a.scales); })},
      {"c: expected an address", broken([&](A &a) { a.c = misaligned(a.c); })},
      {"workspace: expected an address",
       broken([&](A &a) { a.workspace = misaligned(a.workspace); })},
      // 3 x 2 counters in 256 bytes, 2 partials of 128 x 16 floats a tile.
      {"workspace: expected at least 98560 bytes for m = 17 and n = 264, got "
       "98559",
       broken([](A &a) { a.workspaceBytes = 98559; })},
      {"m: expected at most 1048560", broken([](A &a) {
         a.m = 1048561;
         a.workspaceBytes = INT64_MAX;
       })},
  };
  for (const auto &[expected, message] : cases)
    EXPECT_TRUE(contains(message, std::string("launch of kernel: ") + expected))
        << expected << "\n  -> " << message;
  EXPECT_TRUE(fake.calls.empty());
  EXPECT_EQ(broken([](A &a) { a.workspaceBytes = 98560; }), "");
}

TEST_F(RuntimeTest, OptionalArgumentsAreNeededWhereDeclared) {
  LaunchDescription d = makeLaunchDescription();
  d.hasBias = true;
  d.zeroPoint = "int";
  d.splitK = 1;
  auto kernel = loadKernel(d);
  DenseArguments a = goodArguments();
  a.workspace = nullptr;
  EXPECT_TRUE(contains(errorOf(kernel->checkArguments(a)), "zero_points"));
  a.zeroPoints = a.w;
  EXPECT_TRUE(contains(errorOf(kernel->checkArguments(a)), "bias"));
  a.bias = a.w;
  EXPECT_EQ(errorOf(kernel->checkArguments(a)), "");
}

TEST_F(RuntimeTest, AlignmentFollowsTheDeclaredDivisibility) {
  LaunchDescription d = makeLaunchDescription();
  d.kDivisor = 1;
  d.nDivisor = 2;
  auto kernel = loadKernel(d);
  DenseArguments a = goodArguments();
  a.k = 511;
  a.ldx = 511;
  a.x = reinterpret_cast<void *>(uintptr_t(0x100002));
  a.c = reinterpret_cast<void *>(uintptr_t(0x400004));
  EXPECT_EQ(errorOf(kernel->checkArguments(a)), "");
  a.c = reinterpret_cast<void *>(uintptr_t(0x400002));
  EXPECT_TRUE(contains(errorOf(kernel->checkArguments(a)),
                       "c: expected an address that is a multiple of 4"));
}

TEST_F(RuntimeTest, HostPointersAreFoundOnRequest) {
  auto kernel = loadKernel(makeLaunchDescription());
  DenseArguments a = goodArguments();
  EXPECT_EQ(errorOf(kernel->checkPointers(a)), "");
  a.scales = reinterpret_cast<void *>(uintptr_t(0x1000));
  EXPECT_TRUE(contains(errorOf(kernel->checkPointers(a)),
                       "scales: expected a device pointer, got"));
}

TEST_F(RuntimeTest, LoadPrefersTheCubin) {
  auto kernel = cantFail(Kernel::load(openDevice(), makeLaunchDescription(),
                                      makePtx("sm_80", "7.0"), makeCubin(90)));
  EXPECT_EQ(kernel->loadedFrom(), "cubin (sm_90)");
  EXPECT_EQ(fake.images, std::vector<std::string>{"cubin"});
  EXPECT_EQ(fake.maxDynamicShared, 65536);
  EXPECT_EQ(kernel->registers(), 64);
}

TEST_F(RuntimeTest, ForeignCubinFallsBackToPtx) {
  std::string ptx = makePtx("sm_75", "7.0");
  for (unsigned chip : {80, 89, 75, 100}) {
    auto kernel = cantFail(Kernel::load(openDevice(), makeLaunchDescription(),
                                        ptx, makeCubin(chip)));
    EXPECT_EQ(kernel->loadedFrom(), "PTX by the driver");
  }
  std::string message = errorOf(
      Kernel::load(openDevice(), makeLaunchDescription(), "", makeCubin(80)));
  EXPECT_TRUE(contains(message, "cubin for sm_80 cannot run on Fake GPU "
                                "(sm_90)"))
      << message;
  // An older minor version of the same major is compatible, a newer is not.
  fake.attributes[cu::kComputeMajor] = 8;
  fake.attributes[cu::kComputeMinor] = 6;
  fake.attributes[cu::kMaxSharedPerBlockOptin] = 101376;
  EXPECT_EQ(errorOf(Kernel::load(openDevice(), makeLaunchDescription(), "",
                                 makeCubin(80))),
            "");
  EXPECT_NE(errorOf(Kernel::load(openDevice(), makeLaunchDescription(), "",
                                 makeCubin(89))),
            "");
}

TEST_F(RuntimeTest, DamagedCubinFallsBackToPtx) {
  std::string ptx = makePtx("sm_90a", "8.0");
  EXPECT_EQ(errorOf(Kernel::load(openDevice(), makeLaunchDescription(), ptx,
                                 "not a cubin")),
            "");
  fake.faults["moduleLoadDataEx"] = {cu::kInvalidImage, 1};
  EXPECT_EQ(errorOf(Kernel::load(openDevice(), makeLaunchDescription(), ptx,
                                 makeCubin(90))),
            "");
  fake.faults["moduleLoadDataEx"] = {cu::kInvalidImage, 2};
  fake.errorLog = "ptxas application ptx input, line 3; error";
  std::string message = errorOf(
      Kernel::load(openDevice(), makeLaunchDescription(), ptx, makeCubin(90)));
  EXPECT_TRUE(contains(message, "line 3; error")) << message;
  EXPECT_TRUE(contains(message, "the PTX of kernel")) << message;
  EXPECT_TRUE(contains(message, "the cubin of kernel")) << message;
  EXPECT_TRUE(contains(message, "CUDA_ERROR_INVALID_IMAGE")) << message;
}

TEST_F(RuntimeTest, PtxOfANewerToolkitIsLoweredToTheDriver) {
  fake.version = 12000; // knows PTX 8.0
  driver = cantFail(CudaDriver::create(fake.table));
  auto kernel = cantFail(Kernel::load(openDevice(), makeLaunchDescription(),
                                      makePtx("sm_90", "9.0"), ""));
  EXPECT_EQ(kernel->loadedFrom(),
            "PTX by the driver, version lowered from 9.0 to 8.0");
  ASSERT_EQ(fake.images.size(), 2u);
  EXPECT_TRUE(contains(fake.images[1], "\n.version 8.0\n.target sm_90\n"));

  // The lowered text may still be refused: the message says what is needed.
  fake.faults["moduleLoadDataEx"] = {cu::kInvalidPtx};
  fake.clear();
  std::string message = errorOf(Kernel::load(
      openDevice(), makeLaunchDescription(), makePtx("sm_90", "9.0"), ""));
  EXPECT_TRUE(contains(message, "driver of CUDA 12.0")) << message;
  EXPECT_TRUE(contains(message, "whose version 9.0")) << message;
  EXPECT_TRUE(contains(message, "CUDA 13.0 or newer")) << message;
}

TEST_F(RuntimeTest, PtxForANewerChipIsRefusedBeforeTheDriver) {
  fake.clear();
  EXPECT_TRUE(
      contains(errorOf(Kernel::load(openDevice(), makeLaunchDescription(),
                                    makePtx("sm_100", "8.6"), "")),
               "PTX for sm_100 cannot run on Fake GPU (sm_90)"));
  EXPECT_TRUE(fake.images.empty());
}

TEST_F(RuntimeTest, DeviceLimitsAreChecked) {
  LaunchDescription d = makeLaunchDescription();
  d.sharedBytes = 240 * 1024;
  EXPECT_TRUE(
      contains(errorOf(Kernel::load(openDevice(), d, "", makeCubin(90))),
               "expected at most 232448 bytes of shared memory"));
  d = makeLaunchDescription();
  fake.attributes[cu::kMaxThreadsPerBlock] = 128;
  EXPECT_TRUE(
      contains(errorOf(Kernel::load(openDevice(), d, "", makeCubin(90))),
               "expected at most 128 threads"));
}

TEST_F(RuntimeTest, EveryLoadFaultIsReported) {
  for (const char *entry :
       {"contextSetCurrent", "moduleLoadDataEx", "moduleGetFunction",
        "functionGetAttribute", "functionSetAttribute"}) {
    fake.faults[entry] = {cu::kOutOfMemory};
    std::string message = errorOf(
        Kernel::load(openDevice(), makeLaunchDescription(), "", makeCubin(90)));
    EXPECT_TRUE(contains(message, "CUDA_ERROR_OUT_OF_MEMORY (2)"))
        << entry << ": " << message;
    fake.faults.clear();
  }
  LaunchDescription d = makeLaunchDescription();
  d.blockThreads = 1;
  EXPECT_TRUE(
      contains(errorOf(Kernel::load(openDevice(), d, "", makeCubin(90))),
               "block_threads"));
  EXPECT_TRUE(contains(
      errorOf(Kernel::load(openDevice(), makeLaunchDescription(), "", "")),
      "neither a cubin nor PTX"));
}

TEST_F(RuntimeTest, ModulesAndContextsAreGivenBack) {
  fake.clear();
  loadKernel(makeLaunchDescription());
  EXPECT_EQ(fake.count("moduleUnload"), 1);
  EXPECT_EQ(fake.count("primaryContextRelease"), 1);
}

TEST_F(RuntimeTest, PreparedKernelsLaunchDuringCapture) {
  KernelSet set;
  auto load = [&] {
    return Kernel::load(openDevice(), makeLaunchDescription(), "",
                        makeCubin(90));
  };
  // Not prepared: the message names the kernel and the missing call, and the
  // driver hears nothing that would break a capture.
  fake.capturing = true;
  fake.clear();
  EXPECT_TRUE(contains(errorOf(set.launch("w4a16", nullptr, goodArguments())),
                       "kernel 'w4a16' is not prepared: call prepare()"));
  EXPECT_TRUE(contains(errorOf(set.prepare(*driver, "w4a16", nullptr, load)),
                       "kernel 'w4a16' is not prepared and the stream is being "
                       "captured"));
  EXPECT_EQ(fake.calls, std::vector<std::string>{"streamIsCapturing"});

  fake.capturing = false;
  ASSERT_EQ(errorOf(set.prepare(*driver, "w4a16", nullptr, load)), "");
  fake.capturing = true;
  fake.clear();
  EXPECT_EQ(errorOf(set.launch("w4a16", nullptr, goodArguments())), "");
  EXPECT_EQ(fake.calls, std::vector<std::string>{"launchKernelEx"});
  // Preparing again is free, also during a capture.
  fake.clear();
  EXPECT_EQ(errorOf(set.prepare(*driver, "w4a16", nullptr, load)), "");
  EXPECT_TRUE(fake.calls.empty());
}

TEST_F(RuntimeTest, ConcurrentPrepareLoadsOnce) {
  KernelSet set;
  auto device = openDevice();
  std::atomic<int> loads{0}, failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      auto kernel =
          set.prepare(*driver, "kernel" + std::to_string(i % 2), nullptr, [&] {
            ++loads;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            return Kernel::load(device, makeLaunchDescription(), "",
                                makeCubin(90));
          });
      if (!kernel) {
        consumeError(kernel.takeError());
        ++failures;
        return;
      }
      for (int j = 0; j < 100; ++j)
        if (Error error = (*kernel)->launch(nullptr, goodArguments())) {
          consumeError(std::move(error));
          ++failures;
        }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(loads, 2);
  EXPECT_EQ(set.size(), 2u);
  EXPECT_EQ(fake.count("launchKernelEx"), 1600);
}

TEST_F(RuntimeTest, FailedPrepareIsRetried) {
  KernelSet set;
  int calls = 0;
  auto load = [&]() -> Expected<std::shared_ptr<const Kernel>> {
    if (++calls == 1)
      return createStringError(inconvertibleErrorCode(), "first time");
    return Kernel::load(openDevice(), makeLaunchDescription(), "",
                        makeCubin(90));
  };
  EXPECT_EQ(errorOf(set.prepare(*driver, "k", nullptr, load)), "first time");
  EXPECT_EQ(set.find("k"), nullptr);
  EXPECT_EQ(errorOf(set.prepare(*driver, "k", nullptr, load)), "");
  EXPECT_NE(set.find("k"), nullptr);
}

} // namespace
