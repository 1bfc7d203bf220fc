// An embedder: its own context, Humming's dialect and one of its passes.
#include "Humming/InitAll.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"

static const char *const source = R"mlir(
func.func @layer(%x: tensor<?x256xf16>, %w: tensor<64x256xi4>,
                 %s: tensor<64x2xf16>) -> tensor<?x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<64x2xf16>)
         quant_type = <u4, scale = f16, group = 128>
         : tensor<?x256xf16>, tensor<64x256xi4> -> tensor<?x64xf16>
  return %c : tensor<?x64xf16>
}
)mlir";

int main() {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect>();
  humming::registerAllDialects(registry);
  humming::registerAllExtensions(registry);
  humming::registerAllPasses();
  mlir::MLIRContext context(registry);
  mlir::ScopedDiagnosticHandler handler(&context, [](mlir::Diagnostic &d) {
    llvm::outs() << "error: " << d << "\n";
  });

  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  if (!module)
    return 1;
  module->print(llvm::outs());

  // The module is at stage 1, which one check confirms and the other refuses.
  for (llvm::StringRef stage : {"operator", "tile"}) {
    mlir::PassManager pm(&context);
    std::string pipeline = ("hquant-verify-stage{stage=" + stage + "}").str();
    if (mlir::failed(mlir::parsePassPipeline(pipeline, pm)))
      return 2;
    if (mlir::succeeded(pm.run(*module)))
      llvm::outs() << "verified " << stage << "\n";
  }
  return 0;
}
