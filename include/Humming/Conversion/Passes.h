//===- Passes.h - Conversions between stages --------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_CONVERSION_PASSES_H
#define HUMMING_CONVERSION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
class ModuleOp;
class OpBuilder;
class RewritePatternSet;
class TypeConverter;
namespace arith {
class ArithDialect;
}
namespace cf {
class ControlFlowDialect;
}
namespace gpu {
class GPUDialect;
class GPUFuncOp;
class GPUModuleOp;
} // namespace gpu
namespace LLVM {
class LLVMDialect;
}
namespace memref {
class MemRefDialect;
}
namespace NVVM {
class NVVMDialect;
}
namespace scf {
class SCFDialect;
}
} // namespace mlir

namespace humming {
namespace hquant {
class GatherOp;
class HQuantDialect;
class MatmulOp;
class PackOp;
class QuantizeOp;
} // namespace hquant

#define GEN_PASS_DECL
#include "Humming/Conversion/Passes.h.inc"

/// Adds the patterns that turn a linalg.matmul of a dequantized operand into
/// hquant.matmul; every one that they leave alone gets a `missed` remark.
void populateLinalgToHQuantPatterns(mlir::RewritePatternSet &patterns);

/// Builds the kernel of one configured matmul on packed operands as a
/// `gpu.func` called `name` in `module`. Fails with an error at `op` if it has
/// no lowering_config or logical operands.
mlir::FailureOr<mlir::gpu::GPUFuncOp>
buildTileProgram(mlir::OpBuilder &builder, hquant::MatmulOp op,
                 mlir::gpu::GPUModuleOp module, llvm::StringRef name);
/// The same for a configured quantize. Fails if it has no quantize_config.
mlir::FailureOr<mlir::gpu::GPUFuncOp>
buildTileProgram(mlir::OpBuilder &builder, hquant::QuantizeOp op,
                 mlir::gpu::GPUModuleOp module, llvm::StringRef name);

/// Build the kernels of one hquant.pack of weights and of one hquant.gather.
mlir::gpu::GPUFuncOp buildPackProgram(mlir::OpBuilder &builder,
                                      hquant::PackOp op,
                                      mlir::gpu::GPUModuleOp module,
                                      llvm::StringRef name);
mlir::gpu::GPUFuncOp buildGatherProgram(mlir::OpBuilder &builder,
                                        hquant::GatherOp op,
                                        mlir::gpu::GPUModuleOp module,
                                        llvm::StringRef name);

/// Patterns that lower the copy, fragment, reduction and store ops of the tile
/// stage to llvm and nvvm. Fragments become one value a register.
void populateHQuantToNVVMPatterns(const mlir::TypeConverter &converter,
                                  mlir::RewritePatternSet &patterns);

#define GEN_PASS_REGISTRATION
#include "Humming/Conversion/Passes.h.inc"

} // namespace humming

#endif // HUMMING_CONVERSION_PASSES_H
