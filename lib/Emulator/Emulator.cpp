//===- Emulator.cpp - Program, launches, errors -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Emulator/Emulator.h"
#include "Parser.h"
#include "Report.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cstring>
#include <thread>

using namespace llvm;

namespace humming {

using namespace emulator;

char EmulatorError::ID = 0;

StringRef toString(EmulatorFault fault) {
  static const char *const names[] = {
      "syntax",      "unsupported",         "launch-config", "out-of-bounds",
      "misaligned",  "uninitialized",       "race",          "async-in-flight",
      "proxy-fence", "barrier-divergence",  "deadlock",      "mbarrier",
      "descriptor",  "illegal-instruction", "limit"};
  return names[size_t(fault)];
}

static void printSite(raw_ostream &os, const FaultSite &s) {
  if (!s.kernel.empty()) {
    os << "kernel " << s.kernel << ", block (" << s.block[0] << ", "
       << s.block[1] << ", " << s.block[2] << ")";
    if (s.warp >= 0)
      os << ", warp " << s.warp;
    if (s.lane >= 0)
      os << ", lane " << s.lane;
    os << ", ";
  }
  os << "PTX line " << s.ptxLine;
  if (!s.ptxText.empty())
    os << ": " << s.ptxText;
  if (!s.sourceFile.empty() || s.sourceLine)
    os << " (" << (s.sourceFile.empty() ? "?" : s.sourceFile.c_str()) << ":"
       << s.sourceLine << ")";
}

void EmulatorError::log(raw_ostream &os) const {
  os << toString(fault) << ": " << message << "\n  at ";
  printSite(os, site);
  for (const auto &[what, where] : notes) {
    os << "\n  note: " << what << ": ";
    printSite(os, where);
  }
}

ArgumentPacker &ArgumentPacker::raw(const void *data, size_t size,
                                    size_t alignment) {
  buffer.resize((buffer.size() + alignment - 1) / alignment * alignment);
  const uint8_t *p = static_cast<const uint8_t *>(data);
  buffer.insert(buffer.end(), p, p + size);
  return *this;
}

struct Program::Impl {
  std::unique_ptr<Module> module;
  std::vector<uint8_t> globals;
  std::vector<std::unique_ptr<GlobalBuffer>> buffers;
};

Program::Program(std::unique_ptr<Impl> impl)
    : implementation(std::move(impl)) {}
Program::~Program() = default;
Program::Program(Program &&) = default;
Program &Program::operator=(Program &&) = default;

Expected<Program> Program::parse(StringRef ptx) {
  auto module = Parser::parse(ptx);
  if (!module)
    return module.takeError();
  auto impl = std::make_unique<Impl>();
  impl->module = std::move(*module);
  impl->globals = impl->module->globalsImage;
  for (const Variable &v : impl->module->variables) {
    if ((v.space != Space::Global && v.space != Space::Const) || !v.size)
      continue;
    auto b = std::make_unique<GlobalBuffer>();
    b->name = v.name;
    b->base = v.address;
    b->size = v.size;
    b->data = impl->globals.data() + (v.address - GlobalsBase);
    b->readOnly = v.space == Space::Const;
    impl->buffers.push_back(std::move(b));
  }
  return Program(std::move(impl));
}

std::vector<KernelInfo> Program::kernels() const {
  std::vector<KernelInfo> list;
  const Module &m = *implementation->module;
  for (const Function &f : m.functions) {
    if (!f.isEntry || !f.isDefined)
      continue;
    KernelInfo k;
    k.name = f.name;
    for (const Param &p : f.params)
      k.params.push_back({p.name, p.offset, p.size});
    k.argumentBytes = f.paramBytes;
    k.staticSharedBytes = m.staticShared;
    for (unsigned i = 0; i < 3; ++i)
      k.requiredBlock[i] = f.reqntid[i];
    list.push_back(std::move(k));
  }
  return list;
}

std::vector<std::string> Program::unsupportedInstructions() const {
  std::vector<std::string> list;
  const Module &m = *implementation->module;
  for (const Inst &inst : m.code)
    if (inst.fn == execUnsupported)
      list.push_back("line " + std::to_string(inst.line) + ": " +
                     m.strings[inst.aux] + ": " +
                     (inst.line && inst.line <= m.lines.size()
                          ? m.lines[inst.line - 1]
                          : std::string()));
  return list;
}

MutableArrayRef<uint8_t> Program::global(StringRef name) {
  for (auto &b : implementation->buffers)
    if (b->name == name)
      return MutableArrayRef<uint8_t>(b->data, b->size);
  return {};
}

static Error configError(const Twine &message) {
  return Error(std::make_unique<EmulatorError>(EmulatorFault::LaunchConfig,
                                               message.str()));
}

/// The rules of cuLaunchKernel that do not depend on a device.
static Error checkConfig(const Module &m, const Function &f,
                         const LaunchConfig &c, ArrayRef<uint8_t> arguments) {
  uint64_t threads = uint64_t(c.block[0]) * c.block[1] * c.block[2];
  for (unsigned i = 0; i < 3; ++i)
    if (!c.grid[i] || !c.block[i] || !c.cluster[i])
      return configError("expected a grid, block and cluster of at least 1 in "
                         "every dimension");
  if (threads > 1024)
    return configError("expected at most 1024 threads per block, got " +
                       Twine(threads));
  uint64_t blocks = uint64_t(c.grid[0]) * c.grid[1] * c.grid[2];
  if (blocks > uint64_t(1) << 26)
    return configError("expected at most 2^26 blocks, got " + Twine(blocks));
  for (unsigned i = 0; i < 3; ++i) {
    if (f.reqntid[0] && f.reqntid[i] != c.block[i])
      return configError("kernel '" + f.name + "' requires block size " +
                         Twine(f.reqntid[i]) + " in dimension " + Twine(i) +
                         " (.reqntid), got " + Twine(c.block[i]));
    if (c.grid[i] % c.cluster[i])
      return configError("expected a grid that is a multiple of the cluster, "
                         "got " +
                         Twine(c.grid[i]) + " and " + Twine(c.cluster[i]) +
                         " in dimension " + Twine(i));
    if (f.reqnctapercluster[0] && f.reqnctapercluster[i] != c.cluster[i])
      return configError("kernel '" + f.name + "' requires cluster size " +
                         Twine(f.reqnctapercluster[i]) + " in dimension " +
                         Twine(i) + " (.reqnctapercluster), got " +
                         Twine(c.cluster[i]));
  }
  if (f.maxntid[0]) {
    uint64_t limit = uint64_t(f.maxntid[0]) * f.maxntid[1] * f.maxntid[2];
    if (threads > limit)
      return configError("expected at most " + Twine(limit) +
                         " threads per block (.maxntid), got " +
                         Twine(threads));
  }
  uint64_t cluster = uint64_t(c.cluster[0]) * c.cluster[1] * c.cluster[2];
  if (cluster > 16)
    return configError("expected at most 16 blocks in a cluster, got " +
                       Twine(cluster));
  uint64_t shared = uint64_t(m.staticShared) + c.dynamicSharedBytes;
  if (shared > c.sharedLimit)
    return configError("expected at most " + Twine(c.sharedLimit) +
                       " bytes of shared memory, got " + Twine(shared));
  if (arguments.size() > f.paramBytes)
    return configError("expected " + Twine(f.paramBytes) +
                       " bytes of arguments, got " + Twine(arguments.size()));
  uint32_t needed = 0;
  for (const Param &p : f.params)
    needed = std::max(needed, p.offset + p.size);
  if (arguments.size() < needed)
    return configError("expected " + Twine(needed) +
                       " bytes of arguments, got " + Twine(arguments.size()));
  return Error::success();
}

Expected<Report> Program::launch(StringRef kernel, const LaunchConfig &given,
                                 ArrayRef<uint8_t> arguments, Memory &memory) {
  Module &module = *implementation->module;
  auto it = module.functionIndex.find(kernel);
  const Function *f = it == module.functionIndex.end()
                          ? nullptr
                          : &module.functions[it->second];
  if (!f || !f->isEntry || !f->isDefined) {
    std::string names;
    for (const KernelInfo &k : kernels())
      names += (names.empty() ? "" : ", ") + k.name;
    return configError("no kernel '" + kernel + "' in the module; it has: " +
                       (names.empty() ? "none" : names));
  }
  LaunchConfig config = given;
  // A kernel that says its cluster needs no other word for it.
  if (config.cluster == std::array<uint32_t, 3>{1, 1, 1} &&
      f->reqnctapercluster[0])
    for (unsigned i = 0; i < 3; ++i)
      config.cluster[i] = std::max(1u, f->reqnctapercluster[i]);
  if (Error e = checkConfig(module, *f, config, arguments))
    return std::move(e);
  if (f->recursive)
    return configError("kernel '" + kernel +
                       "' calls itself through its functions: recursion is "
                       "not emulated");

  Launch launch;
  launch.module = &module;
  launch.kernel = f;
  launch.config = &config;
  launch.arguments.assign(arguments.begin(), arguments.end());
  launch.arguments.resize(f->paramBytes);
  GlobalMemory global;
  for (auto &b : memory.impl().buffers)
    global.buffers.push_back(b.get());
  for (auto &b : implementation->buffers)
    global.buffers.push_back(b.get());
  llvm::sort(global.buffers, [](const GlobalBuffer *a, const GlobalBuffer *b) {
    return a->base < b->base;
  });
  for (GlobalBuffer *b : global.buffers)
    b->shadow.clear();
  launch.memory = &global;
  launch.sharedBytes =
      SharedBase + module.staticShared + config.dynamicSharedBytes;
  uint32_t threads = config.block[0] * config.block[1] * config.block[2];
  launch.warpsPerBlock = (threads + 31) / 32;
  launch.blocksPerCluster =
      config.cluster[0] * config.cluster[1] * config.cluster[2];
  launch.numClusters = 1;
  for (unsigned i = 0; i < 3; ++i) {
    launch.clusterGrid[i] = config.grid[i] / config.cluster[i];
    launch.numClusters *= launch.clusterGrid[i];
  }
  unsigned workers = std::max(1u, std::min(config.threads, 64u));
  if (f->usesGlobalSync)
    workers = 1;
  workers = std::min(workers, launch.numClusters);
  launch.singleThread = workers == 1;

  // Blocks start in order, in reverse or in any order.
  Random random(config.seed);
  launch.clusterOrder.resize(launch.numClusters);
  for (uint32_t i = 0; i < launch.numClusters; ++i)
    launch.clusterOrder[i] = i;
  switch (random.below(3)) {
  case 0:
    break;
  case 1:
    std::reverse(launch.clusterOrder.begin(), launch.clusterOrder.end());
    break;
  case 2:
    for (uint32_t i = launch.numClusters; i > 1; --i)
      std::swap(launch.clusterOrder[i - 1],
                launch.clusterOrder[random.below(i)]);
    break;
  }
  for (unsigned i = 0; i < workers; ++i) {
    auto w = std::make_unique<Worker>();
    w->launch = &launch;
    w->random = Random(config.seed * 0x9E3779B97F4A7C15ull + 17 * i + 1);
    w->counts.resize(module.code.size());
    w->memory.resize(module.code.size());
    launch.workers.push_back(std::move(w));
  }
  if (workers == 1) {
    launch.workers[0]->run();
  } else {
    std::vector<std::thread> pool;
    for (auto &w : launch.workers)
      pool.emplace_back([&w] { w->run(); });
    for (std::thread &t : pool)
      t.join();
  }
  for (GlobalBuffer *b : global.buffers)
    b->shadow.clear();
  if (launch.fault)
    return std::move(launch.fault);
  return makeReport(launch);
}

} // namespace humming
