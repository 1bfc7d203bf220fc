//===- CodeGen.h - Stage 4 to PTX -------------------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_COMPILER_CODEGEN_H
#define HUMMING_LIB_COMPILER_CODEGEN_H

#include "Humming/Runtime/LaunchDescription.h"
#include "Humming/Target/KernelConfig.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace humming {

/// Cleans a module up for code generation: the handful of passes that matter
/// for straight-line kernels with one loop. The default -O3 pipeline takes
/// three times as long for the same registers.
llvm::Error optimizeModule(llvm::Module &module, llvm::StringRef chip,
                           int32_t ptxVersion);

/// PTX of `module`. An instruction that the target lacks aborts inside LLVM;
/// that is caught and becomes an error.
llvm::Expected<std::string> emitPtx(std::unique_ptr<llvm::Module> module,
                                    llvm::StringRef chip, int32_t ptxVersion);

/// How to launch the kernel `name` of a module of stage 4. `sharedBytes` is the
/// function's hquant.shared_memory.
LaunchDescription describeMatmulLaunch(const MatmulProblem &problem,
                                       const KernelConfig &config,
                                       llvm::StringRef name,
                                       llvm::StringRef chip, int32_t ptxVersion,
                                       int64_t sharedBytes);

} // namespace humming

#endif // HUMMING_LIB_COMPILER_CODEGEN_H
