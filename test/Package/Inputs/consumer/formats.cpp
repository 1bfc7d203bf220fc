// The MLIR-free part of the package: what a code of a number format means.
#include "Humming/Quant/NumberFormat.h"
#include "llvm/Support/raw_ostream.h"

static bool show(const char *name, unsigned code) {
  llvm::Expected<humming::NumberFormat> format =
      humming::NumberFormat::parse(name);
  if (!format) {
    llvm::errs() << llvm::toString(format.takeError()) << "\n";
    return false;
  }
  llvm::outs() << format->str() << ": " << unsigned(format->bits)
               << " bits, code " << code << " is "
               << llvm::format("%g", format->decode(code)) << "\n";
  return true;
}

int main() { return show("u4", 15) && show("e4m3", 126) ? 0 : 1; }
