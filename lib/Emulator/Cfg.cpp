//===- Cfg.cpp - Reconvergence points and loops -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks start at branch targets and after control instructions. Immediate
// post-dominators by the iterative algorithm of Cooper, Harvey and Kennedy over
// the reversed graph; natural loops from back edges (an edge to a dominator).
//
//===----------------------------------------------------------------------===//

#include "Exec.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace llvm;

namespace humming {
namespace emulator {

namespace {
struct Graph {
  std::vector<std::vector<uint32_t>> succs, preds;
  explicit Graph(size_t n) : succs(n), preds(n) {}
  void edge(uint32_t from, uint32_t to) {
    succs[from].push_back(to);
    preds[to].push_back(from);
  }
};
} // namespace

/// Immediate dominators of nodes reachable from \p root; others get ~0u.
static std::vector<uint32_t>
dominators(const std::vector<std::vector<uint32_t>> &succs,
           const std::vector<std::vector<uint32_t>> &preds, uint32_t root) {
  size_t n = succs.size();
  std::vector<uint32_t> order, number(n, ~0u), idom(n, ~0u);
  // Post-order without recursion.
  std::vector<std::pair<uint32_t, size_t>> stack{{root, 0}};
  std::vector<bool> seen(n, false);
  seen[root] = true;
  while (!stack.empty()) {
    auto &[node, next] = stack.back();
    if (next < succs[node].size()) {
      uint32_t s = succs[node][next++];
      if (!seen[s]) {
        seen[s] = true;
        stack.push_back({s, 0});
      }
      continue;
    }
    number[node] = uint32_t(order.size());
    order.push_back(node);
    stack.pop_back();
  }
  idom[root] = root;
  bool changed = true;
  while (changed) {
    changed = false;
    for (uint32_t node : llvm::reverse(order)) {
      if (node == root)
        continue;
      uint32_t best = ~0u;
      for (uint32_t p : preds[node]) {
        if (idom[p] == ~0u)
          continue;
        if (best == ~0u) {
          best = p;
          continue;
        }
        uint32_t a = p, b = best;
        while (a != b) {
          while (number[a] < number[b])
            a = idom[a];
          while (number[b] < number[a])
            b = idom[b];
        }
        best = a;
      }
      if (best != idom[node]) {
        idom[node] = best;
        changed = true;
      }
    }
  }
  return idom;
}

void analyzeControlFlow(Module &module, Function &f) {
  uint32_t begin = f.begin, count = f.end - f.begin;
  auto &code = module.code;
  auto inside = [&](uint32_t target) {
    return target >= f.begin && target < f.end;
  };
  std::vector<bool> starts(count + 1, false);
  starts[0] = true;
  for (uint32_t i = 0; i < count; ++i) {
    const Inst &inst = code[begin + i];
    switch (inst.flow) {
    case Flow::Branch:
      if (inside(inst.target))
        starts[inst.target - begin] = true;
      starts[i + 1] = true;
      break;
    case Flow::BranchIndexed:
      for (uint32_t t : module.branchTables[inst.target])
        if (inside(t))
          starts[t - begin] = true;
      starts[i + 1] = true;
      break;
    case Flow::Return:
    case Flow::Exit:
    case Flow::Trap:
      starts[i + 1] = true;
      break;
    default:
      break;
    }
  }
  std::vector<uint32_t> blockOf(count), first;
  for (uint32_t i = 0; i < count; ++i) {
    if (starts[i])
      first.push_back(i);
    blockOf[i] = uint32_t(first.size() - 1);
  }
  uint32_t n = uint32_t(first.size()), exit = n;
  Graph g(n + 1);
  for (uint32_t b = 0; b < n; ++b) {
    uint32_t last = (b + 1 < n ? first[b + 1] : count) - 1;
    const Inst &inst = code[begin + last];
    bool falls = true;
    auto to = [&](uint32_t target) {
      if (inside(target))
        g.edge(b, blockOf[target - begin]);
    };
    switch (inst.flow) {
    case Flow::Branch:
      to(inst.target);
      falls = inst.guard != NoPred;
      break;
    case Flow::BranchIndexed:
      for (uint32_t t : module.branchTables[inst.target])
        to(t);
      falls = inst.guard != NoPred;
      break;
    case Flow::Return:
    case Flow::Exit:
    case Flow::Trap:
      g.edge(b, exit);
      falls = inst.guard != NoPred;
      break;
    default:
      break;
    }
    if (falls)
      g.edge(b, b + 1 < n ? b + 1 : exit);
  }
  // Post-dominators. Blocks that never reach the exit (endless loops) have
  // none: their lanes meet at the end of the function, that is, never.
  std::vector<uint32_t> post = dominators(g.preds, g.succs, exit);
  for (uint32_t b = 0; b < n; ++b) {
    uint32_t last = (b + 1 < n ? first[b + 1] : count) - 1;
    Inst &inst = code[begin + last];
    if (inst.flow != Flow::Branch && inst.flow != Flow::BranchIndexed)
      continue;
    uint32_t p = post[b];
    inst.reconverge = p == ~0u || p == exit ? NoPc : begin + first[p];
  }

  // Loops.
  std::vector<uint32_t> dom = dominators(g.succs, g.preds, 0);
  auto dominates = [&](uint32_t a, uint32_t b) {
    while (dom[b] != ~0u) {
      if (a == b)
        return true;
      if (b == dom[b])
        return false;
      b = dom[b];
    }
    return false;
  };
  struct Natural {
    uint32_t header;
    std::vector<bool> body;
    uint32_t size = 0, latch = 0;
  };
  std::vector<Natural> loops;
  for (uint32_t b = 0; b < n; ++b)
    for (uint32_t s : g.succs[b]) {
      if (s == exit || dom[b] == ~0u || !dominates(s, b))
        continue;
      Natural *loop = nullptr;
      for (Natural &l : loops)
        if (l.header == s)
          loop = &l;
      if (!loop) {
        loops.push_back({s, std::vector<bool>(n + 1, false), 0, b});
        loop = &loops.back();
        loop->body[s] = true;
      }
      loop->latch = std::max(loop->latch, b);
      std::vector<uint32_t> work{b};
      while (!work.empty()) {
        uint32_t x = work.back();
        work.pop_back();
        if (loop->body[x])
          continue;
        loop->body[x] = true;
        for (uint32_t p : g.preds[x])
          work.push_back(p);
      }
    }
  for (Natural &l : loops)
    l.size = uint32_t(std::count(l.body.begin(), l.body.end(), true));
  // Outer loops first, so that a later one overwrites its part.
  llvm::stable_sort(loops, [](const Natural &a, const Natural &b) {
    return a.size > b.size;
  });
  f.loopOf.assign(count, -1);
  for (auto [i, l] : llvm::enumerate(loops)) {
    Loop loop;
    loop.header = begin + first[l.header];
    loop.latch = begin + (l.latch + 1 < n ? first[l.latch + 1] : count) - 1;
    int32_t outer = f.loopOf[first[l.header]];
    loop.parent = outer;
    loop.depth = outer >= 0 ? f.loops[outer].depth + 1 : 1;
    for (auto &[at, label] : f.labels)
      if (at == loop.header)
        loop.label = label;
    for (uint32_t k = 0; k < count; ++k)
      if (l.body[blockOf[k]])
        f.loopOf[k] = int32_t(i);
    f.loops.push_back(std::move(loop));
  }
}

} // namespace emulator
} // namespace humming
