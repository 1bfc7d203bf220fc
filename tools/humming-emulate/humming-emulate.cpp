//===- humming-emulate.cpp - Run a PTX kernel on the CPU -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   humming-emulate FILE.ptx --kernel=name --grid=4,1,1 --block=128
//     --shared=49152 --arg=buf:x=x.bin --arg=out:y=4096 --arg=i32:17
//     --dump=y=y.bin --seed=3 --runs=5 --json
//
//===----------------------------------------------------------------------===//

#include "Humming/Emulator/Emulator.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>

using namespace llvm;
using namespace humming;

namespace {
cl::OptionCategory category("humming-emulate options");
cl::opt<std::string> input(cl::Positional, cl::desc("<file.ptx>"),
                           cl::init("-"), cl::cat(category));
cl::opt<std::string>
    kernelName("kernel", cl::desc("entry to run (default: the only one)"),
               cl::cat(category));
cl::opt<std::string> gridText("grid", cl::desc("blocks, x[,y[,z]]"),
                              cl::init("1"), cl::cat(category));
cl::opt<std::string> blockText("block", cl::desc("threads, x[,y[,z]]"),
                               cl::init("32"), cl::cat(category));
cl::opt<std::string> clusterText("cluster",
                                 cl::desc("blocks in a cluster, x[,y[,z]]"),
                                 cl::init("1"), cl::cat(category));
cl::opt<unsigned> sharedBytes("shared",
                              cl::desc("bytes of dynamic shared memory"),
                              cl::init(0), cl::cat(category));
cl::list<std::string> argTexts(
    "arg",
    cl::desc("kernel argument, in order: buf:NAME=FILE (contents of a file), "
             "zero:NAME=BYTES, out:NAME=BYTES (unwritten), iota:NAME=COUNT "
             "(i32 0, 1, ...), i32:N, i64:N, f32:X, null"),
    cl::cat(category));
cl::list<std::string> dumps("dump",
                            cl::desc("write a buffer to a file: NAME=FILE"),
                            cl::cat(category));
cl::list<std::string>
    prints("print", cl::desc("print a buffer: NAME:i32, NAME:f32 or NAME:x8"),
           cl::cat(category));
cl::opt<uint64_t> seed("seed", cl::desc("schedule and landing order"),
                       cl::init(0), cl::cat(category));
cl::opt<unsigned> runs("runs",
                       cl::desc("launches on fresh memory with seeds "
                                "seed, seed+1, ...; results must agree"),
                       cl::init(1), cl::cat(category));
cl::opt<unsigned> threads("host-threads", cl::desc("host threads"), cl::init(1),
                          cl::cat(category));
cl::opt<uint64_t> limit("limit", cl::desc("warp instructions at most"),
                        cl::init(uint64_t(1) << 33), cl::cat(category));
cl::opt<bool> jsonOutput("json", cl::desc("print the report as JSON"),
                         cl::cat(category));
cl::opt<bool> quiet("quiet", cl::desc("print no report"), cl::cat(category));
cl::opt<bool> noRaces("no-races", cl::desc("do not look for races"),
                      cl::cat(category));
cl::opt<bool> noUninit("no-uninitialized",
                       cl::desc("allow reads of unwritten memory"),
                       cl::cat(category));
cl::opt<bool> listKernels("list",
                          cl::desc("list the kernels, and what is not "
                                   "emulated, and exit"),
                          cl::cat(category));

struct Argument {
  enum { Buffer, Scalar } kind;
  std::string name;
  std::vector<uint8_t> bytes; ///< contents, or the scalar
  bool uninitialized = false;
};
} // namespace

static Error fail(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

static Expected<std::array<uint32_t, 3>> parseDim(StringRef what,
                                                  StringRef text) {
  std::array<uint32_t, 3> d = {1, 1, 1};
  SmallVector<StringRef, 3> parts;
  text.split(parts, ',');
  if (parts.size() > 3)
    return fail("expected --" + what + "=x[,y[,z]], got '" + text + "'");
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].getAsInteger(10, d[i]) || !d[i])
      return fail("expected --" + what + "=x[,y[,z]], got '" + text + "'");
  return d;
}

static Expected<Argument> parseArgument(StringRef text) {
  Argument a;
  auto [kind, rest] = text.split(':');
  auto scalar = [&](const void *p, size_t n) {
    a.kind = Argument::Scalar;
    a.bytes.assign(static_cast<const uint8_t *>(p),
                   static_cast<const uint8_t *>(p) + n);
    return a;
  };
  if (kind == "null") {
    uint64_t zero = 0;
    return scalar(&zero, 8);
  }
  if (kind == "i32" || kind == "i64") {
    int64_t v;
    if (rest.getAsInteger(0, v))
      return fail("expected an integer, got '" + rest + "'");
    return scalar(&v, kind == "i32" ? 4 : 8);
  }
  if (kind == "f32") {
    double v;
    if (rest.getAsDouble(v))
      return fail("expected a number, got '" + rest + "'");
    float f = float(v);
    return scalar(&f, 4);
  }
  auto [name, value] = rest.split('=');
  a.kind = Argument::Buffer;
  a.name = name.str();
  if (kind == "buf") {
    auto file = MemoryBuffer::getFile(value);
    if (!file)
      return fail("cannot read '" + value + "': " + file.getError().message());
    a.bytes.assign((*file)->getBufferStart(), (*file)->getBufferEnd());
    return a;
  }
  uint64_t n;
  if ((kind != "zero" && kind != "out" && kind != "iota") ||
      value.getAsInteger(0, n) || n > uint64_t(1) << 34)
    return fail("expected an argument like buf:x=x.bin, zero:y=4096, "
                "out:y=4096, iota:x=256, i32:5, i64:5, f32:0.5 or null, got '" +
                text + "'");
  a.uninitialized = kind == "out";
  a.bytes.assign(kind == "iota" ? 4 * n : n, 0);
  if (kind == "iota")
    for (uint64_t i = 0; i < n; ++i)
      support::endian::write32le(a.bytes.data() + 4 * i, uint32_t(i));
  return a;
}

static Error printBuffer(StringRef request, Memory &memory,
                         ArrayRef<std::pair<std::string, uint64_t>> buffers) {
  auto [name, format] = request.split(':');
  for (auto &[known, address] : buffers) {
    if (known != name)
      continue;
    ArrayRef<uint8_t> bytes = memory.bytes(address);
    outs() << name << ":";
    if (format == "x8") {
      outs() << ' ' << toHex(bytes, true);
    } else if (format == "i32" || format == "f32") {
      for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        uint32_t v = support::endian::read32le(bytes.data() + i);
        if (format == "i32")
          outs() << ' ' << int32_t(v);
        else
          outs() << ' ' << double(llvm::bit_cast<float>(v));
      }
    } else {
      return fail("expected --print=NAME:i32, NAME:f32 or NAME:x8, got '" +
                  request + "'");
    }
    outs() << '\n';
    return Error::success();
  }
  return fail("no buffer '" + name + "'");
}

static Error run() {
  auto text = MemoryBuffer::getFileOrSTDIN(input);
  if (!text)
    return fail("cannot read '" + input + "': " + text.getError().message());
  auto program = Program::parse((*text)->getBuffer());
  if (!program)
    return program.takeError();
  std::vector<KernelInfo> kernels = program->kernels();
  if (listKernels) {
    for (const KernelInfo &k : kernels) {
      outs() << k.name << ": " << k.argumentBytes << " bytes of arguments, "
             << k.staticSharedBytes << " bytes of static shared memory\n";
      for (const KernelParam &p : k.params)
        outs() << "  " << p.name << ": offset " << p.offset << ", " << p.size
               << " bytes\n";
    }
    for (const std::string &u : program->unsupportedInstructions())
      outs() << "not emulated: " << u << '\n';
    return Error::success();
  }
  std::string name = kernelName;
  if (name.empty()) {
    if (kernels.size() != 1)
      return fail("the module has " + Twine(kernels.size()) +
                  " kernels; name one with --kernel");
    name = kernels[0].name;
  }
  LaunchConfig config;
  auto grid = parseDim("grid", gridText), block = parseDim("block", blockText),
       cluster = parseDim("cluster", clusterText);
  if (!grid)
    return joinErrors(grid.takeError(),
                      joinErrors(block.takeError(), cluster.takeError()));
  if (!block)
    return joinErrors(block.takeError(), cluster.takeError());
  if (!cluster)
    return cluster.takeError();
  config.grid = *grid;
  config.block = *block;
  config.cluster = *cluster;
  config.dynamicSharedBytes = sharedBytes;
  config.threads = threads;
  config.instructionLimit = limit;
  config.checks.races = !noRaces;
  config.checks.uninitialized = !noUninit;
  std::vector<Argument> arguments;
  for (const std::string &a : argTexts) {
    auto parsed = parseArgument(a);
    if (!parsed)
      return parsed.takeError();
    arguments.push_back(std::move(*parsed));
  }

  std::vector<std::vector<uint8_t>> firstResults;
  for (unsigned r = 0; r < std::max(1u, unsigned(runs)); ++r) {
    Memory memory;
    ArgumentPacker packer;
    std::vector<std::pair<std::string, uint64_t>> buffers;
    for (const Argument &a : arguments) {
      if (a.kind == Argument::Scalar) {
        packer.raw(a.bytes.data(), a.bytes.size(), a.bytes.size());
        continue;
      }
      uint64_t address = a.uninitialized
                             ? memory.addUninitialized(a.name, a.bytes.size())
                             : memory.add(a.name, a.bytes);
      buffers.push_back({a.name, address});
      packer.pointer(address);
    }
    config.seed = seed + r;
    auto report = program->launch(name, config, packer.bytes(), memory);
    if (!report) {
      if (runs > 1)
        errs() << "with seed " << config.seed << ":\n";
      return report.takeError();
    }
    outs() << report->printed;
    if (r == 0) {
      if (jsonOutput)
        outs() << llvm::json::Value(report->toJSON()) << '\n';
      else if (!quiet)
        report->print(outs());
      for (const std::string &p : prints)
        if (Error e = printBuffer(p, memory, buffers))
          return e;
      for (const std::string &d : dumps) {
        auto [buffer, path] = StringRef(d).split('=');
        bool found = false;
        for (auto &[known, address] : buffers) {
          if (known != buffer)
            continue;
          found = true;
          std::error_code ec;
          raw_fd_ostream os(path, ec);
          if (ec)
            return fail("cannot write '" + path + "': " + ec.message());
          ArrayRef<uint8_t> bytes = memory.bytes(address);
          os.write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
        }
        if (!found)
          return fail("no buffer '" + buffer + "'");
      }
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      ArrayRef<uint8_t> bytes = memory.bytes(buffers[i].second);
      if (r == 0)
        firstResults.emplace_back(bytes.begin(), bytes.end());
      else if (bytes != ArrayRef<uint8_t>(firstResults[i]))
        return fail("buffer '" + buffers[i].first + "' differs between seed " +
                    Twine(uint64_t(seed)) + " and seed " + Twine(config.seed));
    }
  }
  return Error::success();
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Runs a PTX kernel on the CPU, checks every access and counts.\n");
  if (Error e = run()) {
    errs() << "humming-emulate: error: " << toString(std::move(e)) << '\n';
    return 1;
  }
  return 0;
}
