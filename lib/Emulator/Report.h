//===- Report.h - From counts per instruction to a Report -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_REPORT_H
#define HUMMING_LIB_EMULATOR_REPORT_H

#include "Exec.h"

namespace humming {
namespace emulator {

/// Sums the counts of all workers by kernel and by loop.
Report makeReport(const Launch &launch);

} // namespace emulator
} // namespace humming

#endif // HUMMING_LIB_EMULATOR_REPORT_H
