//===- LaunchLayout.cpp - Launching pack and gather kernels ---------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Runtime/Runtime.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace humming {

namespace {
/// A pointer argument that must be there.
struct PointerArgument {
  StringLiteral name;
  const void *pointer;
  unsigned alignment;
};
/// A size, the least it may be and what it must be a multiple of.
struct SizeArgument {
  StringLiteral name;
  int32_t value, least, divisor;
};
} // namespace

static Error check(const LaunchDescription &d, StringRef operation,
                   ArrayRef<SizeArgument> sizes,
                   ArrayRef<PointerArgument> pointers) {
  auto fail = [&](StringRef argument, const Twine &expected,
                  const Twine &got) -> Error {
    return createStringError(inconvertibleErrorCode(),
                             "launch of " + d.kernelName + ": " + argument +
                                 ": expected " + expected + ", got " + got);
  };
  if (d.operation != operation)
    return fail("arguments", "those of a " + d.operation + " kernel",
                "those of a " + operation + " kernel");
  for (const SizeArgument &size : sizes) {
    if (size.value < size.least)
      return fail(size.name, "at least " + Twine(size.least),
                  Twine(size.value));
    if (size.value % size.divisor != 0)
      return fail(size.name,
                  "a multiple of " + Twine(size.divisor) +
                      ", which the kernel was compiled for",
                  Twine(size.value));
  }
  for (const PointerArgument &entry : pointers) {
    if (!entry.pointer)
      return fail(entry.name, "a device pointer", "null");
    uintptr_t address = reinterpret_cast<uintptr_t>(entry.pointer);
    if (address % entry.alignment != 0)
      return fail(entry.name,
                  "an address that is a multiple of " + Twine(entry.alignment),
                  "0x" + Twine::utohexstr(address));
  }
  return Error::success();
}

Error Kernel::launch(cu::Stream stream, const PackArguments &a) const {
  const LaunchDescription &d = launchDescription;
  unsigned divisor = unsigned(d.kDivisor);
  if (Error error =
          check(d, "pack",
                {{"n", a.n, 1, 1},
                 {"k", a.k, 1, d.kDivisor},
                 {"lds", a.lds, a.k, d.kDivisor}},
                {{"source", a.source, divisor}, {"packed", a.packed, 16}}))
    return error;
  PackArguments copy = a;
  void *parameters[] = {&copy.source, &copy.packed, &copy.n, &copy.k,
                        &copy.lds};
  return launchGrid(stream, d.grid(a.k, a.n), parameters, [&] {
    return formatv("n = {0}, k = {1}", a.n, a.k).str();
  });
}

Error Kernel::launch(cu::Stream stream, const GatherArguments &a) const {
  const LaunchDescription &d = launchDescription;
  unsigned element = activationBits / 8;
  if (Error error =
          check(d, "gather",
                {{"m", a.m, 0, 1},
                 {"k", a.k, 1, 1},
                 {"columns", a.columns, 1, d.kDivisor},
                 {"ldx", a.ldx, a.k, 1},
                 {"ldg", a.ldg, a.columns, d.kDivisor}},
                {{"x", a.x, element},
                 {"order", a.order, 4},
                 {"gathered", a.gathered, element * unsigned(d.kDivisor)}}))
    return error;
  if (a.m == 0)
    return Error::success();
  GatherArguments copy = a;
  void *parameters[] = {&copy.x, &copy.order,   &copy.gathered, &copy.m,
                        &copy.k, &copy.columns, &copy.ldx,      &copy.ldg};
  return launchGrid(stream, d.grid(a.m, a.columns), parameters, [&] {
    return formatv("m = {0}, columns = {1}", a.m, a.columns).str();
  });
}

} // namespace humming
