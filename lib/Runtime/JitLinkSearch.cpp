//===- JitLinkSearch.cpp - Find and identify an assembler -----------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Opening libnvJitLink costs several milliseconds even when its pages are in
// memory (100 MB, 140,000 relocations), so a process that hits the cache must
// not do it. The cache key still has to name the assembler, by content: the
// same toolkit reached by two paths is the same, a changed one is not. The
// GNU build ID of the ELF file is such a name and costs two small reads.
//
//===----------------------------------------------------------------------===//

#include "DynamicLibrary.h"
#include "Humming/Runtime/CudaDriver.h"
#include "Humming/Runtime/JitLink.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <algorithm>

using namespace llvm;

namespace humming {

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

StringRef stringify(AssemblerKind kind) {
  switch (kind) {
  case AssemblerKind::NvJitLink:
    return "nvjitlink";
  case AssemblerKind::Ptxas:
    return "ptxas";
  case AssemblerKind::Driver:
    return "driver";
  }
  llvm_unreachable("unknown assembler kind");
}

Expected<AssemblerKind> parseAssemblerKind(StringRef text) {
  for (AssemblerKind kind :
       {AssemblerKind::NvJitLink, AssemblerKind::Ptxas, AssemblerKind::Driver})
    if (text == stringify(kind))
      return kind;
  return makeError("assembler: expected nvjitlink, ptxas or driver, got '" +
                   text + "'");
}

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

static std::string join2(const Twine &left, const Twine &right) {
  SmallString<128> path;
  left.toVector(path);
  sys::path::append(path, right);
  return std::string(path);
}

/// Names in `folder` that start with `prefix`, newest version first (by a
/// natural comparison of the last number, so that 13.0 comes before 12.9).
static std::vector<std::string> listFolders(StringRef folder,
                                            StringRef prefix) {
  std::vector<std::string> found;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (sys::path::filename(it->path()).starts_with(prefix))
      found.push_back(it->path());
  llvm::sort(found, [](StringRef left, StringRef right) {
    return left.compare_numeric(right) > 0;
  });
  return found;
}

static std::vector<std::string> listVariable(const char *variable) {
  std::vector<std::string> items;
  if (std::optional<std::string> value = sys::Process::GetEnv(variable)) {
    SmallVector<StringRef> parts;
    StringRef(*value).split(parts, ':', -1, /*KeepEmpty=*/false);
    for (StringRef part : parts)
      items.push_back(part.str());
  }
  return items;
}

/// Folders that hold Python packages, in which a wheel may have put nvJitLink.
static std::vector<std::string> pythonPackageFolders() {
  std::vector<std::string> folders = listVariable("PYTHONPATH");
  std::vector<std::string> prefixes;
  for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    for (std::string &prefix : listVariable(variable))
      prefixes.push_back(std::move(prefix));
  prefixes.push_back("/usr/local");
  prefixes.push_back("/usr");
  if (std::optional<std::string> home = sys::Process::GetEnv("HOME"))
    prefixes.push_back(join2(*home, ".local"));
  for (const std::string &prefix : prefixes)
    for (const std::string &python :
         listFolders(join2(prefix, "lib"), "python3"))
      for (StringRef kind : {"site-packages", "dist-packages"})
        folders.push_back(join2(python, kind));
  return folders;
}

Expected<AssemblerSearch> AssemblerSearch::fromEnvironment() {
  AssemblerSearch search;
  if (std::optional<std::string> forced =
          sys::Process::GetEnv("HUMMING_ASSEMBLER");
      forced && !forced->empty()) {
    Expected<AssemblerKind> kind = parseAssemblerKind(*forced);
    if (!kind)
      return makeError("environment variable HUMMING_ASSEMBLER: " +
                       toString(kind.takeError()));
    search.forced = *kind;
  }

  std::vector<std::string> toolkits;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    for (std::string &folder : listVariable(variable))
      toolkits.push_back(std::move(folder));
  for (std::string &folder : listFolders("/usr/local", "cuda"))
    toolkits.push_back(std::move(folder));

  search.libraryFolders = listVariable("LD_LIBRARY_PATH");
  for (const std::string &toolkit : toolkits)
    for (StringRef folder : {"lib64", "lib", "targets/x86_64-linux/lib"})
      search.libraryFolders.push_back(join2(toolkit, folder));
  for (const std::string &folder : pythonPackageFolders())
    for (StringRef wheel : {"nvidia/cu13/lib", "nvidia/nvjitlink/lib"})
      search.libraryFolders.push_back(join2(folder, wheel));
  for (StringRef folder : {"/usr/local/lib", "/usr/lib/x86_64-linux-gnu",
                           "/usr/lib64", "/usr/lib"})
    search.libraryFolders.push_back(folder.str());

  search.programFolders = listVariable("PATH");
  for (const std::string &toolkit : toolkits)
    search.programFolders.push_back(join2(toolkit, "bin"));
  return search;
}

//===----------------------------------------------------------------------===//
// Identity
//===----------------------------------------------------------------------===//

/// The GNU build ID among the notes of an ELF64 file whose first bytes are
/// `head`; empty if there is none within them.
static std::string findBuildId(StringRef head) {
  using namespace support;
  // Offsets of Elf64_Ehdr and Elf64_Phdr (ELF-64 object file format 1.5).
  if (head.size() < 64 || !head.starts_with("\x7f"
                                            "ELF\x02\x01"))
    return "";
  const char *data = head.data();
  uint64_t tableOffset = endian::read64le(data + 32);
  uint64_t entrySize = endian::read16le(data + 54);
  uint64_t entries = endian::read16le(data + 56);
  for (uint64_t i = 0; i < entries; ++i) {
    uint64_t at = tableOffset + i * entrySize;
    if (entrySize < 56 || at > head.size() || head.size() - at < 56)
      return "";
    if (endian::read32le(data + at) != 4) // PT_NOTE
      continue;
    uint64_t offset = endian::read64le(data + at + 8);
    uint64_t size = endian::read64le(data + at + 32);
    if (offset > head.size() || size > head.size() - offset)
      continue;
    StringRef notes = head.substr(offset, size);
    while (notes.size() >= 12) {
      uint64_t nameSize = alignTo(endian::read32le(notes.data()), 4);
      uint64_t descSize = endian::read32le(notes.data() + 4);
      uint32_t type = endian::read32le(notes.data() + 8);
      uint64_t total = 12 + nameSize + alignTo(descSize, 4);
      if (total > notes.size())
        break;
      // NT_GNU_BUILD_ID = 3, owner "GNU\0".
      if (type == 3 && notes.substr(12, nameSize) == StringRef("GNU\0", 4))
        return toHex(notes.substr(12 + nameSize, descSize), true);
      notes = notes.drop_front(total);
    }
  }
  return "";
}

/// Names a library or program by content. Without a build ID: a hash of its
/// size, its first bytes (program headers) and its last (section headers with
/// the size of every section), which no two releases share.
static Expected<std::string> identifyFile(StringRef path) {
  Expected<sys::fs::file_t> file = sys::fs::openNativeFileForRead(path);
  if (!file)
    return file.takeError();
  llvm::scope_exit close([&] { sys::fs::closeFile(*file); });
  sys::fs::file_status status;
  if (std::error_code error = sys::fs::status(*file, status))
    return errorCodeToError(error);
  uint64_t size = status.getSize();
  if (status.type() != sys::fs::file_type::regular_file || size < 64)
    return makeError("not an ELF file");

  auto readAt = [&](uint64_t offset,
                    uint64_t count) -> Expected<SmallVector<char, 0>> {
    SmallVector<char, 0> bytes(count);
    Expected<size_t> got = sys::fs::readNativeFileSlice(*file, bytes, offset);
    if (!got)
      return got.takeError();
    bytes.resize(*got);
    return bytes;
  };
  constexpr uint64_t kWindow = 8192;
  Expected<SmallVector<char, 0>> head = readAt(0, std::min(size, kWindow));
  if (!head)
    return head.takeError();
  StringRef headText(head->data(), head->size());
  if (!headText.starts_with("\x7f"
                            "ELF"))
    return makeError("not an ELF file");
  if (std::string id = findBuildId(headText); !id.empty())
    return id;
  uint64_t tailSize = std::min(size, kWindow);
  Expected<SmallVector<char, 0>> tail = readAt(size - tailSize, tailSize);
  if (!tail)
    return tail.takeError();
  BLAKE3 hash;
  uint8_t sizeBytes[8];
  support::endian::write64le(sizeBytes, size);
  hash.update(ArrayRef<uint8_t>(sizeBytes));
  hash.update(headText);
  hash.update(StringRef(tail->data(), tail->size()));
  return toHex(hash.final<20>(), true);
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

Expected<Assembler> findAssembler(const AssemblerSearch &search,
                                  const CudaDriver *driver) {
  std::string unusable;
  auto consider = [&](AssemblerKind kind,
                      const std::string &path) -> std::optional<Assembler> {
    if (!sys::fs::exists(path))
      return std::nullopt;
    Expected<std::string> id = identifyFile(path);
    if (id)
      return Assembler{kind, path, (stringify(kind) + "-" + *id).str()};
    unusable += "; " + path + " is unusable: " + toString(id.takeError());
    return std::nullopt;
  };
  auto wanted = [&](AssemblerKind kind) {
    return !search.forced || *search.forced == kind;
  };

  if (wanted(AssemblerKind::NvJitLink)) {
    for (const std::string &folder : search.libraryFolders)
      for (StringRef name :
           {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"})
        if (auto found =
                consider(AssemblerKind::NvJitLink, join2(folder, name)))
          return *found;
    if (search.useSystemLoader) {
      // Only the loader knows its own cache of folders: ask it by opening the
      // library, which then stays open for assemble().
      std::string reason;
      if (void *handle = openLibrary(
              {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"},
              reason))
        if (auto found =
                consider(AssemblerKind::NvJitLink, libraryPath(handle)))
          return *found;
    }
  }
  if (wanted(AssemblerKind::Ptxas))
    for (const std::string &folder : search.programFolders) {
      std::string path = join2(folder, "ptxas");
      if (sys::fs::can_execute(path))
        if (auto found = consider(AssemblerKind::Ptxas, path))
          return *found;
    }
  if (wanted(AssemblerKind::Driver) && driver)
    return Assembler{AssemblerKind::Driver, "",
                     formatv("driver-{0}", driver->version()).str()};

  if (search.forced)
    return makeError(
        "assembler '" + stringify(*search.forced) +
        "' was asked for but not found" +
        (*search.forced == AssemblerKind::NvJitLink
             ? ": looked for libnvJitLink.so.13, .so.12 and .so in " +
                   Twine(search.libraryFolders.size()) +
                   " folders (LD_LIBRARY_PATH, $CUDA_HOME, /usr/local/cuda*, "
                   "Python packages); set CUDA_HOME or install the wheel "
                   "nvidia-nvjitlink"
         : *search.forced == AssemblerKind::Ptxas
             ? ": looked for ptxas in PATH, $CUDA_HOME/bin and "
               "/usr/local/cuda*/bin"
             : Twine(": no CUDA driver is loaded")) +
        unusable);
  return makeError("no assembler found: looked for libnvJitLink "
                   "(LD_LIBRARY_PATH, $CUDA_HOME, /usr/local/cuda*, Python "
                   "packages), ptxas (PATH, $CUDA_HOME/bin) and the CUDA "
                   "driver; set CUDA_HOME, install the wheel "
                   "nvidia-nvjitlink, or stop at PTX" +
                   unusable);
}

} // namespace humming
