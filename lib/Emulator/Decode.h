//===- Decode.h - From one parsed instruction to an Inst -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parser hands every instruction (opcode words and parsed operands) to a
// Decoder; the decode function of its family reads the modifiers, turns the
// operands into rows and picks a handler. A family answers with one of:
// - ok;
// - unsupported(why): becomes an instruction that faults when executed, so a
//   module may hold kernels for chips that are not emulated;
// - bad(why): the text is not PTX, a syntax error.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_DECODE_H
#define HUMMING_LIB_EMULATOR_DECODE_H

#include "Humming/Emulator/Arithmetic.h"
#include "IR.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace humming {
namespace emulator {

/// Special registers that are not constant for a warp are read at run time.
enum class SReg : uint16_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NWarpId,
  SmId,
  NSmId,
  GridId,
  LaneMaskEq,
  LaneMaskLe,
  LaneMaskLt,
  LaneMaskGe,
  LaneMaskGt,
  Clock,
  ClockHi,
  Clock64,
  GlobalTimer,
  GlobalTimerLo,
  GlobalTimerHi,
  DynamicSmemSize,
  TotalSmemSize,
  AggrSmemSize,
  ClusterIdX,
  ClusterIdY,
  ClusterIdZ,
  NClusterIdX,
  NClusterIdY,
  NClusterIdZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtaRank,
  ClusterNctaRank,
  IsExplicitCluster,
  CurrentGraphExec,
  Unknown,
};
SReg parseSReg(llvm::StringRef name, llvm::StringRef component);

/// A parsed operand.
struct POperand {
  enum Kind : uint8_t {
    Reg,
    Imm,
    Symbol,      ///< variable + offset
    ParamSymbol, ///< entry or call parameter + offset
    FunctionSymbol,
    Vector,
    Address, ///< base (elements[0]) + offset, coordinates in elements[1...]
    Pair,    ///< a|b
    Discard, ///< _
    Special,
    Label, ///< an identifier that names nothing else (yet)
  };
  Kind kind = Imm;
  bool negated = false;  ///< !p
  uint8_t floatBits = 0; ///< Imm: 32/64 for hex floats, 1 for decimal ones
  Ty ty = Ty::None;      ///< Reg: declared type
  Operand reg;           ///< Reg
  uint64_t bits = 0;     ///< Imm
  uint32_t index = 0;    ///< Symbol, FunctionSymbol
  uint32_t paramSize = 0, paramAlign = 1; ///< ParamSymbol
  bool entryParam = false;                ///< ParamSymbol: of the kernel
  int64_t offset = 0;
  SReg sreg = SReg::Unknown;
  llvm::StringRef name;
  std::vector<POperand> elements;
};

/// The services of the parser that decoding needs.
class DecodeHost {
public:
  virtual ~DecodeHost() = default;
  virtual Operand constant(Operand::Width width, uint64_t lo, uint64_t hi) = 0;
  /// A constant row that holds a symbol's address once layout is known.
  virtual Operand symbolConstant(const POperand &symbol,
                                 Operand::Width width) = 0;
  virtual Operand scratch(Operand::Width width) = 0;
  /// Emits `mov tmp, %sreg` before the current instruction.
  virtual Operand readSpecial(SReg sreg, Operand::Width width) = 0;
  virtual Function &function() = 0;
  virtual Module &module() = 0;
};

class Decoder {
public:
  Decoder(DecodeHost &host, Inst &inst, llvm::ArrayRef<llvm::StringRef> words,
          llvm::ArrayRef<POperand> operands)
      : host(host), inst(inst), opcode(words.front()),
        mods(words.begin() + 1, words.end()), operands(operands),
        used(mods.size(), false) {}

  DecodeHost &host;
  Inst &inst;
  llvm::StringRef opcode;
  llvm::SmallVector<llvm::StringRef, 8> mods;
  llvm::ArrayRef<POperand> operands;
  llvm::SmallVector<Operand, 16> out;

  enum Outcome : uint8_t { Ok, Unsupported, Bad };
  Outcome outcome = Ok;
  std::string why;
  void unsupported(const llvm::Twine &reason) {
    if (outcome == Ok) {
      outcome = Unsupported;
      why = reason.str();
    }
  }
  void bad(const llvm::Twine &reason) {
    if (outcome != Bad) {
      outcome = Bad;
      why = reason.str();
    }
  }
  bool ok() const { return outcome == Ok; }

  /// Consumes the modifier if present.
  bool mod(llvm::StringRef word) {
    for (size_t i = 0; i < mods.size(); ++i)
      if (!used[i] && mods[i] == word) {
        used[i] = true;
        return true;
      }
    return false;
  }
  /// Consumes modifiers that start with \p prefix (cache hints).
  void dropPrefix(llvm::StringRef prefix) {
    for (size_t i = 0; i < mods.size(); ++i)
      if (mods[i].starts_with(prefix))
        used[i] = true;
  }
  /// Consumes the next unused modifier that is a type; Ty::None without.
  Ty type();
  /// The first unused modifier; empty when none is left.
  llvm::StringRef peek() const {
    for (size_t i = 0; i < mods.size(); ++i)
      if (!used[i])
        return mods[i];
    return "";
  }
  llvm::StringRef take() {
    for (size_t i = 0; i < mods.size(); ++i)
      if (!used[i]) {
        used[i] = true;
        return mods[i];
      }
    return "";
  }
  void rounding(ptx::Rounding &r);
  /// After all modifiers were read: what is left is not supported.
  void finishModifiers() {
    for (size_t i = 0; i < mods.size(); ++i)
      if (!used[i])
        return unsupported("modifier '." + mods[i] + "' of '" + opcode + "'");
  }

  bool expectOperands(size_t low, size_t high) {
    if (operands.size() >= low && operands.size() <= high)
      return true;
    bad("expected " + llvm::Twine(low) +
        (low == high ? llvm::Twine("") : " to " + llvm::Twine(high)) +
        " operands of '" + opcode + "', got " + llvm::Twine(operands.size()));
    return false;
  }
  bool expectOperands(size_t n) { return expectOperands(n, n); }

  static Operand::Width widthOf(Ty ty) {
    if (ty == Ty::Pred)
      return Operand::Pred;
    unsigned bits = bitsOf(ty);
    return bits <= 32   ? Operand::W32
           : bits == 64 ? Operand::W64
                        : Operand::W128;
  }

  /// Appends a destination of type \p ty. With \p wider the register may be
  /// wider than the type.
  void dst(const POperand &op, Ty ty, bool wider = false);
  /// Appends a source. An immediate is converted to \p ty.
  void src(const POperand &op, Ty ty, bool wider = false);
  Operand source(const POperand &op, Ty ty, bool wider = false);
  Operand destination(const POperand &op, Ty ty, bool wider = false);
  /// Appends the address row and displacement of `[...]`.
  void address(const POperand &op);
  /// Appends all elements of a `{...}` (or the operand itself) as \p dest.
  void vector(const POperand &op, Ty ty, bool dest, unsigned expected);
  bool immediate(const POperand &op, int64_t &value);

  void classify(InstClass cls, Flow flow = Flow::None) {
    inst.cls = cls;
    inst.flow = flow;
  }

private:
  llvm::SmallVector<bool, 8> used;
};

using DecodeFn = void (*)(Decoder &);
/// The decode function of an opcode's family; null for unknown opcodes.
DecodeFn findDecoder(llvm::StringRef opcode);

void decodeInteger(Decoder &d);
void decodeFloat(Decoder &d);
void decodeConvert(Decoder &d);
void decodeCompare(Decoder &d);
void decodeMove(Decoder &d);
void decodeMemory(Decoder &d);
void decodeAtomic(Decoder &d);
void decodeWarp(Decoder &d);
void decodeSync(Decoder &d);
void decodeMbarrier(Decoder &d);
void decodeAsync(Decoder &d);
void decodeBulk(Decoder &d);
void decodeStoreAsync(Decoder &d);
void decodeMatrix(Decoder &d);
void decodeBlackwell(Decoder &d);
void decodeWgmma(Decoder &d);
void decodeMisc(Decoder &d);
/// add, mul, min, setp... of which the type decides integer or float.
bool lastTypeIsFloat(const Decoder &d);

} // namespace emulator
} // namespace humming

#endif // HUMMING_LIB_EMULATOR_DECODE_H
