//===- ExecWgmma.cpp - wgmma.mma_async and its groups -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operation is recorded when a warp issues it: its registers and the shared
// bytes it reads are marked. It is computed when the group is waited for and
// all four warps of the warpgroup have issued it, for the warpgroup as a whole,
// so that anything that changed its inputs too early shows in the result even
// if a mark was missed.
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include "Wgmma.h"

using namespace llvm;

namespace humming {
namespace emulator {

namespace {
struct WgmmaInfo {
  ptx::WgmmaInstr instr;
  unsigned numD, numA;
  bool scaleDIsPredicate = false, scaleDNegated = false;
};
} // namespace

/// One issue by one warp.
struct WgmmaOp {
  const WgmmaInfo *info;
  ptx::WgmmaInstr instr; ///< with scaleD as it was at run time
  uint32_t pc, group;
  uint64_t descA = 0, descB = 0;
  SmallVector<uint32_t, 128> rowsD; ///< absolute rows
  SmallVector<uint32_t, 4> rowsA;
  SmallVector<uint32_t, 64> pinned; ///< 16-byte chunks
  bool done = false;
};

static uint32_t absoluteRow(Warp &w, Operand o) {
  return w.paths[w.currentPath].fn->rowBase + o.row();
}

/// The four warps of the warpgroup; null when there are not four.
static bool warpgroup(Warp &w, Warp *(&group)[4]) {
  unsigned first = w.index & ~3u;
  if (first + 4 > w.block->warps.size())
    return false;
  for (unsigned i = 0; i < 4; ++i)
    group[i] = w.block->warps[first + i];
  return true;
}

/// Computes operation \p number of a warpgroup, which all four warps issued.
static bool compute(Warp &w, Warp *(&group)[4], uint32_t number) {
  WgmmaOp *ops[4];
  for (unsigned i = 0; i < 4; ++i)
    ops[i] = group[i]->wgmmaOps[number - group[i]->wgmmaRetired].get();
  for (unsigned i = 1; i < 4; ++i)
    if (ops[i]->pc != ops[0]->pc || ops[i]->descA != ops[0]->descA ||
        ops[i]->descB != ops[0]->descB ||
        ops[i]->instr.scaleD != ops[0]->instr.scaleD) {
      auto error = std::make_unique<EmulatorError>(
          EmulatorFault::BarrierDivergence,
          "the warps of a warpgroup issue different wgmma operations or "
          "descriptors");
      error->site = group[i]->site(-1, ops[i]->pc);
      error->notes.push_back(
          {"the first warp's", group[0]->site(-1, ops[0]->pc)});
      w.launch->report(w.cluster->index, std::move(error));
      w.worker->failed = true;
      w.signal = Warp::Abort;
      return false;
    }
  SmallVector<uint32_t *, 512> d;
  SmallVector<const uint32_t *, 16> a;
  for (unsigned i = 0; i < 4; ++i) {
    for (uint32_t row : ops[i]->rowsD)
      d.push_back(reinterpret_cast<uint32_t *>(group[i]->registers.data() +
                                               size_t(row) * 128));
    for (uint32_t row : ops[i]->rowsA)
      a.push_back(reinterpret_cast<const uint32_t *>(
          group[i]->registers.data() + size_t(row) * 128));
  }
  ptx::WgmmaDescriptor descA, descB;
  if (!ops[0]->instr.aInRegisters)
    descA = cantFail(ptx::WgmmaDescriptor::decode(ops[0]->descA));
  descB = cantFail(ptx::WgmmaDescriptor::decode(ops[0]->descB));
  const std::vector<uint8_t> &bytes = w.block->shared.bytes;
  unsigned zeroColumns = 0;
  Error e = ptx::wgmma(
      ops[0]->instr, d, a, descA, descB,
      [&](uint32_t address, uint8_t (&out)[16]) {
        // In bounds: checked when it was issued.
        for (unsigned i = 0; i < 16; ++i)
          out[i] = bytes[address + i];
        return Error::success();
      },
      &zeroColumns);
  consumeError(std::move(e));
  const ptx::WgmmaInstr &instr = ops[0]->instr;
  w.worker->memory[ops[0]->pc].padding += 2ull * 64 * zeroColumns * instr.k;
  // A warpgroup reads an operand once.
  auto count = [&](bool isA, const ptx::WgmmaDescriptor &desc) {
    SmallVector<uint32_t, 256> chunks;
    ptx::wgmmaOperandPasses(instr, isA, desc, chunks);
    w.worker->memory[ops[0]->pc].bytes += 16 * chunks.size();
    countChunks(w, ops[0]->pc, chunks);
  };
  if (!instr.aInRegisters)
    count(true, descA);
  count(false, descB);
  for (unsigned i = 0; i < 4; ++i) {
    ops[i]->done = true;
    for (uint32_t address : ops[i]->pinned)
      pinShared(*w.block, address, 16, false);
    ops[i]->pinned.clear();
  }
  return true;
}

/// Releases the registers of finished operations of this warp.
static void retire(Warp &w, uint32_t keepGroups) {
  while (!w.wgmmaOps.empty()) {
    WgmmaOp &op = *w.wgmmaOps.front();
    if (!op.done || op.group + keepGroups >= w.wgmmaGroups)
      break;
    w.wgmmaRetired++;
    w.wgmmaOps.erase(w.wgmmaOps.begin());
  }
  if (w.rowInFlight.empty())
    return;
  std::fill(w.rowInFlight.begin(), w.rowInFlight.end(), 0);
  for (auto &op : w.wgmmaOps) {
    for (uint32_t r : op->rowsD)
      w.rowInFlight[r] = 1;
    for (uint32_t r : op->rowsA)
      if (!w.rowInFlight[r])
        w.rowInFlight[r] = 2;
  }
}

namespace {
/// Checks and pins the chunks that a descriptor names.
bool pinOperand(Warp &w, WgmmaOp &op, bool isA, uint64_t bits) {
  auto desc = ptx::WgmmaDescriptor::decode(bits);
  if (!desc) {
    w.raise(EmulatorFault::Descriptor,
            Twine("illegal wgmma descriptor of operand ") + (isA ? "A" : "B") +
                ": " + toString(desc.takeError()));
    return false;
  }
  SmallVector<uint32_t, 128> chunks;
  ptx::wgmmaOperandChunks(op.instr, isA, *desc, chunks);
  llvm::sort(chunks);
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  for (uint32_t address : chunks) {
    if (address < SharedBase || address + 16 > w.launch->sharedBytes) {
      w.raise(EmulatorFault::OutOfBounds,
              Twine("wgmma operand ") + (isA ? "A" : "B") +
                  " reads shared offset " +
                  Twine(int64_t(address) - SharedBase) +
                  ", out of bounds: the block has " +
                  Twine(w.launch->sharedBytes - SharedBase) + " bytes");
      return false;
    }
    Access a = warpAccess(w, 0, false);
    a.async = true;
    if (!checkShared(w, *w.block, address, 16, a))
      return false;
    SharedMemory &s = w.block->shared;
    if (!s.init.empty() &&
        std::find(s.init.begin() + address, s.init.begin() + address + 16, 0) !=
            s.init.begin() + address + 16) {
      w.raise(EmulatorFault::Uninitialized,
              Twine("wgmma operand ") + (isA ? "A" : "B") +
                  " reads shared offset " + Twine(address - SharedBase) +
                  " that nothing has written");
      return false;
    }
    pinShared(*w.block, address, 16, true);
    op.pinned.push_back(address);
  }
  return true;
}

/// Operands: d..., a... or descA, descB, [scale-d predicate].
void mmaHandler(Warp &w, const Inst &inst, uint32_t mask) {
  if (!w.requireFull(inst, mask, "wgmma.mma_async"))
    return;
  const WgmmaInfo &info =
      *static_cast<const WgmmaInfo *>(w.launch->module->aux[inst.aux].get());
  Warp *group[4];
  if (!warpgroup(w, group))
    return w.raise(EmulatorFault::IllegalInstruction,
                   "wgmma needs four warps, the block's last warpgroup has "
                   "fewer");
  const Operand *o = w.ops(inst);
  auto op = std::make_shared<WgmmaOp>();
  op->info = &info;
  op->instr = info.instr;
  op->pc = w.pc;
  op->group = w.wgmmaGroups;
  unsigned at = 0;
  for (unsigned i = 0; i < info.numD; ++i)
    op->rowsD.push_back(absoluteRow(w, o[at++]));
  if (info.instr.aInRegisters)
    for (unsigned i = 0; i < info.numA; ++i)
      op->rowsA.push_back(absoluteRow(w, o[at++]));
  else
    op->descA = w.row<uint64_t>(o[at++])[0];
  op->descB = w.row<uint64_t>(o[at++])[0];
  if (info.scaleDIsPredicate) {
    uint32_t p = *w.pred(o[at]);
    if (p != 0 && p != 0xFFFFFFFF)
      return w.raise(EmulatorFault::BarrierDivergence,
                     "scale-d of wgmma differs between lanes");
    op->instr.scaleD = (p != 0) != info.scaleDNegated;
  }
  if (w.trackRows) {
    // Accumulators of operations of one shape may follow each other; anything
    // else has to be ordered by wgmma.fence.
    auto check = [&](uint32_t r, bool accumulator) {
      if (w.rowInFlight[r] == 2 && accumulator) {
        w.raise(EmulatorFault::AsyncInFlight,
                "wgmma accumulates in a register that an unfinished wgmma "
                "reads");
        return false;
      }
      if (w.rowInFlight[r] == 1 && !accumulator) {
        w.raise(EmulatorFault::AsyncInFlight,
                "wgmma reads a register that an unfinished wgmma accumulates "
                "in");
        return false;
      }
      if (w.rowInFlight[r] == 0 && w.rowWritten[r] > w.wgmmaFence) {
        w.raise(EmulatorFault::AsyncInFlight,
                "wgmma uses a register that was written since the last "
                "wgmma.fence");
        return false;
      }
      return true;
    };
    for (uint32_t r : op->rowsD)
      if (!check(r, true))
        return;
    for (uint32_t r : op->rowsA)
      if (!check(r, false))
        return;
  }
  if (!info.instr.aInRegisters && !pinOperand(w, *op, true, op->descA))
    return;
  if (!pinOperand(w, *op, false, op->descB))
    return;
  if (w.trackRows) {
    for (uint32_t r : op->rowsD)
      w.rowInFlight[r] = 1;
    for (uint32_t r : op->rowsA)
      w.rowInFlight[r] = 2;
  }
  // A warp computes a quarter of the 64 rows.
  w.worker->memory[w.pc].flops += 2ull * 16 * info.instr.n * info.instr.k;
  w.wgmmaOps.push_back(std::move(op));
  ++w.wgmmaIssued;
  // Others of the warpgroup may wait for this.
  for (Warp *other : group)
    for (uint32_t i = 0; i < other->paths.size(); ++i)
      if (other->paths[i].state == Path::Blocked &&
          other->paths[i].wait == Path::WaitWgmma)
        other->wake(i);
}

void fenceHandler(Warp &w, const Inst &inst, uint32_t mask) {
  if (w.requireFull(inst, mask, "wgmma.fence"))
    w.wgmmaFence = w.instructions;
}
void commitHandler(Warp &w, const Inst &inst, uint32_t mask) {
  if (w.requireFull(inst, mask, "wgmma.commit_group"))
    ++w.wgmmaGroups;
}

void waitHandler(Warp &w, const Inst &inst, uint32_t mask) {
  if (!w.requireFull(inst, mask, "wgmma.wait_group"))
    return;
  Warp *group[4];
  if (!warpgroup(w, group))
    return; // nothing can have been issued
  for (size_t i = 0; i < w.wgmmaOps.size(); ++i) {
    WgmmaOp &op = *w.wgmmaOps[i];
    if (op.group + inst.aux >= w.wgmmaGroups)
      break;
    if (op.done)
      continue;
    // The same operation in the other warps, by number.
    uint32_t number = w.wgmmaRetired + uint32_t(i);
    for (Warp *other : group)
      if (other->wgmmaIssued <= number)
        return w.block_(Path::WaitWgmma, 0, 0, Warp::Retry);
    if (!compute(w, group, number))
      return;
  }
  retire(w, inst.aux);
}
} // namespace

void decodeWgmma(Decoder &d) {
  Inst &inst = d.inst;
  d.classify(InstClass::Wgmma, Flow::Sync);
  d.host.function().usesWgmma = true;
  inst.numDst = 0;
  bool mma = d.mod("mma_async"), fence = d.mod("fence"),
       commit = d.mod("commit_group"), wait = d.mod("wait_group");
  d.mod("sync");
  d.mod("aligned");
  if (fence || commit) {
    inst.fn = fence ? fenceHandler : commitHandler;
    d.expectOperands(0);
    return d.finishModifiers();
  }
  if (wait) {
    int64_t n;
    if (!d.expectOperands(1) || !d.immediate(d.operands[0], n))
      return;
    if (n < 0 || n > INT32_MAX)
      return d.bad("expected a group count, got " + Twine(n));
    inst.aux = uint32_t(n);
    inst.fn = waitHandler;
    return d.finishModifiers();
  }
  if (!mma)
    return d.unsupported("operation of 'wgmma'");
  if (d.mod("sp"))
    return d.unsupported("sparse 'wgmma'");
  auto info = std::make_shared<WgmmaInfo>();
  ptx::WgmmaInstr &w = info->instr;
  StringRef shape = d.take();
  unsigned n = 0, k = 0;
  StringRef rest = shape;
  if (!rest.consume_front("m64n") || rest.consumeInteger(10, n) ||
      !rest.consume_front("k") || rest.consumeInteger(10, k) || !rest.empty() ||
      n > 256 || k > 256)
    return d.bad("expected a shape like m64n8k16 of 'wgmma'");
  w.n = uint16_t(n);
  w.k = uint16_t(k);
  w.satfinite = d.mod("satfinite");
  bool popc = d.mod("and") && d.mod("popc");
  (void)popc;
  StringRef td = d.take(), ta = d.take(), tb = d.take();
  if (!ptx::parseMmaType(td, w.d) || !ptx::parseMmaType(ta, w.a) ||
      !ptx::parseMmaType(tb, w.b))
    return d.unsupported("types of 'wgmma': ." + td + "." + ta + "." + tb);
  // d, a, b[, scale-d[, imm-scale-a, imm-scale-b[, trans-a[, trans-b]]]]
  if (!d.expectOperands(3, 8))
    return;
  w.aInRegisters = d.operands[1].kind == POperand::Vector;
  size_t at = 3;
  const POperand *scaleD = nullptr;
  if (d.operands.size() > at)
    scaleD = &d.operands[at++];
  int64_t value;
  auto flag = [&](bool &to, bool scale) {
    if (d.operands.size() <= at)
      return true;
    if (!d.immediate(d.operands[at], value))
      return false;
    if (scale ? (value != 1 && value != -1) : (value != 0 && value != 1)) {
      d.bad(scale ? "expected an immediate scale of 1 or -1"
                  : "expected a transpose flag of 0 or 1");
      return false;
    }
    to = scale ? value == -1 : value == 1;
    ++at;
    return true;
  };
  if (!flag(w.negateA, true) || !flag(w.negateB, true))
    return;
  if (!w.aInRegisters && !flag(w.transA, false))
    return;
  if (!flag(w.transB, false))
    return;
  if (Error e = ptx::verifyWgmma(w))
    return d.unsupported(toString(std::move(e)));
  info->numD = ptx::wgmmaRegistersD(w);
  info->numA = ptx::wgmmaRegistersA(w);
  d.vector(d.operands[0], Ty::B32, true, info->numD);
  if (w.aInRegisters)
    d.vector(d.operands[1], Ty::B32, false, info->numA);
  else
    d.src(d.operands[1], Ty::B64);
  d.src(d.operands[2], Ty::B64);
  if (scaleD) {
    if (scaleD->kind == POperand::Imm) {
      w.scaleD = scaleD->bits != 0;
    } else {
      info->scaleDIsPredicate = true;
      info->scaleDNegated = scaleD->negated;
      d.src(*scaleD, Ty::Pred);
    }
  }
  if (!d.ok())
    return;
  inst.numDst = uint8_t(info->numD);
  inst.aux = uint32_t(d.host.module().aux.size());
  d.host.module().aux.push_back(std::move(info));
  inst.fn = mmaHandler;
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
