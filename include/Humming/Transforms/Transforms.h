//===- Transforms.h - Patterns and functions behind the passes --*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TRANSFORMS_TRANSFORMS_H
#define HUMMING_TRANSFORMS_TRANSFORMS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace mlir {
class ModuleOp;
class Operation;
class RewritePatternSet;
class RewriterBase;
namespace scf {
class ForOp;
}
} // namespace mlir

namespace humming {
struct KernelConfig;
struct TargetInfo;
namespace hquant {
class MatmulOp;
class QuantizeOp;
} // namespace hquant

//===----------------------------------------------------------------------===//
// Configure (stage 1 to 2)
//===----------------------------------------------------------------------===//

/// Takes the only use of `op`, the addition of a bias or a rounding, into it.
/// Returns the matmul that replaces both, or failure with a missed remark if
/// there is such a use that cannot be taken in.
mlir::FailureOr<hquant::MatmulOp> fuseEpilogue(mlir::RewriterBase &rewriter,
                                               hquant::MatmulOp op);

/// The facts of the chip named by the nearest `hquant.target` around `op`.
/// Error at `op`: there is none, it is no `#nvvm.target`, or the chip is
/// unknown.
mlir::FailureOr<const TargetInfo *> getTargetOf(mlir::Operation *op);

/// Sets `hquant.target` of `module` to the chip of `target`.
void setTarget(mlir::ModuleOp module, const TargetInfo &target);

struct ConfigSelection {
  /// Keys that replace those of the choice, in KernelConfig's form.
  llvm::StringRef config;
  /// Tokens to choose for where the type does not say; 0 is unknown.
  int64_t m = 0;
  /// Explain the choice in a diagnostic remark at the op.
  bool explain = false;
};
/// Chooses the lowering config of `op` on `target` and sets it; a config that
/// `op` has already is kept if it is legal. Error: the rule that is broken.
mlir::LogicalResult selectLoweringConfig(hquant::MatmulOp op,
                                         const TargetInfo &target,
                                         const ConfigSelection &selection = {});
/// The same for a quantize and its quantize_config.
mlir::LogicalResult selectQuantizeConfig(hquant::QuantizeOp op,
                                         const TargetInfo &target,
                                         const ConfigSelection &selection = {});

/// Adds the pattern that packs the operands of an `hquant.matmul`.
void populatePackWeightsPatterns(mlir::RewritePatternSet &patterns);

//===----------------------------------------------------------------------===//
// Tile (stage 3)
//===----------------------------------------------------------------------===//

/// Rewrites `hquant.dequant` into bit operations and packed float arithmetic on
/// the registers of the fragment. Codes without a sequence are left alone.
void populateLowerDequantPatterns(mlir::RewritePatternSet &patterns);

/// Rewrites `hquant.mma` into the instructions of its kind.
void populateMapMmaPatterns(mlir::RewritePatternSet &patterns);

/// Gives the copies of a K loop with copy=bulk to producer warps; see
/// hquant-specialize-warps. Fails with an error where the loop's parts are not
/// as convert-hquant-to-tiles leaves them.
mlir::LogicalResult specializeWarps(mlir::scf::ForOp loop,
                                    const KernelConfig &config);

/// Overlaps the copies of a K loop with its computation over `stages` buffers:
/// with cp.async groups if `async`, else through registers (2 stages). Fails
/// with an error if the loop is not copies, barrier, computation, barrier.
mlir::LogicalResult pipelineCopies(mlir::scf::ForOp loop, int64_t stages,
                                   bool async);

//===----------------------------------------------------------------------===//
// Any stage
//===----------------------------------------------------------------------===//

/// The stages of the IR; docs/HQuant.md has their contracts.
enum class Stage : uint8_t { Imported, Operator, Configured, Tile, Thread };
/// Parses `0` .. `4` or a name.
std::optional<Stage> parseStage(llvm::StringRef text);
/// Checks the contract of `stage`, reporting every violation.
mlir::LogicalResult verifyStage(mlir::ModuleOp module, Stage stage);

} // namespace humming

#endif // HUMMING_TRANSFORMS_TRANSFORMS_H
