//===- HQuantToNVVM.cpp - Tile stage to NVVM and LLVM -----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two conversions in a row: first hquant, gpu and vector ops, with fragments
// becoming several values (scf carries them through loops one by one), then the
// structured control flow and arithmetic that is left.
//
// Kernels become llvm.func rather than staying gpu.func: parameters keep their
// attributes, shared memory is one external array, indices are i32.
//
//===----------------------------------------------------------------------===//

#include "Humming/Conversion/Passes.h"
#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "LoweringBuilder.h"
#include "LoweringPatterns.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "convert-hquant-to-nvvm"

namespace humming {
#define GEN_PASS_DEF_CONVERTHQUANTTONVVMPASS
#include "Humming/Conversion/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

constexpr StringLiteral kSharedArray = "hquant_shared";
/// Alignment of every buffer: ldmatrix rows and bank groups start on it.
constexpr int64_t kBufferAlignment = 128;
/// Alignment of the first buffer, the activations: the pattern of the 128-byte
/// swizzle repeats every 8 rows of 128 bytes.
constexpr int64_t kArrayAlignment = 1024;
/// Of a CUtensorMap (cuda.h).
constexpr int64_t kTensorMapBytes = 128, kTensorMapAlignment = 64;

/// Fragments to registers, workgroup buffers to pointers, index to i32.
void configureTypes(TypeConverter &converter) {
  converter.addConversion([](Type type) { return type; });
  converter.addConversion([](IndexType type) -> Type {
    return IntegerType::get(type.getContext(), 32);
  });
  converter.addConversion([](MemRefType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext(), 3);
  });
  converter.addConversion(
      [](VectorType type,
         SmallVectorImpl<Type> &results) -> std::optional<LogicalResult> {
        Type element = type.getElementType();
        if (!element.isInteger(32) && !element.isF32())
          return std::nullopt;
        if (!isFragment(type))
          return failure();
        results.append(type.getNumElements(), element);
        return success();
      });
}

/// A thread, block or grid index as the special register of its dimension.
template <typename GpuOp, typename X, typename Y, typename Z>
struct LowerIndex : OpConversionPattern<GpuOp> {
  using OpConversionPattern<GpuOp>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(GpuOp op, typename GpuOp::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type i32 = rewriter.getI32Type();
    switch (op.getDimension()) {
    case gpu::Dimension::x:
      rewriter.replaceOpWithNewOp<X>(op, i32);
      break;
    case gpu::Dimension::y:
      rewriter.replaceOpWithNewOp<Y>(op, i32);
      break;
    case gpu::Dimension::z:
      rewriter.replaceOpWithNewOp<Z>(op, i32);
      break;
    }
    return success();
  }
};

struct LowerIndexCast : OpConversionPattern<arith::IndexCastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::IndexCastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!adaptor.getIn().getType().isInteger(32) ||
        !getTypeConverter()->convertType(op.getType()).isInteger(32))
      return rewriter.notifyMatchFailure(op, "expected a cast of 32 bits");
    rewriter.replaceOp(op, adaptor.getIn());
    return success();
  }
};

struct LowerBarrier : OpConversionPattern<gpu::BarrierOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(gpu::BarrierOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder{rewriter, op.getLoc()}.barrier();
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerReturn : OpConversionPattern<gpu::ReturnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(gpu::ReturnOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange());
    return success();
  }
};

struct ConvertHQuantToNVVMPass
    : humming::impl::ConvertHQuantToNVVMPassBase<ConvertHQuantToNVVMPass> {
  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    SmallVector<gpu::GPUFuncOp> kernels(module.getOps<gpu::GPUFuncOp>());
    if (!kernels.empty() && failed(createSharedArray(module)))
      return signalPassFailure();
    for (gpu::GPUFuncOp kernel : kernels)
      if (failed(convertFunction(kernel)))
        return signalPassFailure();
    if (failed(lowerOps(module)) || failed(lowerControlFlow(module)))
      return signalPassFailure();
    formLop3(module);
  }

  LogicalResult createSharedArray(gpu::GPUModuleOp module) {
    if (Operation *found = module.lookupSymbol(kSharedArray)) {
      auto global = dyn_cast<LLVM::GlobalOp>(found);
      if (global && global.getAddrSpace() == 3)
        return success();
      return found->emitOpError("expected no other symbol of the name of the "
                                "shared memory, ")
             << kSharedArray;
    }
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    LLVM::GlobalOp::create(builder, module.getLoc(),
                           LLVM::LLVMArrayType::get(builder.getI8Type(), 0),
                           /*isConstant=*/false, LLVM::Linkage::External,
                           kSharedArray, Attribute(),
                           /*alignment=*/kArrayAlignment, /*addrSpace=*/3);
    return success();
  }

  /// What of a function has no counterpart in a kernel of stage 4.
  LogicalResult checkFunction(gpu::GPUFuncOp kernel) {
    if (!kernel.isKernel())
      return kernel.emitOpError("expected a kernel function");
    for (Type type : kernel.getFunctionType().getInputs())
      if (!isa<IntegerType, FloatType, LLVM::LLVMPointerType>(type))
        return kernel.emitOpError("expected arguments of types that are "
                                  "passed to a kernel as they are, got ")
               << type;
    if (kernel.getNumPrivateAttributions() != 0)
      return kernel.emitOpError("expected no private buffers; values of a lane "
                                "stay in registers");
    int64_t total = 0;
    for (BlockArgument buffer : kernel.getWorkgroupAttributions()) {
      auto type = dyn_cast<MemRefType>(buffer.getType());
      if (!type || !isWorkgroupBuffer(type) ||
          !type.getElementType().isInteger(8))
        return kernel.emitOpError("expected workgroup buffers of i8 and static "
                                  "shape, got ")
               << buffer.getType();
      int64_t bytes = 1;
      for (int64_t extent : type.getShape())
        if (llvm::MulOverflow(bytes, extent, bytes) || bytes > INT32_MAX)
          return kernel.emitOpError("expected buffers of less than 2 GiB, got ")
                 << type;
      total += bytes;
    }
    if (total > INT32_MAX / 2)
      return kernel.emitOpError("expected less than 1 GiB of buffers, got ")
             << total << " bytes";
    return success();
  }

  /// A tensor map is read where it was passed: its address is that of the
  /// parameter.
  static void setTensorMap(LLVM::LLVMFuncOp function, unsigned argument) {
    Builder builder(function.getContext());
    function.setArgAttr(argument, LLVM::LLVMDialect::getByValAttrName(),
                        TypeAttr::get(LLVM::LLVMArrayType::get(
                            builder.getI8Type(), kTensorMapBytes)));
    function.setArgAttr(argument, LLVM::LLVMDialect::getAlignAttrName(),
                        builder.getI64IntegerAttr(kTensorMapAlignment));
    function.setArgAttr(argument, NVVM::NVVMDialect::getGridConstantAttrName(),
                        builder.getUnitAttr());
  }

  /// Moves the body into an llvm.func and gives every buffer its place.
  LogicalResult convertFunction(gpu::GPUFuncOp kernel) {
    if (failed(checkFunction(kernel)))
      return failure();
    OpBuilder builder(kernel);
    Location loc = kernel.getLoc();
    MLIRContext *context = builder.getContext();
    auto pointer = LLVM::LLVMPointerType::get(context, 3);
    auto function = LLVM::LLVMFuncOp::create(
        builder, loc, kernel.getName(),
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                    kernel.getFunctionType().getInputs()));
    function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                      builder.getUnitAttr());
    if (auto block = kernel.getKnownBlockSizeAttr()) {
      function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), block);
      function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                        builder.getI32IntegerAttr(1));
    }
    if (auto cluster = kernel.getKnownClusterSizeAttr())
      function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(), cluster);
    if (Attribute consumers = kernel->getAttr(kConsumersAttr))
      function->setAttr(kConsumersAttr, consumers);
    for (auto [i, type] :
         llvm::enumerate(kernel.getFunctionType().getInputs())) {
      auto argument = dyn_cast<LLVM::LLVMPointerType>(type);
      if (!argument)
        continue;
      if (argument.getAddressSpace() == 0) {
        setTensorMap(function, i);
        continue;
      }
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                          builder.getUnitAttr());
    }

    // Attributions are trailing block arguments; replace them by addresses.
    SmallVector<BlockArgument> buffers(kernel.getWorkgroupAttributions());
    unsigned numArguments = kernel.getNumArguments();
    function.getBody().takeBody(kernel.getBody());
    Block &entry = function.getBody().front();
    builder.setInsertionPointToStart(&entry);
    Value base = LLVM::AddressOfOp::create(builder, loc, pointer, kSharedArray);
    int64_t offset = 0, total = 0;
    for (auto [i, buffer] : llvm::enumerate(buffers)) {
      auto type = cast<MemRefType>(buffer.getType());
      // The last buffer is scratch: it begins where the others begin.
      bool isScratch = i + 1 == buffers.size();
      int64_t place = isScratch ? 0 : offset;
      int64_t bytes = llvm::alignTo(type.getNumElements(), kBufferAlignment);
      offset += bytes;
      total = std::max(total, place + bytes);
      Value address =
          LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base,
                              ArrayRef<LLVM::GEPArg>{int32_t(place)});
      Value cast =
          UnrealizedConversionCastOp::create(builder, loc, type, address)
              .getResult(0);
      buffer.replaceAllUsesWith(cast);
    }
    entry.eraseArguments(numArguments, entry.getNumArguments() - numArguments);
    function->setAttr("hquant.shared_memory", builder.getI64IntegerAttr(total));
    kernel.erase();
    return success();
  }

  LogicalResult lowerOps(gpu::GPUModuleOp module) {
    MLIRContext *context = &getContext();
    TypeConverter converter;
    configureTypes(converter);
    // The buffers' casts become identities.
    auto materialize = [](OpBuilder &builder, Type type, ValueRange inputs,
                          Location loc) -> Value {
      return UnrealizedConversionCastOp::create(builder, loc, type, inputs)
          .getResult(0);
    };
    converter.addSourceMaterialization(materialize);
    converter.addTargetMaterialization(materialize);

    ConversionTarget target(*context);
    target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
    target.addIllegalDialect<HQuantDialect, gpu::GPUDialect,
                             vector::VectorDialect>();
    target.addLegalOp<gpu::GPUModuleOp, UnrealizedConversionCastOp>();
    target.addIllegalOp<arith::IndexCastOp>();
    target.addDynamicallyLegalOp<arith::ConstantOp>(
        [&](arith::ConstantOp op) { return converter.isLegal(op.getType()); });
    target.addDynamicallyLegalOp<arith::SIToFPOp>(
        [&](arith::SIToFPOp op) { return converter.isLegal(op.getType()); });
    RewritePatternSet patterns(context);
    populateHQuantToNVVMPatterns(converter, patterns);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return failure();
    module.walk([](UnrealizedConversionCastOp cast) {
      if (cast->use_empty())
        cast.erase();
    });
    return success();
  }

  /// `(x & mask) | magic` and `(x & mask) ^ magic` with two constants, the
  /// heart of most dequantizations, in one instruction. From two instructions
  /// ptxas (13.0) makes two, each with an immediate; of this one it keeps a
  /// constant in a register.
  static void formLop3(gpu::GPUModuleOp module) {
    auto constantOf = [](Value v) {
      auto op = v.getDefiningOp<LLVM::ConstantOp>();
      return op && isa<IntegerAttr>(op.getValue()) ? v : Value();
    };
    SmallVector<Operation *> work;
    module.walk([&](Operation *op) {
      if (isa<LLVM::OrOp, LLVM::XOrOp>(op) &&
          op->getResult(0).getType().isInteger(32))
        work.push_back(op);
    });
    for (Operation *op : work) {
      for (unsigned i : {0u, 1u}) {
        auto masked = op->getOperand(i).getDefiningOp<LLVM::AndOp>();
        Value magic = constantOf(op->getOperand(1 - i));
        if (!masked || !masked->hasOneUse() || !magic)
          continue;
        Value mask = constantOf(masked.getRhs());
        if (!mask)
          continue;
        OpBuilder builder(op);
        // The table of (a & b) | c or (a & b) ^ c.
        StringRef table = isa<LLVM::OrOp>(op) ? "0xEA" : "0x6A";
        auto lop3 = LLVM::InlineAsmOp::create(
            builder, op->getLoc(), builder.getI32Type(),
            ValueRange{masked.getLhs(), mask, magic},
            ("lop3.b32 $0, $1, $2, $3, " + table + ";").str(), "=r,r,n,n",
            /*has_side_effects=*/false, /*is_align_stack=*/false,
            LLVM::TailCallKind::None,
            LLVM::AsmDialectAttr::get(builder.getContext(),
                                      LLVM::AsmDialect::AD_ATT),
            ArrayAttr());
        op->getResult(0).replaceAllUsesWith(lop3.getResult(0));
        op->erase();
        masked->erase();
        break;
      }
    }
  }

  LogicalResult lowerControlFlow(gpu::GPUModuleOp module) {
    MLIRContext *context = &getContext();
    LowerToLLVMOptions options(context);
    options.overrideIndexBitwidth(32);
    LLVMTypeConverter converter(context, options);
    LLVMConversionTarget target(*context);
    target.addLegalDialect<NVVM::NVVMDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    RewritePatternSet patterns(context);
    populateSCFToControlFlowConversionPatterns(patterns);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    return applyFullConversion(module, target, std::move(patterns));
  }
};

} // namespace

void humming::populateHQuantToNVVMPatterns(const TypeConverter &converter,
                                           RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  populateCopyLoweringPatterns(converter, patterns);
  populateRingLoweringPatterns(converter, patterns);
  populateFragmentLoweringPatterns(converter, patterns);
  populateLayoutLoweringPatterns(converter, patterns);
  populateWarpgroupLoweringPatterns(converter, patterns);
  populateEpilogueLoweringPatterns(converter, patterns);
  populateStoreLoweringPatterns(converter, patterns);
  populateSegmentLoweringPatterns(converter, patterns);
  patterns.add<LowerIndex<gpu::ThreadIdOp, NVVM::ThreadIdXOp, NVVM::ThreadIdYOp,
                          NVVM::ThreadIdZOp>,
               LowerIndex<gpu::BlockIdOp, NVVM::BlockIdXOp, NVVM::BlockIdYOp,
                          NVVM::BlockIdZOp>,
               LowerIndex<gpu::GridDimOp, NVVM::GridDimXOp, NVVM::GridDimYOp,
                          NVVM::GridDimZOp>,
               LowerIndexCast, LowerBarrier, LowerReturn>(converter, context);
}
