//===- CheckResources.cpp - Kernel against the target's limits --*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Target/TargetInfo.h"
#include "Humming/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "hquant-check-resources"

namespace humming {
#define GEN_PASS_DEF_CHECKRESOURCESPASS
#include "Humming/Transforms/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

struct CheckResourcesPass
    : humming::impl::CheckResourcesPassBase<CheckResourcesPass> {
  using CheckResourcesPassBase::CheckResourcesPassBase;

  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    NVVM::NVVMTargetAttr target;
    if (ArrayAttr targets = module.getTargetsAttr())
      for (Attribute attr : targets)
        if (auto nvvm = dyn_cast<NVVM::NVVMTargetAttr>(attr))
          target = nvvm;
    if (!target) {
      module.emitOpError("expected an #nvvm.target, whose limits are checked");
      return signalPassFailure();
    }
    llvm::Expected<const TargetInfo *> info = getTargetInfo(target.getChip());
    if (!info) {
      module.emitOpError(llvm::toString(info.takeError()));
      return signalPassFailure();
    }
    for (auto kernel : module.getOps<gpu::GPUFuncOp>())
      if (failed(check(kernel, **info)))
        return signalPassFailure();
  }

  LogicalResult check(gpu::GPUFuncOp kernel, const TargetInfo &target) {
    // Buffers stand one after another; the last one, scratch, shares the memory
    // of the others (see convert-hquant-to-nvvm).
    int64_t buffers = 0, scratch = 0;
    ArrayRef<BlockArgument> workgroup = kernel.getWorkgroupAttributions();
    for (auto [i, buffer] : llvm::enumerate(workgroup)) {
      auto type = dyn_cast<MemRefType>(buffer.getType());
      if (!type || !type.hasStaticShape() ||
          !type.getElementType().isInteger(8))
        return kernel.emitOpError("expected workgroup buffers of i8 and static "
                                  "shape, got ")
               << buffer.getType();
      // Saturates: what does not fit 31 bits does not fit any chip either.
      int64_t bytes = 1;
      for (int64_t extent : type.getShape())
        if (llvm::MulOverflow(bytes, extent, bytes) || bytes > INT32_MAX)
          bytes = INT32_MAX;
      (i + 1 == workgroup.size() ? scratch : buffers) +=
          llvm::alignTo(bytes, 128);
    }
    int64_t total = std::max(buffers, scratch);
    if (total > target.sharedMemoryPerBlock)
      return kernel.emitOpError("expected at most ")
             << target.sharedMemoryPerBlock << " bytes of shared memory on "
             << target.chip << ", got " << total
             << "; take fewer stages or a smaller block";
    auto block = kernel.getKnownBlockSizeAttr();
    if (!block)
      return kernel.emitOpError("expected a known_block_size");
    // At most 1024 * 2^31 before it is refused: no overflow.
    int64_t threads = 1;
    for (int32_t extent : block.asArrayRef())
      if (extent <= 0 || (threads *= extent) > 1024) {
        threads = 0;
        break;
      }
    if (threads == 0 || threads % 32 != 0)
      return kernel.emitOpError("expected a multiple of 32 threads, at most "
                                "1024, got a block of ")
             << block.asArrayRef();
    if (explain)
      kernel.emitRemark("uses ")
          << total << " of " << target.sharedMemoryPerBlock
          << " bytes of shared memory on " << target.chip << " and " << threads
          << " threads";
    return success();
  }
};

} // namespace
