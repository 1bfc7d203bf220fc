//===- Warp.cpp - The interpreter loop, divergence, calls -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec.h"
#include "Parser.h"
#include <cstring>

using namespace llvm;

namespace humming {
namespace emulator {

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

FaultSite Warp::site(int lane, uint32_t atPc) const {
  FaultSite s;
  s.kernel = launch->kernel->name;
  for (unsigned i = 0; i < 3; ++i)
    s.block[i] = block->ctaid[i];
  s.warp = int32_t(index);
  s.lane = lane;
  const Module &m = *launch->module;
  if (atPc < m.code.size()) {
    const Inst &inst = m.code[atPc];
    s.ptxLine = inst.line;
    if (inst.line && inst.line <= m.lines.size())
      s.ptxText = m.lines[inst.line - 1];
    if (inst.loc) {
      s.sourceFile = m.fileOf(inst.loc).str();
      s.sourceLine = m.locs[inst.loc].line;
    }
  }
  return s;
}

void Warp::raise(EmulatorFault fault, const Twine &message, int lane) {
  auto error = std::make_unique<EmulatorError>(fault, message.str());
  error->site = site(lane, pc);
  launch->report(cluster->index, std::move(error));
  worker->failed = true;
  signal = Abort;
}

void execUnsupported(Warp &w, const Inst &inst, uint32_t mask) {
  if (mask)
    w.raise(EmulatorFault::Unsupported,
            "unsupported " + w.launch->module->strings[inst.aux]);
}

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

bool Warp::ready() const {
  for (const Path &p : paths)
    if (p.state == Path::Ready)
      return true;
  return false;
}

uint32_t Warp::addPath(const Path &path) {
  ++liveCount;
  if (!freePaths.empty()) {
    uint32_t i = freePaths.back();
    freePaths.pop_back();
    paths[i] = path;
    return i;
  }
  paths.push_back(path);
  return uint32_t(paths.size() - 1);
}

void Warp::killPath(uint32_t i) {
  int32_t parent = paths[i].parent;
  paths[i].state = Path::Dead;
  freePaths.push_back(i);
  --liveCount;
  if (parent >= 0)
    childGone(parent);
}

void Warp::childGone(int32_t parent) {
  Path &p = paths[parent];
  if (--p.children)
    return;
  p.mask = p.arrived & alive;
  if (p.isCall) {
    if (p.mask)
      finishCall(p);
    p.isCall = false;
  }
  if (p.mask)
    p.state = Path::Ready;
  else
    killPath(uint32_t(parent));
}

bool Warp::load(uint32_t i) {
  Path &p = paths[i];
  currentPath = i;
  pc = p.pc;
  active = p.mask;
  banks[0] = registers.data() + size_t(p.fn->rowBase) * 128;
  preds = predicates.data() + p.fn->predBase;
  return true;
}

bool Warp::pickPath() {
  size_t n = paths.size();
  for (size_t k = 0; k < n; ++k) {
    size_t i = (currentPath + k) % n;
    if (paths[i].state == Path::Ready)
      return load(uint32_t(i));
  }
  return false;
}

void Warp::block_(Path::WaitKind kind, uint32_t id, uint32_t aux, Signal how) {
  Path &p = paths[currentPath];
  p.state = Path::Blocked;
  p.wait = kind;
  p.waitId = id;
  p.waitAux = aux;
  signal = how;
}

void Warp::wake(uint32_t path) {
  Path &p = paths[path];
  if (p.state == Path::Blocked) {
    p.state = Path::Ready;
    p.wait = Path::NoWait;
  }
}

bool Warp::convergeMembers(const Inst &inst, uint32_t members, uint32_t mask) {
  members &= alive; // exited lanes take no part
  if (!(members & ~mask))
    return true;
  // Others of the mask are elsewhere: wait until they are here as well. The
  // last to come executes for all, which is right because rows are indexed by
  // lane; the others only step over the instruction.
  uint32_t here = mask;
  SmallVector<uint32_t, 4> others;
  for (uint32_t i = 0; i < paths.size(); ++i) {
    const Path &p = paths[i];
    if (i != currentPath && p.state == Path::Blocked &&
        p.wait == Path::WaitWarp && p.pc == pc) {
      here |= p.mask;
      others.push_back(i);
    }
  }
  if (members & ~here) {
    block_(Path::WaitWarp, members, 0, Retry);
    return false;
  }
  for (uint32_t i : others) {
    ++paths[i].pc;
    wake(i);
  }
  return true;
}

bool Warp::requireFull(const Inst &inst, uint32_t mask, const char *what) {
  if (mask == 0xFFFFFFFF)
    return true;
  // Lanes of an incomplete last warp never existed; exited ones are missing.
  raise(EmulatorFault::BarrierDivergence,
        Twine(what) + " needs all 32 lanes, got lane mask 0x" +
            Twine::utohexstr(mask));
  return false;
}

void Warp::diverge(const Inst &inst, uint32_t taken) {
  // By value: addPath may move the paths.
  Path self = paths[currentPath];
  uint32_t reconverge = inst.reconverge;
  uint32_t sides[2][2] = {{inst.target, taken}, {pc + 1, active & ~taken}};
  worker->memory[pc].divergent += 1;
  // Which side runs first is the seed's choice.
  if (worker->random.next() & 1) {
    std::swap(sides[0][0], sides[1][0]);
    std::swap(sides[0][1], sides[1][1]);
  }
  int32_t parent = self.parent;
  if (reconverge != self.rpc) {
    Path &p = paths[currentPath];
    p.state = Path::Joining;
    p.pc = reconverge;
    p.arrived = 0;
    p.children = 0;
    parent = int32_t(currentPath);
  } else {
    // The lanes that part here meet where this path ends anyway: a sibling.
    Path &p = paths[currentPath];
    if (parent >= 0)
      --paths[parent].children;
    p.state = Path::Dead;
    freePaths.push_back(currentPath);
    --liveCount;
  }
  uint32_t first = NoPc;
  for (auto &side : sides) {
    if (parent >= 0 && side[0] == reconverge) {
      paths[parent].arrived |= side[1];
      continue;
    }
    Path child;
    child.pc = side[0];
    child.mask = side[1];
    child.rpc = reconverge;
    child.parent = parent;
    child.fn = self.fn;
    child.state = Path::Ready;
    uint32_t i = addPath(child);
    if (parent >= 0)
      ++paths[parent].children;
    if (first == NoPc)
      first = i;
  }
  if (first == NoPc) {
    // Both sides are already at the meeting point.
    ++paths[parent].children;
    childGone(parent);
    pickPath();
    return;
  }
  load(first);
}

void Warp::branchIndexed(const Inst &inst, uint32_t mask) {
  const std::vector<uint32_t> &table =
      launch->module->branchTables[inst.target];
  const uint32_t *index = row<uint32_t>(ops(inst)[0]);
  Path self = paths[currentPath];
  // Lanes by target; a lane that the guard switches off goes on.
  SmallVector<std::pair<uint32_t, uint32_t>, 4> groups;
  auto add = [&](uint32_t target, uint32_t lanes) {
    for (auto &g : groups)
      if (g.first == target) {
        g.second |= lanes;
        return;
      }
    groups.push_back({target, lanes});
  };
  if (active & ~mask)
    add(pc + 1, active & ~mask);
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    if (index[lane] >= table.size()) {
      raise(EmulatorFault::OutOfBounds,
            "branch index " + Twine(index[lane]) + " is past the " +
                Twine(table.size()) + " targets",
            int(lane));
      return;
    }
    add(table[index[lane]], 1u << lane);
  }
  if (groups.size() == 1) {
    pc = groups[0].first;
    return;
  }
  worker->memory[pc].divergent += 1;
  int32_t parent = self.parent;
  if (inst.reconverge != self.rpc) {
    Path &p = paths[currentPath];
    p.state = Path::Joining;
    p.pc = inst.reconverge;
    p.arrived = 0;
    p.children = 0;
    parent = int32_t(currentPath);
  } else {
    if (parent >= 0)
      --paths[parent].children;
    paths[currentPath].state = Path::Dead;
    freePaths.push_back(currentPath);
    --liveCount;
  }
  uint32_t first = NoPc;
  for (auto &[target, lanes] : groups) {
    Path child;
    child.pc = target;
    child.mask = lanes;
    child.rpc = inst.reconverge;
    child.parent = parent;
    child.fn = self.fn;
    child.state = Path::Ready;
    uint32_t i = addPath(child);
    if (parent >= 0)
      ++paths[parent].children;
    if (first == NoPc)
      first = i;
  }
  load(first);
}

/// Lanes leave the function (ret): they wait at the call.
void Warp::leave(uint32_t mask) {
  Path &p = paths[currentPath];
  int32_t call = p.parent;
  while (call >= 0 && !paths[call].isCall)
    call = paths[call].parent;
  if (call >= 0)
    paths[call].arrived |= mask;
  p.mask &= ~mask;
  active = p.mask;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Copies `size` bytes per lane between places of the call area.
static void copyArea(Warp &w, uint32_t mask, uint32_t from, uint32_t to,
                     uint32_t size) {
  size_t stride = w.launch->kernel->callTotal;
  forLanes(mask, [&](unsigned lane) {
    uint8_t *area = w.callArea.data() + lane * stride;
    if (from + size <= stride && to + size <= stride)
      std::memmove(area + to, area + from, size);
  });
}

static void registerToArea(Warp &w, uint32_t mask, Operand reg, uint32_t to,
                           uint32_t size) {
  size_t stride = w.launch->kernel->callTotal;
  size = std::min(size, 8u);
  forLanes(mask, [&](unsigned lane) {
    uint64_t v = wideValue(w, reg, lane);
    if (to + size <= stride)
      std::memcpy(w.callArea.data() + lane * stride + to, &v, size);
  });
}

static void copyRow(uint8_t *to, Operand toReg, const uint8_t *from,
                    Operand fromReg, uint32_t mask) {
  if (toReg.isPred() || fromReg.isPred())
    return;
  to += size_t(toReg.row()) * 128;
  from += size_t(fromReg.row()) * 128;
  forLanes(mask, [&](unsigned lane) {
    uint64_t v = fromReg.width() == Operand::W32
                     ? reinterpret_cast<const uint32_t *>(from)[lane]
                     : reinterpret_cast<const uint64_t *>(from)[lane];
    if (toReg.width() == Operand::W32)
      reinterpret_cast<uint32_t *>(to)[lane] = uint32_t(v);
    else
      reinterpret_cast<uint64_t *>(to)[lane] = v;
  });
}

void Warp::call(const Inst &inst, uint32_t mask) {
  const Module &m = *launch->module;
  const CallInfo &info = m.calls[inst.aux];
  uint32_t callee = info.callee;
  if (callee == NoFunction) {
    const uint64_t *target = row<uint64_t>(ops(inst)[0]);
    unsigned leader = llvm::countr_zero(mask);
    uint64_t address = target[leader];
    bool same = true;
    forLanes(mask, [&](unsigned l) { same &= target[l] == address; });
    if (!same)
      return raise(EmulatorFault::Unsupported,
                   "unsupported indirect call with different targets in a "
                   "warp");
    callee = uint32_t((address - FunctionBase) / 16);
    if (address < FunctionBase || callee >= m.functions.size() || address % 16)
      return raise(EmulatorFault::IllegalInstruction,
                   "call of address 0x" + Twine::utohexstr(address) +
                       ", which is no function",
                   int(leader));
  }
  const Function &f = m.functions[callee];
  if (!f.isDefined) {
    if (callExternal(inst, info, f.name, mask))
      ++pc;
    return;
  }
  if (f.recursive || f.isEntry)
    return raise(EmulatorFault::Unsupported,
                 "unsupported call of the " +
                     Twine(f.isEntry ? "entry" : "recursive") + " function '" +
                     f.name + "'");
  if (info.args.size() != f.params.size() ||
      info.returns.size() > f.returns.size())
    return raise(EmulatorFault::IllegalInstruction,
                 "call of '" + f.name + "' with " + Twine(info.args.size()) +
                     " arguments, expected " + Twine(f.params.size()));
  const Function *caller = paths[currentPath].fn;
  uint8_t *calleeRows = registers.data() + size_t(f.rowBase) * 128;
  for (size_t i = 0; i < info.args.size(); ++i) {
    const CallInfo::Arg &arg = info.args[i];
    const Param &param = f.params[i];
    if (arg.isRegister && param.isRegister)
      copyRow(calleeRows, param.reg, banks[arg.reg.bank()], arg.reg, mask);
    else if (arg.isRegister)
      registerToArea(*this, mask, arg.reg, f.callBase + param.offset,
                     param.size);
    else if (!param.isRegister)
      copyArea(*this, mask, caller->callBase + arg.offset,
               f.callBase + param.offset, std::min(arg.size, param.size));
    else
      return raise(EmulatorFault::IllegalInstruction,
                   "argument " + Twine(i) + " of '" + f.name +
                       "' is no register, the parameter is");
  }
  uint32_t self = currentPath;
  {
    Path &p = paths[self];
    p.state = Path::Joining;
    p.isCall = true;
    p.callPc = pc;
    p.pc = pc + 1;
    p.arrived = active & ~mask;
    p.children = 1;
  }
  Path child;
  child.pc = f.begin;
  child.mask = mask;
  child.rpc = NoPc;
  child.parent = int32_t(self);
  child.fn = &f;
  child.state = Path::Ready;
  load(addPath(child));
}

void Warp::finishCall(Path &p) {
  const Module &m = *launch->module;
  const Inst &inst = m.code[p.callPc];
  const CallInfo &info = m.calls[inst.aux];
  uint32_t callee = info.callee;
  if (callee == NoFunction) {
    const uint64_t *target = reinterpret_cast<const uint64_t *>(
        registers.data() + size_t(p.fn->rowBase) * 128 +
        size_t(ops(inst)[0].row()) * 128);
    callee = uint32_t((target[llvm::countr_zero(p.mask)] - FunctionBase) / 16);
    if (callee >= m.functions.size())
      return;
  }
  const Function &f = m.functions[callee];
  uint8_t *callerRows = registers.data() + size_t(p.fn->rowBase) * 128;
  uint8_t *calleeRows = registers.data() + size_t(f.rowBase) * 128;
  for (size_t i = 0; i < info.returns.size() && i < f.returns.size(); ++i) {
    const CallInfo::Arg &arg = info.returns[i];
    const Param &param = f.returns[i];
    if (arg.isRegister && param.isRegister)
      copyRow(callerRows, arg.reg, calleeRows, param.reg, p.mask);
    else if (!arg.isRegister && !param.isRegister)
      copyArea(*this, p.mask, f.callBase + param.offset,
               p.fn->callBase + arg.offset, std::min(arg.size, param.size));
  }
}

/// printf conversion of one lane: \p args points at the packed arguments.
static void formatPrint(std::string &out, StringRef format,
                        ArrayRef<uint8_t> args) {
  size_t offset = 0;
  auto fetch = [&](unsigned size) {
    offset = (offset + size - 1) / size * size;
    uint64_t v = 0;
    if (offset + size <= args.size())
      std::memcpy(&v, args.data() + offset, size);
    offset += size;
    return v;
  };
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string spec = "%";
    bool isLong = false;
    while (++i < format.size() && strchr("-+ #0123456789.lhz", format[i])) {
      if (format[i] == 'l' || format[i] == 'z')
        isLong = true;
      else if (format[i] != 'h')
        spec += format[i];
    }
    if (i >= format.size() || spec.size() > 16)
      return;
    char c = format[i], buffer[512];
    if (c == '%') {
      out += '%';
      continue;
    }
    spec += strchr("diuxXoc", c) && c != 'c' ? "ll" : "";
    spec += c;
    switch (c) {
    case 'd':
    case 'i': {
      int64_t v = isLong ? int64_t(fetch(8)) : int32_t(fetch(4));
      snprintf(buffer, sizeof buffer, spec.c_str(), (long long)v);
      break;
    }
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      snprintf(buffer, sizeof buffer, spec.c_str(),
               (unsigned long long)fetch(isLong ? 8 : 4));
      break;
    case 'c':
      snprintf(buffer, sizeof buffer, spec.c_str(), int(fetch(4)));
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      snprintf(buffer, sizeof buffer, spec.c_str(),
               llvm::bit_cast<double>(fetch(8)));
      break;
    case 'p':
      snprintf(buffer, sizeof buffer, "0x%llx", (unsigned long long)fetch(8));
      break;
    default:
      snprintf(buffer, sizeof buffer, "%%%c", c);
      break;
    }
    out += buffer;
  }
}

bool Warp::callExternal(const Inst &inst, const CallInfo &info, StringRef name,
                        uint32_t mask) {
  const Function *caller = paths[currentPath].fn;
  size_t stride = launch->kernel->callTotal;
  auto argument = [&](unsigned i, unsigned lane) -> uint64_t {
    if (i >= info.args.size())
      return 0;
    const CallInfo::Arg &arg = info.args[i];
    if (arg.isRegister)
      return wideValue(*this, arg.reg, lane);
    uint64_t v = 0;
    size_t at = lane * stride + caller->callBase + arg.offset;
    unsigned size = std::min(arg.size, 8u);
    if (at + size <= callArea.size())
      std::memcpy(&v, callArea.data() + at, size);
    return v;
  };
  auto text = [&](uint64_t address) {
    std::string s;
    GlobalBuffer *b = launch->memory->find(address);
    while (b && address < b->base + b->size && s.size() < 4096) {
      char c = char(b->data[address - b->base]);
      if (!c)
        break;
      s += c;
      ++address;
    }
    return s;
  };
  if (name == "vprintf") {
    size_t locals = launch->kernel->localTotal;
    forLanes(mask, [&](unsigned lane) {
      uint64_t args = argument(1, lane);
      ArrayRef<uint8_t> bytes;
      if (args >= LocalWindow && args - LocalWindow < locals)
        bytes =
            ArrayRef<uint8_t>(local).slice(lane * locals + (args - LocalWindow),
                                           locals - (args - LocalWindow));
      formatPrint(worker->printed, text(argument(0, lane)), bytes);
    });
    for (const CallInfo::Arg &r : info.returns)
      if (!r.isRegister)
        forLanes(mask, [&](unsigned lane) {
          size_t at = lane * stride + caller->callBase + r.offset;
          if (at + r.size <= callArea.size())
            std::memset(callArea.data() + at, 0, r.size);
        });
    return true;
  }
  if (name == "__assertfail") {
    unsigned lane = llvm::countr_zero(mask);
    raise(EmulatorFault::IllegalInstruction,
          "assertion failed: " + text(argument(0, lane)) + " (" +
              text(argument(1, lane)) + ":" +
              Twine(uint32_t(argument(2, lane))) + ")",
          int(lane));
    return false;
  }
  raise(EmulatorFault::Unsupported,
        "unsupported call of the external function '" + name + "'");
  return false;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

/// wgmma works on registers while the warp goes on: nobody may touch them.
void Warp::checkRows(const Inst &inst) {
  const Operand *o = ops(inst);
  uint32_t base = paths[currentPath].fn->rowBase;
  for (unsigned i = 0; i < inst.opCount; ++i) {
    if (o[i].isPred() || o[i].bank() != Operand::Register)
      continue;
    unsigned units = o[i].width() == Operand::W32   ? 1
                     : o[i].width() == Operand::W64 ? 2
                                                    : 4;
    for (unsigned u = 0; u < units; ++u) {
      uint32_t r = base + o[i].row() + u;
      bool writes = i < inst.numDst;
      if (rowInFlight[r] == 1 || (rowInFlight[r] == 2 && writes)) {
        raise(EmulatorFault::AsyncInFlight,
              Twine(writes ? "write" : "read") +
                  " of a register that an unfinished wgmma " +
                  (rowInFlight[r] == 1 ? "accumulates in" : "reads") +
                  "; wait with wgmma.wait_group first");
        return;
      }
      if (writes)
        rowWritten[r] = instructions;
    }
  }
}

void Warp::run(uint32_t quantum) {
  const Module &module = *launch->module;
  const Inst *code = module.code.data();
  PcCount *counts = worker->counts.data();
  banks[1] = const_cast<uint8_t *>(module.constants.data());
  if (!pickPath())
    return;
  while (true) {
    if (pc == paths[currentPath].rpc && paths[currentPath].parent >= 0) {
      // Arrived at the join point.
      Path &p = paths[currentPath];
      paths[p.parent].arrived |= p.mask;
      killPath(currentPath);
      if (!pickPath())
        return;
      continue;
    }
    const Inst &inst = code[pc];
    uint32_t mask = active;
    if (inst.guard != NoPred)
      mask &= inst.guardNegated ? ~preds[inst.guard] : preds[inst.guard];
    counts[pc].issued += 1;
    counts[pc].lanes += llvm::popcount(mask);
    ++worker->executed;
    ++instructions;
    if (trackRows && mask && inst.cls != InstClass::Wgmma) {
      checkRows(inst);
      if (signal == Abort)
        return;
    }
    switch (inst.flow) {
    case Flow::None:
      if (mask)
        inst.fn(*this, inst, mask);
      ++pc;
      continue;
    case Flow::Branch:
      if (mask == active)
        pc = inst.target;
      else if (!mask)
        ++pc;
      else
        diverge(inst, mask);
      // A long computation without memory accesses has to end some time too.
      if (!(instructions & 0xFFFF)) {
        paths[currentPath].pc = pc;
        paths[currentPath].mask = active;
        return;
      }
      continue;
    case Flow::BranchIndexed:
      if (mask)
        branchIndexed(inst, mask);
      else
        ++pc;
      if (signal == Abort)
        return;
      continue;
    case Flow::Call:
      if (!mask) {
        ++pc;
        continue;
      }
      call(inst, mask);
      if (signal == Abort)
        return;
      continue;
    case Flow::Return:
    case Flow::Exit: {
      if (!mask) {
        ++pc;
        continue;
      }
      if (inst.flow == Flow::Return) {
        leave(mask);
      } else {
        alive &= ~mask;
        Path &p = paths[currentPath];
        p.mask &= ~mask;
        active = p.mask;
        threadsExited(*this, mask);
        if (signal == Abort)
          return;
        // Members that others waited for are gone.
        for (uint32_t i = 0; i < paths.size(); ++i)
          if (paths[i].state == Path::Blocked &&
              paths[i].wait == Path::WaitWarp)
            wake(i);
      }
      if (active) {
        ++pc;
        continue;
      }
      killPath(currentPath);
      if (!pickPath())
        return;
      continue;
    }
    case Flow::Trap:
      if (mask) {
        raise(EmulatorFault::IllegalInstruction, "trap",
              int(llvm::countr_zero(mask)));
        return;
      }
      ++pc;
      continue;
    case Flow::Sync: {
      if (!mask) {
        ++pc;
        continue;
      }
      signal = Continue;
      inst.fn(*this, inst, mask);
      Path &p = paths[currentPath];
      switch (signal) {
      case Continue:
        ++pc;
        if (--quantum)
          continue;
        p.pc = pc;
        return;
      case Block:
        p.pc = pc + 1;
        break;
      case Retry:
        p.pc = pc;
        // Not executed yet.
        counts[pc].issued -= 1;
        counts[pc].lanes -= llvm::popcount(mask);
        break;
      case YieldNow:
        p.pc = pc + 1;
        ++currentPath; // the next path of this warp goes first
        return;
      case Abort:
        return;
      }
      if (!pickPath())
        return;
      continue;
    }
    }
  }
}

} // namespace emulator
} // namespace humming
