//===- ExecConvert.cpp - cvt, cvta -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace humming {
namespace emulator {

using ptx::ConvertOptions;
using ptx::FloatType;
using ptx::Rounding;

namespace {
/// A type of cvt: integer, float, or a packed pair.
struct CvtType {
  enum Kind : uint8_t { None, Integer, Float, Packed } kind = None;
  uint8_t bits = 0; ///< of the register
  bool isSigned = false;
  FloatType type = FloatType::F32;
};

CvtType parseCvtType(StringRef text) {
  CvtType t;
  Ty ty = parseTy(text);
  if (ty >= Ty::U8 && ty <= Ty::S64) {
    t.kind = CvtType::Integer;
    t.bits = uint8_t(bitsOf(ty));
    t.isSigned = isSignedTy(ty);
    return t;
  }
  auto scalar = StringSwitch<int>(text)
                    .Case("f16", int(FloatType::F16))
                    .Case("bf16", int(FloatType::BF16))
                    .Case("f32", int(FloatType::F32))
                    .Case("f64", int(FloatType::F64))
                    .Case("tf32", int(FloatType::TF32))
                    .Default(-1);
  if (scalar >= 0) {
    t.kind = CvtType::Float;
    t.type = FloatType(scalar);
    t.bits = t.type == FloatType::F64                                ? 64
             : t.type == FloatType::F16 || t.type == FloatType::BF16 ? 16
                                                                     : 32;
    return t;
  }
  auto packed = StringSwitch<int>(text)
                    .Case("f16x2", int(FloatType::F16))
                    .Case("bf16x2", int(FloatType::BF16))
                    .Case("e4m3x2", int(FloatType::E4M3))
                    .Case("e5m2x2", int(FloatType::E5M2))
                    .Case("e2m1x2", int(FloatType::E2M1))
                    .Case("e2m3x2", int(FloatType::E2M3))
                    .Case("e3m2x2", int(FloatType::E3M2))
                    .Case("ue8m0x2", int(FloatType::E8M0))
                    .Default(-1);
  if (packed >= 0) {
    t.kind = CvtType::Packed;
    t.type = FloatType(packed);
    t.bits = t.type == FloatType::F16 || t.type == FloatType::BF16 ? 32
             : t.type == FloatType::E2M1                           ? 8
                                                                   : 16;
  }
  return t;
}

/// Everything about one cvt, kept in Module::aux.
struct Cvt {
  CvtType to, from;
  ConvertOptions options;
};

const Cvt &cvtOf(const Warp &w, const Inst &inst) {
  return *static_cast<const Cvt *>(w.launch->module->aux[inst.aux].get());
}

inline uint64_t lowBits(uint64_t v, unsigned bits) {
  return bits >= 64 ? v : v & ((uint64_t(1) << bits) - 1);
}
inline uint64_t extend(uint64_t v, unsigned bits, bool isSigned) {
  if (bits >= 64)
    return v;
  if (isSigned)
    return uint64_t(int64_t(v << (64 - bits)) >> (64 - bits));
  return lowBits(v, bits);
}

void cvtHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Cvt &c = cvtOf(w, inst);
  const Operand *o = w.ops(inst);
  bool wideDst = o[0].width() != Operand::W32;
  forLanes(mask, [&](unsigned l) {
    uint64_t a = lowBits(wideValue(w, o[1], l), c.from.bits), r = 0;
    if (c.to.kind == CvtType::Float) {
      r = c.from.kind == CvtType::Float
              ? ptx::convert(c.to.type, c.from.type, a, c.options)
              : ptx::convertFromInt(c.to.type, c.from.bits, c.from.isSigned, a,
                                    c.options);
    } else {
      r = c.from.kind == CvtType::Float
              ? ptx::convertToInt(c.to.bits, c.to.isSigned, c.from.type, a,
                                  c.options)
              : ptx::convertInt(c.to.bits, c.to.isSigned, c.from.bits,
                                c.from.isSigned, a, c.options.sat);
      // A wider register holds the extended value.
      r = extend(r, c.to.bits, c.to.isSigned);
    }
    if (wideDst)
      w.row<uint64_t>(o[0])[l] = r;
    else
      w.row<uint32_t>(o[0])[l] = uint32_t(inst.flags ? r : lowBits(r, 16));
  });
}

/// Plain integer extension and truncation: F sees the source, D the result.
template <class F, class D>
void intHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  const Storage<F> *a = w.row<Storage<F>>(o[1]);
  Storage<D> *d = w.row<Storage<D>>(o[0]);
  vectorLanes(mask, [&](unsigned l) { d[l] = pack<D>(D(F(a[l]))); });
}
void s32ToF32(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  const uint32_t *a = w.row<uint32_t>(o[1]);
  float *d = w.row<float>(o[0]);
  vectorLanes(mask, [&](unsigned l) { d[l] = float(int32_t(a[l])); });
}

/// d = {hi: a, lo: b} from two f32.
void packHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Cvt &c = cvtOf(w, inst);
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]);
  forLanes(mask, [&](unsigned l) {
    d[l] = ptx::convertPackedFromF32(c.to.type, a[l], b[l], c.options);
  });
}
void packedHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Cvt &c = cvtOf(w, inst);
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]);
  forLanes(mask, [&](unsigned l) {
    d[l] = ptx::convertPacked(c.to.type, c.from.type,
                              uint32_t(lowBits(a[l], c.from.bits)), c.options);
  });
}

/// cvt.pack.sat.convertType.abType{.cType} d, a, b{, c}.
void cvtPackHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Cvt &c = cvtOf(w, inst);
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]);
  const uint32_t *rest = inst.opCount > 3 ? w.row<uint32_t>(o[3]) : nullptr;
  unsigned bits = c.to.bits;
  forLanes(mask, [&](unsigned l) {
    uint32_t x = uint32_t(lowBits(
        ptx::convertInt(bits, c.to.isSigned, 32, true, a[l], true), bits));
    uint32_t y = uint32_t(lowBits(
        ptx::convertInt(bits, c.to.isSigned, 32, true, b[l], true), bits));
    uint64_t r = uint64_t(y) | uint64_t(x) << bits;
    if (bits < 16)
      r |= uint64_t(rest ? rest[l] : 0) << (2 * bits);
    d[l] = uint32_t(r);
  });
}

/// cvta: flags bit 0 to generic (add), the window in the constant operand.
template <class S>
void cvtaHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]), *b = w.row<S>(o[2]);
  bool toGeneric = inst.flags & 1;
  vectorLanes(
      mask, [&](unsigned l) { d[l] = toGeneric ? a[l] + b[l] : a[l] - b[l]; });
}
} // namespace

static void decodeCvta(Decoder &d) {
  bool to = d.mod("to");
  uint64_t window = 0;
  if (d.mod("shared") || d.mod("shared::cta") || d.mod("shared::cluster"))
    window = SharedWindow;
  else if (d.mod("local"))
    window = LocalWindow;
  else if (d.mod("param") || d.mod("param::entry"))
    window = ParamWindow;
  else if (!d.mod("global") && !d.mod("const"))
    return d.bad("expected a state space of 'cvta'");
  Ty ty = d.type();
  if (bitsOf(ty) != 64)
    return d.unsupported("32-bit 'cvta'");
  if (!d.expectOperands(2))
    return;
  d.classify(InstClass::Move);
  d.inst.flags = !to;
  d.inst.fn = cvtaHandler<uint64_t>;
  d.dst(d.operands[0], ty);
  POperand source = d.operands[1];
  if (source.kind == POperand::Reg && source.reg.width() == Operand::W32)
    return d.bad("expected a 64-bit source of 'cvta.u64'");
  d.src(source, ty);
  d.out.push_back(d.host.constant(Operand::W64, window, 0));
  d.finishModifiers();
}

static Handler pickInt(unsigned from, bool isSigned, unsigned to) {
  if (to == 64)
    return from == 32   ? (isSigned ? intHandler<int32_t, uint64_t>
                                    : intHandler<uint32_t, uint64_t>)
           : from == 16 ? (isSigned ? intHandler<int16_t, uint64_t>
                                    : intHandler<uint16_t, uint64_t>)
           : from == 64 ? intHandler<uint64_t, uint64_t>
                        : nullptr;
  if (to == 32)
    return from == 64   ? intHandler<uint64_t, uint32_t>
           : from == 32 ? intHandler<uint32_t, uint32_t>
           : from == 16 ? (isSigned ? intHandler<int16_t, uint32_t>
                                    : intHandler<uint16_t, uint32_t>)
                        : nullptr;
  if (to == 16)
    return from == 64   ? intHandler<uint64_t, uint16_t>
           : from == 32 ? intHandler<uint32_t, uint16_t>
           : from == 16 ? intHandler<uint16_t, uint16_t>
                        : nullptr;
  return nullptr;
}

void decodeConvert(Decoder &d) {
  if (d.opcode == "cvta")
    return decodeCvta(d);
  Inst &inst = d.inst;
  auto cvt = std::make_shared<Cvt>();
  ConvertOptions &o = cvt->options;
  d.classify(InstClass::Convert);
  bool pack = d.mod("pack");
  if (d.mod("rs"))
    return d.unsupported("stochastic rounding");
  o.toIntegral = false;
  for (StringRef m : d.mods)
    if (m == "rni" || m == "rzi" || m == "rmi" || m == "rpi")
      o.toIntegral = true;
  d.rounding(o.rounding);
  o.ftz = d.mod("ftz");
  o.sat = d.mod("sat");
  o.satfinite = d.mod("satfinite");
  o.relu = d.mod("relu");
  if (pack) {
    cvt->to = parseCvtType(d.take());
    StringRef ab = d.take();
    bool three = d.operands.size() == 4;
    if (!d.peek().empty())
      d.take();
    if (cvt->to.kind != CvtType::Integer &&
        !(cvt->to.bits == 0)) // u4, s4, u2, s2 are not in parseTy
      return d.bad("expected an integer type of 'cvt.pack'");
    if (cvt->to.kind != CvtType::Integer)
      return d.unsupported("type of 'cvt.pack'");
    if (ab != "s32")
      return d.bad("expected source type .s32 of 'cvt.pack'");
    if (!d.expectOperands(3, 4))
      return;
    d.dst(d.operands[0], Ty::B32);
    d.src(d.operands[1], Ty::B32);
    d.src(d.operands[2], Ty::B32);
    if (three)
      d.src(d.operands[3], Ty::B32);
    inst.fn = cvtPackHandler;
  } else {
    StringRef toText = d.take(), fromText = d.take();
    cvt->to = parseCvtType(toText);
    cvt->from = parseCvtType(fromText);
    if (cvt->to.kind == CvtType::None || cvt->from.kind == CvtType::None)
      return d.unsupported("conversion from '." + fromText + "' to '." +
                           toText + "'");
    if (d.operands.size() < 2)
      return (void)d.expectOperands(2);
    auto typeFor = [](const CvtType &t) {
      return t.bits == 64 ? Ty::B64 : t.bits == 32 ? Ty::B32 : Ty::B16;
    };
    if (cvt->to.kind == CvtType::Packed) {
      d.dst(d.operands[0], typeFor(cvt->to));
      if (cvt->from.kind == CvtType::Float) {
        if (cvt->from.type != FloatType::F32)
          return d.unsupported("conversion from '." + fromText + "' to '." +
                               toText + "'");
        if (!d.expectOperands(3))
          return;
        d.src(d.operands[1], Ty::F32);
        d.src(d.operands[2], Ty::F32);
        inst.fn = packHandler;
      } else if (cvt->from.kind == CvtType::Packed) {
        if (!d.expectOperands(2))
          return;
        d.src(d.operands[1], typeFor(cvt->from));
        inst.fn = packedHandler;
      } else {
        return d.unsupported("conversion from '." + fromText + "' to '." +
                             toText + "'");
      }
    } else {
      if (cvt->from.kind == CvtType::Packed)
        return d.unsupported("conversion from '." + fromText + "' to '." +
                             toText + "'");
      if (!d.expectOperands(2))
        return;
      d.dst(d.operands[0], typeFor(cvt->to), true);
      d.src(d.operands[1], typeFor(cvt->from), true);
      if (!d.ok())
        return;
      // A narrow result is extended to its register; 16-bit registers keep 16
      // bits of their row.
      const POperand &to = d.operands[0];
      inst.flags = bitsOf(to.ty) > 16 || to.kind != POperand::Reg;
      inst.fn = cvtHandler;
      bool exact = d.out[0].width() == Decoder::widthOf(typeFor(cvt->to)) &&
                   d.out[1].width() == Decoder::widthOf(typeFor(cvt->from)) &&
                   bitsOf(to.ty) == cvt->to.bits;
      if (exact && cvt->to.kind == CvtType::Integer &&
          cvt->from.kind == CvtType::Integer && !o.sat)
        if (Handler fast =
                pickInt(cvt->from.bits, cvt->from.isSigned, cvt->to.bits))
          inst.fn = fast;
      if (exact && cvt->to.kind == CvtType::Float &&
          cvt->to.type == FloatType::F32 &&
          cvt->from.kind == CvtType::Integer && cvt->from.isSigned &&
          cvt->from.bits == 32 && o.rounding == Rounding::RN && !o.sat)
        inst.fn = s32ToF32;
    }
  }
  if (!d.ok())
    return;
  inst.aux = uint32_t(d.host.module().aux.size());
  d.host.module().aux.push_back(std::move(cvt));
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
