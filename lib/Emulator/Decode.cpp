//===- Decode.cpp - From one parsed instruction to an Inst -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decode.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/bit.h"

using namespace llvm;

namespace humming {
namespace emulator {

Ty parseTy(StringRef text) {
  return StringSwitch<Ty>(text)
      .Case("pred", Ty::Pred)
      .Case("b8", Ty::B8)
      .Case("b16", Ty::B16)
      .Case("b32", Ty::B32)
      .Case("b64", Ty::B64)
      .Case("b128", Ty::B128)
      .Case("u8", Ty::U8)
      .Case("u16", Ty::U16)
      .Case("u32", Ty::U32)
      .Case("u64", Ty::U64)
      .Case("s8", Ty::S8)
      .Case("s16", Ty::S16)
      .Case("s32", Ty::S32)
      .Case("s64", Ty::S64)
      .Case("f16", Ty::F16)
      .Case("f16x2", Ty::F16x2)
      .Case("bf16", Ty::BF16)
      .Case("bf16x2", Ty::BF16x2)
      .Case("f32", Ty::F32)
      .Case("f64", Ty::F64)
      .Case("u16x2", Ty::U16x2)
      .Case("s16x2", Ty::S16x2)
      .Case("f32x2", Ty::F32x2)
      .Default(Ty::None);
}

unsigned bitsOf(Ty ty) {
  switch (ty) {
  case Ty::None:
    return 0;
  case Ty::Pred:
    return 1;
  case Ty::B8:
  case Ty::U8:
  case Ty::S8:
    return 8;
  case Ty::B16:
  case Ty::U16:
  case Ty::S16:
  case Ty::F16:
  case Ty::BF16:
    return 16;
  case Ty::B32:
  case Ty::U32:
  case Ty::S32:
  case Ty::F32:
  case Ty::F16x2:
  case Ty::BF16x2:
  case Ty::U16x2:
  case Ty::S16x2:
    return 32;
  case Ty::B64:
  case Ty::U64:
  case Ty::S64:
  case Ty::F64:
  case Ty::F32x2:
    return 64;
  case Ty::B128:
    return 128;
  }
  return 0;
}

StringRef nameOf(InstClass cls) {
  static const char *const names[] = {
      "integer",     "logic",        "move",        "float",        "half",
      "double",      "convert",      "special",     "predicate",    "control",
      "global-load", "global-store", "shared-load", "shared-store", "local",
      "param",       "atomic",       "async-copy",  "bulk",         "matrix",
      "mma",         "wgmma",        "warp",        "barrier",      "mbarrier",
      "fence",       "other"};
  static_assert(sizeof(names) / sizeof(*names) == size_t(InstClass::Count));
  return names[size_t(cls)];
}

StringRef Module::fileOf(uint32_t loc) const {
  auto it = files.find(locs[loc].file);
  return it == files.end() ? StringRef() : StringRef(it->second);
}

SReg parseSReg(StringRef name, StringRef component) {
  int axis = StringSwitch<int>(component)
                 .Case("x", 0)
                 .Case("y", 1)
                 .Case("z", 2)
                 .Default(-1);
  if (!component.empty()) {
    if (axis < 0)
      return SReg::Unknown;
    SReg base = StringSwitch<SReg>(name)
                    .Case("%tid", SReg::TidX)
                    .Case("%ntid", SReg::NtidX)
                    .Case("%ctaid", SReg::CtaidX)
                    .Case("%nctaid", SReg::NctaidX)
                    .Case("%clusterid", SReg::ClusterIdX)
                    .Case("%nclusterid", SReg::NClusterIdX)
                    .Case("%cluster_ctaid", SReg::ClusterCtaidX)
                    .Case("%cluster_nctaid", SReg::ClusterNctaidX)
                    .Default(SReg::Unknown);
    return base == SReg::Unknown ? base : SReg(unsigned(base) + axis);
  }
  return StringSwitch<SReg>(name)
      .Case("%laneid", SReg::LaneId)
      .Case("%warpid", SReg::WarpId)
      .Case("%nwarpid", SReg::NWarpId)
      .Case("%smid", SReg::SmId)
      .Case("%nsmid", SReg::NSmId)
      .Case("%gridid", SReg::GridId)
      .Case("%lanemask_eq", SReg::LaneMaskEq)
      .Case("%lanemask_le", SReg::LaneMaskLe)
      .Case("%lanemask_lt", SReg::LaneMaskLt)
      .Case("%lanemask_ge", SReg::LaneMaskGe)
      .Case("%lanemask_gt", SReg::LaneMaskGt)
      .Case("%clock", SReg::Clock)
      .Case("%clock_hi", SReg::ClockHi)
      .Case("%clock64", SReg::Clock64)
      .Case("%globaltimer", SReg::GlobalTimer)
      .Case("%globaltimer_lo", SReg::GlobalTimerLo)
      .Case("%globaltimer_hi", SReg::GlobalTimerHi)
      .Case("%dynamic_smem_size", SReg::DynamicSmemSize)
      .Case("%total_smem_size", SReg::TotalSmemSize)
      .Case("%aggr_smem_size", SReg::AggrSmemSize)
      .Case("%cluster_ctarank", SReg::ClusterCtaRank)
      .Case("%cluster_nctarank", SReg::ClusterNctaRank)
      .Case("%is_explicit_cluster", SReg::IsExplicitCluster)
      .Case("%current_graph_exec", SReg::CurrentGraphExec)
      .Default(SReg::Unknown);
}

Ty Decoder::type() {
  for (size_t i = 0; i < mods.size(); ++i) {
    if (used[i])
      continue;
    Ty ty = parseTy(mods[i]);
    if (ty != Ty::None) {
      used[i] = true;
      return ty;
    }
  }
  return Ty::None;
}

void Decoder::rounding(ptx::Rounding &r) {
  if (mod("rn") || mod("rni"))
    r = ptx::Rounding::RN;
  else if (mod("rz") || mod("rzi"))
    r = ptx::Rounding::RZ;
  else if (mod("rm") || mod("rmi"))
    r = ptx::Rounding::RM;
  else if (mod("rp") || mod("rpi"))
    r = ptx::Rounding::RP;
  else if (mod("rna"))
    r = ptx::Rounding::RNA;
}

/// The bits of an immediate in a register of type \p ty.
static uint64_t immediateBits(const POperand &op, Ty ty) {
  uint64_t bits = op.bits;
  if (op.floatBits == 32) {
    if (ty == Ty::F64)
      return llvm::bit_cast<uint64_t>(
          double(llvm::bit_cast<float>(uint32_t(bits))));
    return bits;
  }
  if (op.floatBits == 64 || op.floatBits == 1) {
    double value = llvm::bit_cast<double>(bits);
    if (ty == Ty::F32 || (ty == Ty::B32 && op.floatBits == 1))
      return llvm::bit_cast<uint32_t>(float(value));
    if (ty == Ty::F16)
      return ptx::fromDouble(ptx::FloatType::F16, value);
    if (ty == Ty::BF16)
      return ptx::fromDouble(ptx::FloatType::BF16, value);
    return bits;
  }
  if (ty == Ty::F32)
    return bits; // an integer immediate for a float is taken as bits
  unsigned width = bitsOf(ty);
  return width >= 64 ? bits : bits & ((uint64_t(1) << width) - 1);
}

Operand Decoder::source(const POperand &op, Ty ty, bool wider) {
  Operand::Width width = widthOf(ty);
  switch (op.kind) {
  case POperand::Reg:
    if (op.reg.width() == width)
      return op.reg;
    if (wider && !op.reg.isPred() && width != Operand::Pred &&
        op.reg.width() > width)
      return op.reg;
    bad("expected a " + Twine(bitsOf(ty)) + "-bit register, got '" + op.name +
        "' of " + Twine(bitsOf(op.ty)) + " bits");
    return op.reg;
  case POperand::Imm:
    if (width == Operand::Pred) {
      bad("expected a predicate, got an immediate");
      return Operand();
    }
    return host.constant(width, immediateBits(op, ty),
                         int64_t(op.bits) < 0 && !op.floatBits ? ~uint64_t(0)
                                                               : 0);
  case POperand::Symbol:
  case POperand::ParamSymbol:
  case POperand::FunctionSymbol:
    if (width == Operand::Pred || bitsOf(ty) < 32) {
      bad("expected a value, got the address of '" + op.name + "'");
      return Operand();
    }
    return host.symbolConstant(op, width);
  case POperand::Special:
    if (width == Operand::Pred) {
      bad("expected a predicate, got '" + op.name + "'");
      return Operand();
    }
    return host.readSpecial(op.sreg, width);
  case POperand::Label:
    bad("use of undeclared name '" + op.name + "'");
    return Operand();
  default:
    bad("expected a register or an immediate");
    return Operand();
  }
}

Operand Decoder::destination(const POperand &op, Ty ty, bool wider) {
  Operand::Width width = widthOf(ty);
  if (op.kind == POperand::Discard)
    return host.scratch(width);
  if (op.kind == POperand::Label) {
    bad("use of undeclared name '" + op.name + "'");
    return Operand();
  }
  if (op.kind != POperand::Reg) {
    bad("expected a register as destination");
    return host.scratch(width);
  }
  if (op.reg.width() == width)
    return op.reg;
  if (wider && !op.reg.isPred() && width != Operand::Pred &&
      op.reg.width() > width)
    return op.reg;
  bad("expected a " + Twine(bitsOf(ty)) + "-bit destination, got '" + op.name +
      "' of " + Twine(bitsOf(op.ty)) + " bits");
  return op.reg;
}

void Decoder::dst(const POperand &op, Ty ty, bool wider) {
  out.push_back(destination(op, ty, wider));
}
void Decoder::src(const POperand &op, Ty ty, bool wider) {
  out.push_back(source(op, ty, wider));
}

void Decoder::address(const POperand &op) {
  if (op.kind != POperand::Address || op.elements.empty())
    return bad("expected an address in brackets");
  const POperand &base = op.elements.front();
  int64_t offset = op.offset;
  Operand row;
  switch (base.kind) {
  case POperand::Reg:
    if (base.reg.width() != Operand::W32 && base.reg.width() != Operand::W64)
      return bad("expected a 32 or 64-bit address register, got '" + base.name +
                 "'");
    row = base.reg;
    break;
  case POperand::Imm:
    row = host.constant(Operand::W64, base.bits + uint64_t(offset), 0);
    offset = 0;
    break;
  case POperand::Symbol:
  case POperand::ParamSymbol: {
    POperand symbol = base;
    symbol.offset += offset;
    offset = 0;
    row = host.symbolConstant(symbol, Operand::W64);
    break;
  }
  case POperand::Label:
    return bad("use of undeclared name '" + base.name + "'");
  default:
    return bad("expected a register, a variable or a number as address");
  }
  if (offset != int32_t(offset))
    return bad("address displacement " + Twine(offset) +
               " does not fit in 32 bits");
  row.offset = int32_t(offset);
  out.push_back(row);
}

void Decoder::vector(const POperand &op, Ty ty, bool dest, unsigned expected) {
  ArrayRef<POperand> list = op.kind == POperand::Vector
                                ? ArrayRef<POperand>(op.elements)
                                : ArrayRef<POperand>(op);
  if (list.size() != expected)
    return bad("expected " + Twine(expected) + " registers, got " +
               Twine(list.size()));
  for (const POperand &element : list)
    if (dest)
      dst(element, ty);
    else
      src(element, ty);
}

bool Decoder::immediate(const POperand &op, int64_t &value) {
  if (op.kind != POperand::Imm || op.floatBits) {
    bad("expected an integer immediate");
    return false;
  }
  value = int64_t(op.bits);
  return true;
}

bool lastTypeIsFloat(const Decoder &d) {
  for (StringRef word : llvm::reverse(d.mods)) {
    Ty ty = parseTy(word);
    if (ty != Ty::None)
      return isFloatTy(ty) || ty == Ty::F32x2;
  }
  return false;
}

static void decodeIntegerOrFloat(Decoder &d) {
  if (lastTypeIsFloat(d))
    decodeFloat(d);
  else
    decodeInteger(d);
}

DecodeFn findDecoder(StringRef opcode) {
  return StringSwitch<DecodeFn>(opcode)
      .Cases({"add", "sub", "mul", "min", "max", "neg", "abs", "div"},
             decodeIntegerOrFloat)
      .Case("mad", decodeIntegerOrFloat)
      .Cases({"mul24", "mad24", "rem", "sad", "addc", "subc", "madc", "and"},
             decodeInteger)
      .Cases({"or", "xor", "not", "cnot", "shl", "shr", "shf", "lop3"},
             decodeInteger)
      .Cases({"prmt", "bfe", "bfi", "bfind", "brev", "popc", "clz", "fns"},
             decodeInteger)
      .Cases({"szext", "bmsk", "dp4a", "dp2a"}, decodeInteger)
      .Cases({"fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"},
             decodeFloat)
      .Cases({"tanh", "copysign", "testp"}, decodeFloat)
      .Cases({"cvt", "cvta", "cvt.pack"}, decodeConvert)
      .Cases({"setp", "set", "selp", "slct"}, decodeCompare)
      .Cases({"mov", "isspacep", "mapa", "getctarank", "pack", "unpack"},
             decodeMove)
      .Cases({"ld", "ldu", "st", "prefetch", "prefetchu", "discard",
              "applypriority"},
             decodeMemory)
      .Cases({"atom", "red"}, decodeAtomic)
      .Cases({"shfl", "vote", "match", "redux", "elect", "activemask"},
             decodeWarp)
      .Cases({"bar", "barrier", "membar", "fence", "griddepcontrol",
              "setmaxnreg", "nanosleep"},
             decodeSync)
      .Case("mbarrier", decodeMbarrier)
      .Case("cp", decodeAsync)
      .Cases({"ldmatrix", "stmatrix", "movmatrix", "mma"}, decodeMatrix)
      .Case("wgmma", decodeWgmma)
      .Cases({"tcgen05", "clusterlaunchcontrol"}, decodeBlackwell)
      .Cases({"trap", "brkpt", "pmevent", "createpolicy", "alloca", "stacksave",
              "stackrestore", "tensormap"},
             decodeMisc)
      .Default(nullptr);
}

} // namespace emulator
} // namespace humming
