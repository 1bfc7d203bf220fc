//===- FakeDriver.h - A CUDA driver without a GPU ---------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fills a DriverTable with functions that record each call by name and answer
// as a driver would, or with the fault that the test has planted.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_UNITTESTS_RUNTIME_FAKEDRIVER_H
#define HUMMING_UNITTESTS_RUNTIME_FAKEDRIVER_H

#include "Humming/Runtime/CudaDriver.h"
#include "Humming/Runtime/LaunchDescription.h"
#include "llvm/ADT/StringMap.h"
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace humming {

/// One at a time: the table's functions have no context argument, so they reach
/// the instance through a static pointer. Safe to call from several threads.
class FakeDriver {
public:
  FakeDriver();
  ~FakeDriver();

  DriverTable table;

  // What the machine is.
  int version = 12040;
  int devices = 1;
  std::map<int, int> attributes; ///< by cu::DeviceAttribute
  /// Module images that are accepted; PTX newer than `version` is refused.
  int registers = 64, localBytes = 0, staticShared = 0;

  // Faults: entry point -> code it returns, for its next `times` calls.
  struct Fault {
    cu::Result code = 0;
    int times = -1;
  };
  std::map<std::string, Fault> faults;
  bool capturing = false;
  /// Pointers that launches have first, and i32 after them; two more pointers
  /// of a matmul.
  int numPointers = 7, numNumbers = 5, numScalePointers = 2;
  /// Tensor maps of a matmul, after all its pointers.
  int numMaps = 0;
  /// Written into the error log buffer when a module load fails.
  std::string errorLog;
  /// Addresses at or above this are device memory for pointerGetAttribute.
  uintptr_t deviceMemory = 0x10000;
  int allocations = 0;

  // What happened.
  std::vector<std::string> calls;
  std::vector<std::string> images; ///< first 64 KiB of every loaded image
  struct Launch {
    LaunchDescription::Grid grid;
    unsigned block = 0, sharedBytes = 0;
    cu::Stream stream = nullptr;
    std::vector<uint64_t> pointers;      ///< the seven pointers
    std::vector<int32_t> numbers;        ///< m, n, k, ldx, ldc
    std::vector<uint64_t> scalePointers; ///< the two after the numbers
    std::vector<int> maps;               ///< numbers of encodings
    bool captured = false;               ///< into a graph, not run
  };
  std::vector<Launch> launches;
  struct Encoding {
    const void *address;
    int type;
    std::vector<uint64_t> extents, strides;
    std::vector<unsigned> box;
    int swizzle, fill;
  };
  std::vector<Encoding> encodings; ///< an encoded map is its index
  int maxDynamicShared = 0;        ///< as set on the function
  /// Milliseconds between any two events; by default 1.5.
  std::function<float()> elapsed;
  /// Bytes of every copy to the device, by its address.
  std::map<uint64_t, std::vector<uint8_t>> uploads;

  int count(llvm::StringRef name) const;
  void clear();

  /// Records the call; the planted fault if there is one, else success.
  cu::Result enter(const char *name);
  std::mutex mutex;
};

/// A description that passes verify(); the tests change single fields.
LaunchDescription makeLaunchDescription();
/// The smallest ELF header that says "cubin for sm_<chip>" (ABI version 8).
std::string makeCubin(unsigned chip);
/// PTX text with the given header and an entry `kernel`.
std::string makePtx(llvm::StringRef chip, llvm::StringRef version);

} // namespace humming

#endif // HUMMING_UNITTESTS_RUNTIME_FAKEDRIVER_H
