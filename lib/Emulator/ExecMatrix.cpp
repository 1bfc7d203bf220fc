//===- ExecMatrix.cpp - ldmatrix, stmatrix, movmatrix, mma.sync -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include "Mma.h"
#include <cstring>

using namespace llvm;

namespace humming {
namespace emulator {

namespace {
/// flags: bit 0 trans, bit 1 store; vec = tiles. Operands: d..., address or
/// address, s....
void ldmatrixHandler(Warp &w, const Inst &inst, uint32_t mask) {
  if (!w.requireFull(inst, mask, "ldmatrix"))
    return;
  const Operand *o = w.ops(inst);
  unsigned tiles = inst.vec;
  Operand address = o[tiles];
  uint32_t at[32];
  uint16_t rows[4][64];
  uint32_t used = tiles == 4 ? 0xFFFFFFFF : (1u << (8 * tiles)) - 1;
  bool ok = true;
  forLanes(used, [&](unsigned l) {
    if (!ok)
      return;
    uint64_t a = wideValue(w, address, l) + uint64_t(int64_t(address.offset));
    at[l] = uint32_t(a) & 0xFFFFFF;
    Block *b = resolveShared(w, a, 16, 16, l, "ldmatrix");
    ok = b && readShared(w, *b, at[l], 16, l, &rows[l / 8][8 * (l % 8)]);
  });
  if (!ok)
    return;
  countShared(w, w.pc, at, used, 16, false);
  for (unsigned t = 0; t < tiles; ++t)
    ptx::ldmatrixDistribute(rows[t], inst.flags & 1, w.row<uint32_t>(o[t]));
}

void stmatrixHandler(Warp &w, const Inst &inst, uint32_t mask) {
  if (!w.requireFull(inst, mask, "stmatrix"))
    return;
  const Operand *o = w.ops(inst);
  unsigned tiles = inst.vec;
  uint16_t rows[4][64];
  for (unsigned t = 0; t < tiles; ++t)
    ptx::stmatrixCollect(w.row<uint32_t>(o[1 + t]), inst.flags & 1, rows[t]);
  uint32_t at[32];
  uint32_t used = tiles == 4 ? 0xFFFFFFFF : (1u << (8 * tiles)) - 1;
  bool ok = true;
  forLanes(used, [&](unsigned l) {
    if (!ok)
      return;
    uint64_t a = wideValue(w, o[0], l) + uint64_t(int64_t(o[0].offset));
    at[l] = uint32_t(a) & 0xFFFFFF;
    Block *b = resolveShared(w, a, 16, 16, l, "stmatrix");
    ok = b && writeShared(w, *b, at[l], 16, l, &rows[l / 8][8 * (l % 8)]);
  });
  if (ok)
    countShared(w, w.pc, at, used, 16, true);
}

void movmatrixHandler(Warp &w, const Inst &inst, uint32_t mask) {
  if (!w.requireFull(inst, mask, "movmatrix"))
    return;
  const Operand *o = w.ops(inst);
  ptx::movmatrix(w.row<uint32_t>(o[1]), w.row<uint32_t>(o[0]));
}

struct MmaInfo {
  ptx::MmaInstr instr;
  unsigned d, a, b, c; ///< 32-bit registers
};

/// One pointer per 32-bit register; a 64-bit row counts as two, which have to
/// be pulled apart.
void mmaHandler(Warp &w, const Inst &inst, uint32_t mask) {
  if (!w.requireFull(inst, mask, "mma.sync"))
    return;
  const MmaInfo &info =
      *static_cast<const MmaInfo *>(w.launch->module->aux[inst.aux].get());
  const Operand *o = w.ops(inst);
  uint32_t split[32][32];
  unsigned used = 0;
  auto collect = [&](const Operand *&at, unsigned n,
                     SmallVectorImpl<uint32_t *> &list, bool wide) {
    for (unsigned i = 0; i < n; i += wide ? 2 : 1, ++at) {
      if (!wide) {
        list.push_back(w.row<uint32_t>(*at));
        continue;
      }
      const uint64_t *row = w.row<uint64_t>(*at);
      for (unsigned l = 0; l < 32; ++l) {
        split[used][l] = uint32_t(row[l]);
        split[used + 1][l] = uint32_t(row[l] >> 32);
      }
      list.push_back(split[used]);
      list.push_back(split[used + 1]);
      used += 2;
    }
  };
  bool wide = info.instr.a == ptx::MmaType::F64;
  SmallVector<uint32_t *, 8> d, a, b, c;
  const Operand *at = o;
  collect(at, info.d, d, wide);
  collect(at, info.a, a, wide);
  collect(at, info.b, b, wide);
  collect(at, info.c, c, wide);
  PcMemory &m = w.worker->memory[w.pc];
  uint64_t flops = 2ull * info.instr.m * info.instr.n * info.instr.k;
  m.flops += flops;
  if (info.instr.m == 16 && !wide) {
    // Column n of B is in lanes 4n to 4n+3.
    unsigned zero = 0;
    for (unsigned n = 0; n < 8; ++n) {
      uint32_t any = 0;
      for (uint32_t *r : b)
        any |= r[4 * n] | r[4 * n + 1] | r[4 * n + 2] | r[4 * n + 3];
      zero += any == 0;
    }
    m.padding += flops * zero / 8;
  }
  SmallVector<const uint32_t *, 8> ca(a.begin(), a.end()),
      cb(b.begin(), b.end()), cc(c.begin(), c.end());
  ptx::mmaSync(info.instr, d, ca, cb, cc);
  if (wide) {
    const Operand *out = o;
    for (unsigned i = 0; i < info.d; i += 2, ++out) {
      uint64_t *row = w.row<uint64_t>(*out);
      for (unsigned l = 0; l < 32; ++l)
        row[l] = d[i][l] | uint64_t(d[i + 1][l]) << 32;
    }
  }
}

/// "m16n8k16" to three numbers.
bool parseShape(StringRef text, uint16_t &m, uint16_t &n, uint16_t &k) {
  unsigned a, b, c;
  if (!text.consume_front("m") || text.consumeInteger(10, a) ||
      !text.consume_front("n") || text.consumeInteger(10, b) ||
      !text.consume_front("k") || text.consumeInteger(10, c) || !text.empty() ||
      a > 1024 || b > 1024 || c > 4096)
    return false;
  m = uint16_t(a);
  n = uint16_t(b);
  k = uint16_t(c);
  return true;
}

void decodeMma(Decoder &d) {
  Inst &inst = d.inst;
  auto info = std::make_shared<MmaInfo>();
  ptx::MmaInstr &mma = info->instr;
  d.classify(InstClass::Mma, Flow::Sync);
  if (d.mod("sp") || d.mod("sp::ordered_metadata"))
    return d.unsupported("sparse 'mma'");
  if (d.mod("block_scale"))
    return d.unsupported("block-scaled 'mma' of sm_120 (Blackwell)");
  d.mod("sync");
  d.mod("aligned");
  if (d.mod("kind::f8f6f4"))
    return d.unsupported("'mma.kind::f8f6f4' of sm_120 (Blackwell)");
  if (!parseShape(d.take(), mma.m, mma.n, mma.k))
    return d.bad("expected a shape like m16n8k16 of 'mma'");
  StringRef la = d.take(), lb = d.take();
  if ((la != "row" && la != "col") || (lb != "row" && lb != "col"))
    return d.bad("expected layouts .row or .col of 'mma'");
  mma.aColumn = la == "col";
  mma.bRow = lb == "row";
  mma.satfinite = d.mod("satfinite");
  bool andPopc = d.mod("and"), xorPopc = d.mod("xor");
  d.mod("popc");
  (void)xorPopc;
  mma.andPopc = andPopc;
  StringRef td = d.take(), ta = d.take(), tb = d.take(), tc = d.take();
  if (!ptx::parseMmaType(td, mma.d) || !ptx::parseMmaType(ta, mma.a) ||
      !ptx::parseMmaType(tb, mma.b) || !ptx::parseMmaType(tc, mma.c))
    return d.unsupported("types of 'mma': ." + td + "." + ta + "." + tb + "." +
                         tc);
  if (Error e = ptx::verifyMma(mma))
    return d.unsupported(toString(std::move(e)));
  if (!d.expectOperands(4))
    return;
  info->d = ptx::mmaRegistersD(mma);
  info->a = ptx::mmaRegistersA(mma);
  info->b = ptx::mmaRegistersB(mma);
  info->c = ptx::mmaRegistersC(mma);
  bool wide = mma.a == ptx::MmaType::F64;
  unsigned div = wide ? 2 : 1;
  Ty ty = wide ? Ty::F64 : Ty::B32;
  d.vector(d.operands[0], ty, true, info->d / div);
  d.vector(d.operands[1], ty, false, info->a / div);
  d.vector(d.operands[2], ty, false, info->b / div);
  d.vector(d.operands[3], ty, false, info->c / div);
  if (!d.ok())
    return;
  inst.numDst = uint8_t(info->d / div);
  inst.aux = uint32_t(d.host.module().aux.size());
  d.host.module().aux.push_back(std::move(info));
  inst.fn = mmaHandler;
  d.finishModifiers();
}
} // namespace

void decodeMatrix(Decoder &d) {
  if (d.opcode == "mma")
    return decodeMma(d);
  Inst &inst = d.inst;
  d.classify(InstClass::Matrix, Flow::Sync);
  if (!d.mod("sync") || !d.mod("aligned"))
    return d.bad("expected .sync.aligned of '" + d.opcode + "'");
  if (!d.mod("m8n8"))
    return d.unsupported("shape '." + d.peek() + "' of '" + d.opcode +
                         "' (8-bit and narrower tiles: sm_100)");
  bool trans = d.mod("trans");
  inst.flags = trans;
  if (d.opcode == "movmatrix") {
    d.classify(InstClass::Warp, Flow::Sync);
    if (!d.mod("b16") || !trans)
      return d.bad("expected .trans.b16 of 'movmatrix'");
    if (!d.expectOperands(2))
      return;
    d.dst(d.operands[0], Ty::B32);
    d.src(d.operands[1], Ty::B32);
    inst.fn = movmatrixHandler;
    return d.finishModifiers();
  }
  unsigned tiles = d.mod("x1") ? 1 : d.mod("x2") ? 2 : d.mod("x4") ? 4 : 0;
  if (!tiles)
    return d.bad("expected .x1, .x2 or .x4 of '" + d.opcode + "'");
  d.mod("shared");
  d.mod("shared::cta");
  if (!d.mod("b16"))
    return d.unsupported("type of '" + d.opcode + "'");
  if (!d.expectOperands(2))
    return;
  inst.vec = uint8_t(tiles);
  if (d.opcode == "ldmatrix") {
    d.vector(d.operands[0], Ty::B32, true, tiles);
    d.address(d.operands[1]);
    inst.numDst = uint8_t(tiles);
    inst.fn = ldmatrixHandler;
  } else {
    d.address(d.operands[0]);
    d.vector(d.operands[1], Ty::B32, false, tiles);
    inst.numDst = 0;
    inst.fn = stmatrixHandler;
  }
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
