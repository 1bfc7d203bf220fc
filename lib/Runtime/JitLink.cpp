//===- JitLink.cpp - From PTX to a cubin ----------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Runtime/JitLink.h"
#include "DynamicLibrary.h"
#include "Humming/Runtime/CudaDriver.h"
#include "Humming/Runtime/LaunchDescription.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <mutex>

using namespace llvm;

namespace humming {

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

namespace {
class Stopwatch {
public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now() - start)
        .count();
  }

private:
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};
} // namespace

//===----------------------------------------------------------------------===//
// Logs and headers
//===----------------------------------------------------------------------===//

/// The integer before ` <what>` in a line like `12 bytes spill stores`.
static void readBefore(StringRef line, StringRef what, int32_t &out) {
  size_t at = line.find(what);
  if (at == StringRef::npos)
    return;
  StringRef left = line.take_front(at).rtrim();
  size_t begin = left.find_last_not_of("0123456789");
  StringRef digits = begin == StringRef::npos ? left : left.substr(begin + 1);
  int32_t value;
  if (!digits.getAsInteger(10, value))
    out = value;
}

ResourceUsage parseResourceUsage(StringRef log) {
  ResourceUsage usage;
  SmallVector<StringRef> lines;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    readBefore(line, "bytes stack frame", usage.stackBytes);
    readBefore(line, "bytes spill stores", usage.spillStoreBytes);
    readBefore(line, "bytes spill loads", usage.spillLoadBytes);
    // nvJitLink repeats the totals as "info : used ..." after ptxas' own line.
    if (line.contains_insensitive("used ")) {
      readBefore(line, "registers", usage.registers);
      readBefore(line, "barriers", usage.barriers);
      readBefore(line, "bytes smem", usage.staticSharedBytes);
    }
  }
  return usage;
}

std::vector<std::string> parseAssemblerWarnings(StringRef log) {
  std::vector<std::string> warnings;
  SmallVector<StringRef> lines;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    // "(C7510) Potential Performance Loss: ..." comes as a mere "info" line.
    size_t code = line.find("(C");
    bool hasCode = code != StringRef::npos && code + 2 < line.size() &&
                   isDigit(line[code + 2]);
    if (hasCode || line.contains_insensitive("warning") ||
        line.contains_insensitive("performance loss"))
      warnings.push_back((hasCode ? line.substr(code) : line).trim().str());
  }
  return warnings;
}

Expected<unsigned> cubinChipNumber(StringRef cubin) {
  using namespace support;
  // Elf64_Ehdr: e_machine at 18, e_flags at 48; EM_CUDA = 190.
  if (cubin.size() < 64)
    return makeError("cubin: expected at least 64 bytes of ELF header, got " +
                     Twine(cubin.size()));
  if (!cubin.starts_with("\x7f"
                         "ELF\x02\x01") ||
      endian::read16le(cubin.data() + 18) != 190)
    return makeError("cubin: expected a 64-bit CUDA ELF file");
  // Up to ABI version 7 (CUDA 12) the SM number is the low byte of e_flags;
  // from ABI version 8 on (CUDA 13) it is the second byte.
  uint32_t flags = endian::read32le(cubin.data() + 48);
  bool isNew = uint8_t(cubin[8]) >= 8;
  return isNew ? (flags >> 8) & 0xff : flags & 0xff;
}

Expected<PtxHeader> parsePtxHeader(StringRef ptx) {
  PtxHeader header;
  StringRef rest = ptx;
  while (!rest.empty() && (header.version == 0 || header.target.empty())) {
    StringRef line;
    std::tie(line, rest) = rest.split('\n');
    line = line.split("//").first.trim();
    if (line.consume_front(".version")) {
      auto [major, minor] = line.trim().split('.');
      unsigned majorNumber, minorNumber;
      if (major.getAsInteger(10, majorNumber) ||
          minor.getAsInteger(10, minorNumber) || minorNumber > 9 ||
          majorNumber > 99)
        return makeError("PTX: malformed .version directive '" + line.trim() +
                         "'");
      header.version = int32_t(majorNumber * 10 + minorNumber);
    } else if (line.consume_front(".target")) {
      header.target = line.trim().split(',').first.trim();
    } else if (line.starts_with(".visible") || line.starts_with(".entry")) {
      break;
    }
  }
  if (header.version == 0)
    return makeError("PTX: expected a .version directive, found none");
  if (header.target.empty())
    return makeError("PTX: expected a .target directive, found none");
  return header;
}

// Release notes table of the PTX ISA manual ("PTX ISA Version / CUDA Release").
static constexpr struct {
  int32_t cuda, ptx;
} kPtxReleases[] = {
    {9000, 60},  {9010, 61},  {10000, 63}, {10010, 64}, {10020, 65},
    {11000, 70}, {11010, 71}, {11020, 72}, {11030, 73}, {11040, 74},
    {11050, 75}, {11060, 76}, {11070, 77}, {11080, 78}, {12000, 80},
    {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84}, {12050, 85},
    {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91},
};

int32_t maxPtxVersion(int32_t cuda) {
  int32_t version = kPtxReleases[0].ptx;
  for (const auto &release : kPtxReleases)
    if (release.cuda <= cuda)
      version = release.ptx;
  return version;
}

int32_t minCudaVersion(int32_t version) {
  for (const auto &release : kPtxReleases)
    if (release.ptx >= version)
      return release.cuda;
  // Newer than the table: CUDA 13 pairs 13.x with PTX 9.x.
  return (version / 10 + 4) * 1000 + (version % 10) * 10;
}

//===----------------------------------------------------------------------===//
// nvJitLink
//===----------------------------------------------------------------------===//

namespace {
using JitHandle = struct JitLinkState *;

/// The entry points used, declared here so that no toolkit header is needed
/// (nvJitLink.h, CUDA 12.0 to 13.0; results are an enum, 0 is success).
struct JitLinkApi {
  int (*create)(JitHandle *, uint32_t, const char *const *) = nullptr;
  int (*destroy)(JitHandle *) = nullptr;
  int (*addData)(JitHandle, int, const void *, size_t, const char *) = nullptr;
  int (*complete)(JitHandle) = nullptr;
  int (*cubinSize)(JitHandle, size_t *) = nullptr;
  int (*cubin)(JitHandle, void *) = nullptr;
  int (*errorLogSize)(JitHandle, size_t *) = nullptr;
  int (*errorLog)(JitHandle, char *) = nullptr;
  int (*infoLogSize)(JitHandle, size_t *) = nullptr;
  int (*infoLog)(JitHandle, char *) = nullptr;
  std::string version; ///< `13.0`
};
constexpr int kJitInputPtx = 2;
} // namespace

static const char *jitLinkResultName(int result) {
  static const char *const names[] = {"success",
                                      "unrecognized option",
                                      "missing -arch",
                                      "invalid input",
                                      "PTX compile error",
                                      "NVVM compile error",
                                      "internal error",
                                      "thread pool error",
                                      "unrecognized input",
                                      "finalizer error",
                                      "null input",
                                      "incompatible options",
                                      "incorrect input type",
                                      "architecture mismatch",
                                      "outdated library",
                                      "missing fatbin",
                                      "unrecognized -arch",
                                      "unsupported -arch",
                                      "LTO not enabled"};
  if (result >= 0 && size_t(result) < std::size(names))
    return names[result];
  return "unknown error";
}

/// Finds `nvJitLinkCreate`, or in builds that export versioned names only,
/// `__nvJitLinkCreate_13_0` and its like, newest first.
static void *findJitLinkSymbol(void *library, const std::string &name) {
  if (void *symbol = dlsym(library, name.c_str()))
    return symbol;
  for (int major = 14; major >= 12; --major)
    for (int minor = 9; minor >= 0; --minor) {
      std::string versioned = formatv("__{0}_{1}_{2}", name, major, minor);
      if (void *symbol = dlsym(library, versioned.c_str()))
        return symbol;
    }
  return nullptr;
}

static Expected<std::unique_ptr<JitLinkApi>>
openJitLink(const std::string &path) {
  std::string reason;
  void *library = openLibrary({path.c_str()}, reason);
  if (!library)
    return makeError("nvjitlink: cannot open " + path + ": " + reason);
  auto api = std::make_unique<JitLinkApi>();
  std::string missing;
  auto bind = [&](auto &slot, const char *name) {
    void *symbol = findJitLinkSymbol(library, name);
    if (!symbol && missing.empty())
      missing = name;
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(symbol);
  };
  bind(api->create, "nvJitLinkCreate");
  bind(api->destroy, "nvJitLinkDestroy");
  bind(api->addData, "nvJitLinkAddData");
  bind(api->complete, "nvJitLinkComplete");
  bind(api->cubinSize, "nvJitLinkGetLinkedCubinSize");
  bind(api->cubin, "nvJitLinkGetLinkedCubin");
  bind(api->errorLogSize, "nvJitLinkGetErrorLogSize");
  bind(api->errorLog, "nvJitLinkGetErrorLog");
  bind(api->infoLogSize, "nvJitLinkGetInfoLogSize");
  bind(api->infoLog, "nvJitLinkGetInfoLog");
  if (!missing.empty())
    return makeError("nvjitlink: " + path + " lacks the symbol " + missing);
  api->version = "of unknown version"; // nvJitLinkVersion came with 12.3
  unsigned major = 0, minor = 0;
  if (void *symbol = findJitLinkSymbol(library, "nvJitLinkVersion"))
    if (reinterpret_cast<int (*)(unsigned *, unsigned *)>(symbol)(&major,
                                                                  &minor) == 0)
      api->version = formatv("{0}.{1}", major, minor).str();
  return std::move(api);
}

/// Libraries stay open for the life of the process: closing one whose threads
/// may still run is not safe, and opening is the expensive part.
static Expected<const JitLinkApi *> getJitLink(const std::string &path) {
  static std::mutex *mutex = new std::mutex;
  static auto *open = new StringMap<std::unique_ptr<JitLinkApi>>;
  std::lock_guard<std::mutex> lock(*mutex);
  std::unique_ptr<JitLinkApi> &slot = (*open)[path];
  if (!slot) {
    Expected<std::unique_ptr<JitLinkApi>> api = openJitLink(path);
    if (!api)
      return api.takeError();
    slot = std::move(*api);
  }
  return slot.get();
}

static std::string readLog(JitHandle handle,
                           int (*getSize)(JitHandle, size_t *),
                           int (*get)(JitHandle, char *)) {
  size_t size = 0;
  if (getSize(handle, &size) != 0 || size == 0)
    return "";
  std::string text(size + 1, '\0');
  if (get(handle, text.data()) != 0)
    return "";
  return StringRef(text.c_str()).rtrim().str();
}

static Expected<AssembledKernel>
assembleWithJitLink(const Assembler &assembler, StringRef ptx, StringRef chip) {
  AssembledKernel result;
  Stopwatch openWatch;
  Expected<const JitLinkApi *> api = getJitLink(assembler.path);
  if (!api)
    return api.takeError();
  result.openMilliseconds = openWatch.milliseconds();
  result.assembler = "nvjitlink " + (*api)->version;

  Stopwatch watch;
  // The size that nvJitLink wants counts a terminating NUL.
  std::string text = ptx.str();
  std::string arch = ("-arch=" + chip).str();
  const char *options[] = {arch.c_str(), "-O3", "-verbose"};
  JitHandle handle = nullptr;
  if (int code = (*api)->create(&handle, std::size(options), options))
    return makeError(result.assembler + ": cannot start for " + chip + ": " +
                     jitLinkResultName(code) + " (code " + Twine(code) + ")");
  llvm::scope_exit destroy([&] { (*api)->destroy(&handle); });

  const char *step = "add the PTX";
  int code = (*api)->addData(handle, kJitInputPtx, text.c_str(),
                             text.size() + 1, "kernel.ptx");
  if (code == 0) {
    step = "link";
    code = (*api)->complete(handle);
  }
  std::string errors = readLog(handle, (*api)->errorLogSize, (*api)->errorLog);
  result.log = readLog(handle, (*api)->infoLogSize, (*api)->infoLog);
  size_t size = 0;
  if (code == 0) {
    step = "read the cubin";
    code = (*api)->cubinSize(handle, &size);
  }
  if (code == 0) {
    result.cubin.resize(size);
    code = (*api)->cubin(handle, result.cubin.data());
  }
  if (code != 0 || size == 0)
    return makeError(result.assembler + ": cannot " + step + " for " + chip +
                     ": " + jitLinkResultName(code) + " (code " + Twine(code) +
                     ")" + (errors.empty() ? "" : "\n" + errors));
  if (!errors.empty())
    result.log += "\n" + errors;
  result.milliseconds = watch.milliseconds();
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

/// `ptxas 13.0.88`, from `Cuda compilation tools, release 13.0, V13.0.88`.
static std::string ptxasVersion(const std::string &path, StringRef scratch) {
  std::optional<StringRef> redirects[] = {StringRef(""), scratch, scratch};
  StringRef arguments[] = {path, "--version"};
  std::string name = "ptxas";
  if (sys::ExecuteAndWait(path, arguments, std::nullopt, redirects, 10) != 0)
    return name;
  if (auto text = MemoryBuffer::getFile(scratch)) {
    StringRef version = (*text)->getBuffer().split(", V").second.take_while(
        [](char c) { return isDigit(c) || c == '.'; });
    if (!version.empty())
      name += " " + version.str();
  }
  return name;
}

static Expected<AssembledKernel>
assembleWithPtxas(const Assembler &assembler, StringRef ptx, StringRef chip) {
  AssembledKernel result;
  SmallString<128> input, output, log;
  llvm::scope_exit removeAll([&] {
    for (StringRef path : {StringRef(input), StringRef(output), StringRef(log)})
      if (!path.empty())
        sys::fs::remove(path);
  });
  int inputFile = -1;
  if (std::error_code error =
          sys::fs::createTemporaryFile("humming", "ptx", inputFile, input))
    return makeError("ptxas: cannot create a temporary file: " +
                     error.message());
  {
    raw_fd_ostream stream(inputFile, /*shouldClose=*/true);
    stream << ptx;
    stream.close();
    if (stream.has_error()) {
      std::error_code error = stream.error();
      stream.clear_error();
      return makeError("ptxas: cannot write " + input + ": " + error.message());
    }
  }
  if (sys::fs::createTemporaryFile("humming", "cubin", output) ||
      sys::fs::createTemporaryFile("humming", "log", log))
    return makeError("ptxas: cannot create a temporary file");

  Stopwatch openWatch;
  result.assembler = ptxasVersion(assembler.path, log);
  result.openMilliseconds = openWatch.milliseconds();

  Stopwatch watch;
  std::string arch = ("-arch=" + chip).str();
  StringRef arguments[] = {assembler.path, arch, "-O3", "-v",
                           input,          "-o", output};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log),
                                          StringRef(log)};
  std::string reason;
  int code = sys::ExecuteAndWait(assembler.path, arguments, std::nullopt,
                                 redirects, /*SecondsToWait=*/300,
                                 /*MemoryLimit=*/0, &reason);
  if (auto text = MemoryBuffer::getFile(log))
    result.log = (*text)->getBuffer().rtrim().str();
  if (code != 0)
    return makeError(result.assembler + ": failed for " + chip +
                     " with exit status " + Twine(code) +
                     (reason.empty() ? "" : " (" + reason + ")") +
                     (result.log.empty() ? "" : "\n" + result.log));
  auto cubin = MemoryBuffer::getFile(output);
  if (!cubin || (*cubin)->getBufferSize() == 0)
    return makeError(result.assembler + ": wrote no cubin for " + chip);
  StringRef bytes = (*cubin)->getBuffer();
  result.cubin.assign(bytes.begin(), bytes.end());
  result.milliseconds = watch.milliseconds();
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Entry point
//===----------------------------------------------------------------------===//

static Expected<AssembledKernel>
assembleWithDriver(const CudaDriver *driver, StringRef ptx, StringRef chip) {
  if (!driver)
    return makeError("assembler 'driver': no CUDA driver is loaded");
  AssembledKernel result;
  Stopwatch watch;
  result.assembler = formatv("driver {0}.{1}", driver->version() / 1000,
                             driver->version() % 1000 / 10)
                         .str();
  Expected<SmallVector<char, 0>> cubin = driver->linkPtx(ptx, result.log);
  if (!cubin)
    return cubin.takeError();
  result.cubin = std::move(*cubin);
  result.milliseconds = watch.milliseconds();
  // The driver's linker assembles for the current device, whatever the chip.
  Expected<unsigned> wanted = parseChipNumber(chip);
  if (!wanted)
    return wanted.takeError();
  Expected<unsigned> got =
      cubinChipNumber(StringRef(result.cubin.data(), result.cubin.size()));
  if (!got)
    return makeError(result.assembler + ": " + toString(got.takeError()));
  if (*got != *wanted)
    return makeError(result.assembler +
                     ": assembles for the current device only: expected sm_" +
                     Twine(*wanted) + ", got sm_" + Twine(*got));
  return std::move(result);
}

Expected<AssembledKernel> assemble(const Assembler &assembler, StringRef ptx,
                                   StringRef chip, const CudaDriver *driver) {
  if (ptx.contains('\0'))
    return makeError(stringify(assembler.kind) +
                     ": expected PTX text, got a NUL byte in it");
  if (Expected<unsigned> number = parseChipNumber(chip); !number)
    return number.takeError();
  Expected<AssembledKernel> result =
      assembler.kind == AssemblerKind::NvJitLink
          ? assembleWithJitLink(assembler, ptx, chip)
      : assembler.kind == AssemblerKind::Ptxas
          ? assembleWithPtxas(assembler, ptx, chip)
          : assembleWithDriver(driver, ptx, chip);
  if (!result)
    return result.takeError();
  result->usage = parseResourceUsage(result->log);
  result->warnings = parseAssemblerWarnings(result->log);
  return result;
}

} // namespace humming
