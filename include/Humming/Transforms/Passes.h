//===- Passes.h - Passes within a stage -------------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass classes' factories and registration; what the passes do is in
// Passes.td, the functions that they are made of are in Transforms.h.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TRANSFORMS_PASSES_H
#define HUMMING_TRANSFORMS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
namespace arith {
class ArithDialect;
} // namespace arith
namespace gpu {
class GPUDialect;
class GPUFuncOp;
class GPUModuleOp;
} // namespace gpu
namespace LLVM {
class LLVMDialect;
} // namespace LLVM
namespace NVVM {
class NVVMDialect;
} // namespace NVVM
namespace scf {
class SCFDialect;
} // namespace scf
namespace vector {
class VectorDialect;
} // namespace vector
} // namespace mlir

namespace humming {
namespace hquant {
class HQuantDialect;
} // namespace hquant

#define GEN_PASS_DECL
#include "Humming/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Humming/Transforms/Passes.h.inc"

} // namespace humming

#endif // HUMMING_TRANSFORMS_PASSES_H
