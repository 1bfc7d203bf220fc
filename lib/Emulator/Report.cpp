//===- Report.cpp - Counters as text and JSON -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include <algorithm>

using namespace llvm;

namespace humming {

static_assert(Counters::NumClasses == size_t(emulator::InstClass::Count));

StringRef instructionClassName(unsigned index) {
  return index < Counters::NumClasses
             ? emulator::nameOf(emulator::InstClass(index))
             : StringRef();
}

void Counters::add(const Counters &o) {
  for (unsigned i = 0; i < NumClasses; ++i)
    byClass[i] += o.byClass[i];
  for (unsigned i = 0; i < globalLoadBytesByWidth.size(); ++i)
    globalLoadBytesByWidth[i] += o.globalLoadBytesByWidth[i];
  warpInstructions += o.warpInstructions;
  laneInstructions += o.laneInstructions;
  globalLoadBytes += o.globalLoadBytes;
  globalStoreBytes += o.globalStoreBytes;
  globalLoadSectors += o.globalLoadSectors;
  globalStoreSectors += o.globalStoreSectors;
  sharedLoadBytes += o.sharedLoadBytes;
  sharedStoreBytes += o.sharedStoreBytes;
  sharedWavefronts += o.sharedWavefronts;
  sharedIdealWavefronts += o.sharedIdealWavefronts;
  bankConflicts += o.bankConflicts;
  asyncCopyBytes += o.asyncCopyBytes;
  bulkBytes += o.bulkBytes;
  maxAsyncBytesInFlight =
      std::max(maxAsyncBytesInFlight, o.maxAsyncBytesInFlight);
  mmaIssues += o.mmaIssues;
  mmaFlops += o.mmaFlops;
  mmaPaddingFlops += o.mmaPaddingFlops;
  barriers += o.barriers;
  atomics += o.atomics;
  divergentBranches += o.divergentBranches;
}

/// The scalar counters with their names, once for text and JSON.
static std::vector<std::pair<const char *, uint64_t>>
fields(const Counters &c) {
  return {{"warp_instructions", c.warpInstructions},
          {"lane_instructions", c.laneInstructions},
          {"global_load_bytes", c.globalLoadBytes},
          {"global_load_sectors", c.globalLoadSectors},
          {"global_store_bytes", c.globalStoreBytes},
          {"global_store_sectors", c.globalStoreSectors},
          {"shared_load_bytes", c.sharedLoadBytes},
          {"shared_store_bytes", c.sharedStoreBytes},
          {"shared_wavefronts", c.sharedWavefronts},
          {"shared_ideal_wavefronts", c.sharedIdealWavefronts},
          {"bank_conflicts", c.bankConflicts},
          {"async_copy_bytes", c.asyncCopyBytes},
          {"bulk_bytes", c.bulkBytes},
          {"max_async_bytes_in_flight", c.maxAsyncBytesInFlight},
          {"mma_issues", c.mmaIssues},
          {"mma_flops", c.mmaFlops},
          {"mma_padding_flops", c.mmaPaddingFlops},
          {"barriers", c.barriers},
          {"atomics", c.atomics},
          {"divergent_branches", c.divergentBranches}};
}

json::Object Counters::toJSON() const {
  json::Object o;
  for (auto &[name, value] : fields(*this))
    o[name] = int64_t(value);
  json::Object classes;
  for (unsigned i = 0; i < NumClasses; ++i)
    if (byClass[i])
      classes[instructionClassName(i)] = int64_t(byClass[i]);
  o["by_class"] = std::move(classes);
  json::Object widths;
  for (unsigned i = 0; i < globalLoadBytesByWidth.size(); ++i)
    if (globalLoadBytesByWidth[i])
      widths[std::to_string(1u << i)] = int64_t(globalLoadBytesByWidth[i]);
  o["global_load_bytes_by_width"] = std::move(widths);
  return o;
}

static void printCounters(raw_ostream &os, const Counters &c,
                          const char *indent) {
  for (auto &[name, value] : fields(c))
    if (value)
      os << indent << format("%-28s %llu\n", name, (unsigned long long)value);
  os << indent << "instructions by class:";
  for (unsigned i = 0; i < Counters::NumClasses; ++i)
    if (c.byClass[i])
      os << ' ' << instructionClassName(i) << ' ' << c.byClass[i];
  os << '\n';
}

const LoopReport *Report::mainLoop() const {
  const LoopReport *best = nullptr;
  for (const LoopReport &l : loops)
    if (l.counters.mmaIssues &&
        (!best || l.counters.mmaIssues > best->counters.mmaIssues ||
         (l.counters.mmaIssues == best->counters.mmaIssues &&
          l.depth > best->depth)))
      best = &l;
  return best;
}

void Report::print(raw_ostream &os) const {
  os << "kernel " << kernel << ": " << blocks << " blocks\n";
  printCounters(os, total, "  ");
  for (const LoopReport &l : loops) {
    os << "  loop " << (l.label.empty() ? "(no label)" : l.label.c_str())
       << ", lines " << l.firstLine << " to " << l.lastLine << ", depth "
       << l.depth << ", " << l.iterations << " iterations\n";
    printCounters(os, l.counters, "    ");
  }
  for (const std::string &w : warnings)
    os << "  warning: " << w << '\n';
}

json::Object Report::toJSON() const {
  json::Object o;
  o["kernel"] = kernel;
  o["blocks"] = int64_t(blocks);
  o["total"] = total.toJSON();
  json::Array list;
  for (const LoopReport &l : loops)
    list.push_back(json::Object{{"label", l.label},
                                {"first_line", int64_t(l.firstLine)},
                                {"last_line", int64_t(l.lastLine)},
                                {"depth", int64_t(l.depth)},
                                {"iterations", int64_t(l.iterations)},
                                {"counters", l.counters.toJSON()}});
  o["loops"] = std::move(list);
  json::Array texts;
  for (const std::string &w : warnings)
    texts.push_back(w);
  o["warnings"] = std::move(texts);
  return o;
}

namespace emulator {

static void addInstruction(Counters &to, const Inst &inst, const PcCount &n,
                           const PcMemory &m) {
  to.byClass[size_t(inst.cls)] += n.issued;
  to.warpInstructions += n.issued;
  to.laneInstructions += n.lanes;
  to.divergentBranches += m.divergent;
  to.maxAsyncBytesInFlight = std::max(to.maxAsyncBytesInFlight, m.inFlight);
  unsigned width = bytesOf(inst.ty) * inst.vec;
  auto byWidth = [&](unsigned bytes) {
    for (unsigned i = 0; i < to.globalLoadBytesByWidth.size(); ++i)
      if (bytes == 1u << i)
        to.globalLoadBytesByWidth[i] += m.bytes;
  };
  auto shared = [&]() {
    to.sharedWavefronts += m.wavefronts;
    to.sharedIdealWavefronts += m.ideal;
    to.bankConflicts += m.wavefronts - m.ideal;
  };
  switch (inst.cls) {
  case InstClass::GlobalLoad:
    to.globalLoadBytes += m.bytes;
    to.globalLoadSectors += m.sectors;
    byWidth(width);
    break;
  case InstClass::GlobalStore:
    to.globalStoreBytes += m.bytes;
    to.globalStoreSectors += m.sectors;
    break;
  case InstClass::SharedLoad:
    to.sharedLoadBytes += m.bytes;
    shared();
    break;
  case InstClass::SharedStore:
    to.sharedStoreBytes += m.bytes;
    shared();
    break;
  case InstClass::Matrix:
    if (inst.numDst)
      to.sharedLoadBytes += m.bytes;
    else
      to.sharedStoreBytes += m.bytes;
    shared();
    break;
  case InstClass::AsyncCopy:
    to.asyncCopyBytes += m.bytes;
    to.globalLoadBytes += m.bytes;
    to.globalLoadSectors += m.sectors;
    byWidth(inst.vec);
    shared();
    break;
  case InstClass::Bulk:
    to.bulkBytes += m.bytes;
    if (inst.flags & BulkStoreFlag) {
      to.globalStoreBytes += m.bytes;
      to.globalStoreSectors += m.sectors;
    } else {
      to.globalLoadBytes += m.bytes;
      to.globalLoadSectors += m.sectors;
    }
    shared();
    break;
  case InstClass::Atomic:
    to.atomics += n.issued;
    to.globalStoreSectors += m.sectors;
    shared();
    break;
  case InstClass::Mma:
  case InstClass::Wgmma:
    if (m.flops) {
      to.mmaIssues += n.issued;
      to.mmaFlops += m.flops;
      to.mmaPaddingFlops += m.padding;
    }
    to.sharedLoadBytes += m.bytes; // wgmma operands
    shared();
    break;
  case InstClass::Barrier:
    to.barriers += n.issued;
    break;
  default:
    break;
  }
}

Report makeReport(const Launch &launch) {
  const Module &module = *launch.module;
  Report report;
  report.kernel = launch.kernel->name;
  report.blocks = uint64_t(launch.numClusters) * launch.blocksPerCluster;
  size_t n = module.code.size();
  std::vector<PcCount> counts(n);
  std::vector<PcMemory> memory(n);
  bool unwaited = false;
  for (const auto &w : launch.workers) {
    for (size_t i = 0; i < n; ++i) {
      counts[i].issued += w->counts[i].issued;
      counts[i].lanes += w->counts[i].lanes;
      PcMemory &m = memory[i];
      const PcMemory &o = w->memory[i];
      m.bytes += o.bytes;
      m.sectors += o.sectors;
      m.wavefronts += o.wavefronts;
      m.ideal += o.ideal;
      m.flops += o.flops;
      m.padding += o.padding;
      m.divergent += o.divergent;
      m.inFlight = std::max(m.inFlight, o.inFlight);
    }
    report.printed += w->printed;
    unwaited |= w->unwaitedCopies;
  }
  if (unwaited)
    report.warnings.push_back(
        "threads ended with cp.async copies that they did not wait for");
  for (size_t i = 0; i < n; ++i)
    if (counts[i].issued)
      addInstruction(report.total, module.code[i], counts[i], memory[i]);

  for (const Function &f : module.functions) {
    if (!f.isDefined || (f.isEntry && &f != launch.kernel))
      continue;
    std::vector<LoopReport> loops(f.loops.size());
    for (size_t i = 0; i < loops.size(); ++i) {
      const Loop &l = f.loops[i];
      loops[i].label = l.label;
      loops[i].depth = l.depth;
      loops[i].firstLine = module.code[l.header].line;
      loops[i].lastLine = module.code[l.latch].line;
      loops[i].iterations = counts[l.header].issued;
    }
    for (uint32_t pc = f.begin; pc < f.end; ++pc)
      for (int32_t l = f.loopOf[pc - f.begin]; l >= 0; l = f.loops[l].parent) {
        uint32_t line = module.code[pc].line;
        loops[l].firstLine = std::min(loops[l].firstLine, line);
        loops[l].lastLine = std::max(loops[l].lastLine, line);
        if (counts[pc].issued)
          addInstruction(loops[l].counters, module.code[pc], counts[pc],
                         memory[pc]);
      }
    for (LoopReport &l : loops)
      if (l.iterations)
        report.loops.push_back(std::move(l));
  }
  llvm::stable_sort(report.loops, [](const LoopReport &a, const LoopReport &b) {
    return a.firstLine < b.firstLine;
  });
  return report;
}

} // namespace emulator
} // namespace humming
