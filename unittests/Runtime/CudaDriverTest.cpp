//===- CudaDriverTest.cpp - Tests of the driver table ---------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"
#include "gtest/gtest.h"

using namespace humming;
using namespace llvm;

namespace {

template <typename T>
std::string errorOf(Expected<T> value) {
  return value ? "" : toString(value.takeError());
}
bool contains(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

TEST(CudaDriver, MissingLibraryIsAClearError) {
  std::string message = errorOf(CudaDriver::load("libcuda-that-is-not.so.1"));
  EXPECT_TRUE(contains(message, "no CUDA driver: cannot open "
                                "libcuda-that-is-not.so.1"))
      << message;
  EXPECT_TRUE(contains(message, "install the NVIDIA driver")) << message;
}

TEST(CudaDriver, LibraryWithoutEntryPointsIsAnError) {
  // Any library that is not a driver: the C library is always there.
  std::string message = errorOf(CudaDriver::load("libc.so.6"));
  EXPECT_TRUE(contains(message, "lacks the entry point cuInit")) << message;
}

TEST(CudaDriver, EveryRequiredEntryIsChecked) {
  FakeDriver fake;
#define HUMMING_DRIVER_ENTRY(MEMBER, SYMBOL, REQUIRED, ...)                    \
  {                                                                            \
    DriverTable table = fake.table;                                            \
    table.MEMBER = nullptr;                                                    \
    std::string message = errorOf(CudaDriver::create(table));                  \
    if (REQUIRED)                                                              \
      EXPECT_TRUE(contains(message, SYMBOL)) << message;                       \
    else                                                                       \
      EXPECT_EQ(message, "") << SYMBOL;                                        \
  }
#include "Humming/Runtime/DriverEntries.def"
}

TEST(CudaDriver, InitFailureCarriesNameAndText) {
  FakeDriver fake;
  fake.faults["init"] = {cu::kNoDevice};
  std::string message = errorOf(CudaDriver::create(fake.table));
  EXPECT_EQ(message, "cannot initialise the CUDA driver (cuInit): "
                     "CUDA_ERROR_NO_DEVICE (100): the driver's text");
}

TEST(CudaDriver, UnknownCodeStillGivesANumber) {
  FakeDriver fake;
  auto driver = cantFail(CudaDriver::create(fake.table));
  EXPECT_EQ(driver->describe(12345),
            "unknown CUDA error (12345): no description");
}

TEST(CudaDriver, EveryCallReportsItsFailure) {
  FakeDriver fake;
  auto driver = cantFail(CudaDriver::create(fake.table));
  cu::Stream stream = nullptr;
  auto failing = [&](const char *entry, auto call) {
    fake.faults[entry] = {cu::kInvalidValue};
    std::string message = call();
    fake.faults.clear();
    EXPECT_TRUE(contains(message, "cannot ")) << entry << ": " << message;
    EXPECT_TRUE(contains(message, "CUDA_ERROR_INVALID_VALUE (1)"))
        << entry << ": " << message;
  };
  auto text = [](Error error) { return toString(std::move(error)); };
  failing("memAlloc", [&] { return errorOf(driver->allocate(7)); });
  failing("memFree", [&] { return text(driver->free(1)); });
  char byte = 0;
  failing("memcpyHtoD",
          [&] { return text(driver->copyToDevice(1, &byte, 1)); });
  failing("memcpyDtoH", [&] { return text(driver->copyToHost(&byte, 1, 1)); });
  failing("memcpyDtoDAsync",
          [&] { return text(driver->copyOnDevice(1, 2, 3, stream)); });
  failing("memsetD8", [&] { return text(driver->fill(1, 0, 1)); });
  failing("streamCreate", [&] { return errorOf(driver->createStream()); });
  failing("streamDestroy", [&] { return text(driver->destroyStream(stream)); });
  failing("streamSynchronize",
          [&] { return text(driver->synchronizeStream(stream)); });
  failing("streamIsCapturing",
          [&] { return errorOf(driver->isCapturing(stream)); });
  failing("eventCreate", [&] { return errorOf(driver->createEvent()); });
  failing("eventRecord",
          [&] { return text(driver->recordEvent(nullptr, stream)); });
  failing("eventElapsedTime", [&] {
    return errorOf(driver->elapsedMilliseconds(nullptr, nullptr));
  });
  failing("streamBeginCapture",
          [&] { return text(driver->beginCapture(stream)); });
  failing("streamEndCapture",
          [&] { return errorOf(driver->endCapture(stream)); });
  failing("graphInstantiateWithFlags",
          [&] { return errorOf(driver->instantiate(nullptr)); });
  failing("graphLaunch",
          [&] { return text(driver->launchGraph(nullptr, stream)); });
  failing("graphGetNodes",
          [&] { return errorOf(driver->graphNodeCount(nullptr)); });
  failing("contextSynchronize", [&] { return text(driver->synchronize()); });
  failing("primaryContextRetain",
          [&] { return errorOf(driver->retainPrimaryContext(0)); });
}

// Streams of ours do not wait for the default stream: a kernel launched next
// would read, or be overwritten by, what is still on its way.
TEST(CudaDriver, UploadsAndFillsAreInPlaceWhenTheyReturn) {
  FakeDriver fake;
  auto driver = cantFail(CudaDriver::create(fake.table));
  char byte = 0;
  auto lastCall = [&] { return fake.calls.empty() ? "" : fake.calls.back(); };
  fake.clear();
  cantFail(driver->copyToDevice(1, &byte, 1));
  EXPECT_EQ(fake.count("memcpyHtoD"), 1);
  EXPECT_EQ(lastCall(), "streamSynchronize");
  fake.clear();
  cantFail(driver->fill(1, 0, 1));
  EXPECT_EQ(fake.count("memsetD8"), 1);
  EXPECT_EQ(lastCall(), "streamSynchronize");
  fake.faults["streamSynchronize"] = {cu::kInvalidValue};
  EXPECT_TRUE(contains(toString(driver->fill(1, 0, 1)), "default stream"));
}

TEST(CudaDriver, OlderDriverInstantiatesByTheOlderEntry) {
  FakeDriver fake;
  DriverTable table = fake.table;
  table.graphInstantiateWithFlags = nullptr;
  auto driver = cantFail(CudaDriver::create(table));
  EXPECT_TRUE(bool(driver->instantiate(nullptr)));
  EXPECT_EQ(fake.count("graphInstantiate"), 1);
  table.graphInstantiate = nullptr;
  EXPECT_TRUE(
      contains(errorOf(CudaDriver::create(table)), "lacks cuGraphInstantiate"));
}

TEST(CudaDriver, EmptyCopiesDoNotReachTheDriver) {
  FakeDriver fake;
  auto driver = cantFail(CudaDriver::create(fake.table));
  fake.clear();
  cantFail(driver->copyToDevice(0, nullptr, 0));
  cantFail(driver->copyToHost(nullptr, 0, 0));
  cantFail(driver->fill(0, 0, 0));
  EXPECT_TRUE(fake.calls.empty());
  EXPECT_TRUE(bool(driver->allocate(0)));
}

} // namespace
