//===- DiskCache.cpp - Content-addressed kernel cache on disk -------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout of an entry, little endian. Sections follow the header in the order of
// their sizes, each padded with NUL bytes to a multiple of 8, at least one:
//
//   0   8  magic "HUMMKRNL"
//   8   4  format version
//   12  4  bytes of the header (96)
//   16  8  bytes of the key text
//   24  8  bytes of the launch description
//   32  8  bytes of the PTX
//   40  8  bytes of the cubin
//   48  16 zero
//   64  32 BLAKE3 of the header with this field zero, then of all sections
//   96     key text, launch description, PTX, cubin
//
// A different key with the same hash is not to be feared; the key text is there
// so that a renamed or copied file is noticed, and for people who look.
//
//===----------------------------------------------------------------------===//

#include "Humming/Runtime/DiskCache.h"
#include "Humming/Runtime/JitLink.h"
#include "Humming/Runtime/LaunchDescription.h"
#include "KeyLock.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace humming {

static constexpr StringLiteral kMagic = "HUMMKRNL";
static constexpr uint32_t kVersion = 1;
static constexpr size_t kHeaderBytes = 96;
static constexpr size_t kChecksumOffset = 64;
static constexpr size_t kChecksumBytes = 32;
/// No kernel comes near this; a larger size field is damage.
static constexpr uint64_t kMaxSection = uint64_t(1) << 30;

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

std::string CacheKey::text() const {
  std::string out;
  raw_string_ostream stream(out);
  auto field = [&](StringRef name, StringRef value) {
    stream << name << '[' << value.size() << "]=" << value << '\n';
  };
  field("format", std::to_string(kVersion));
  field("launch_format", std::to_string(LaunchDescription::kFormatVersion));
  field("problem", problem);
  field("config", config);
  field("chip", chip);
  field("ptx", std::to_string(ptxVersion));
  field("compiler", compiler);
  field("assembler", assembler);
  return out;
}

std::string CacheKey::hash() const {
  BLAKE3 hash;
  hash.update(text());
  return toHex(hash.final<32>(), /*LowerCase=*/true);
}

std::string DiskCache::defaultFolder() {
  auto variable = [](const char *name) -> std::string {
    std::optional<std::string> value = sys::Process::GetEnv(name);
    return value ? *value : "";
  };
  if (std::string folder = variable("HUMMING_CACHE_DIR"); !folder.empty())
    return folder;
  SmallString<128> path;
  // The XDG base directory specification: a relative path is to be ignored.
  if (std::string base = variable("XDG_CACHE_HOME");
      sys::path::is_absolute(base))
    path = base;
  else if (std::string home = variable("HOME"); !home.empty()) {
    path = home;
    sys::path::append(path, ".cache");
  } else
    return "";
  sys::path::append(path, "humming");
  return std::string(path);
}

//===----------------------------------------------------------------------===//
// The format
//===----------------------------------------------------------------------===//

static uint64_t paddedSize(uint64_t size) { return alignTo(size + 1, 8); }

static std::array<uint8_t, kChecksumBytes> checksumOf(StringRef bytes) {
  static const char zeros[kChecksumBytes] = {};
  BLAKE3 hash;
  hash.update(bytes.take_front(kChecksumOffset));
  hash.update(StringRef(zeros, kChecksumBytes));
  hash.update(bytes.drop_front(kHeaderBytes));
  return hash.final<kChecksumBytes>();
}

static std::string serialise(StringRef key, const CacheArtifacts &artifacts) {
  StringRef sections[] = {key, artifacts.launch, artifacts.ptx,
                          artifacts.cubin};
  uint64_t total = kHeaderBytes;
  for (StringRef section : sections)
    total += paddedSize(section.size());
  std::string bytes(total, '\0');
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  support::endian::write32le(bytes.data() + 8, kVersion);
  support::endian::write32le(bytes.data() + 12, kHeaderBytes);
  uint64_t at = kHeaderBytes;
  for (auto [index, section] : enumerate(sections)) {
    support::endian::write64le(bytes.data() + 16 + 8 * index, section.size());
    if (!section.empty())
      std::memcpy(bytes.data() + at, section.data(), section.size());
    at += paddedSize(section.size());
  }
  auto checksum = checksumOf(bytes);
  std::memcpy(bytes.data() + kChecksumOffset, checksum.data(), kChecksumBytes);
  return bytes;
}

/// Empty on success, else what is wrong.
static std::string deserialise(StringRef bytes, const CacheKey &key,
                               CacheArtifacts &artifacts) {
  if (bytes.size() < kHeaderBytes)
    return "truncated: " + std::to_string(bytes.size()) + " bytes";
  if (!bytes.starts_with(kMagic))
    return "not a kernel cache entry";
  uint32_t version = support::endian::read32le(bytes.data() + 8);
  if (version != kVersion)
    return "format version " + std::to_string(version) + ", expected " +
           std::to_string(kVersion);
  if (support::endian::read32le(bytes.data() + 12) != kHeaderBytes)
    return "header damaged";
  StringRef sections[4];
  uint64_t at = kHeaderBytes;
  for (auto [index, section] : enumerate(sections)) {
    uint64_t size = support::endian::read64le(bytes.data() + 16 + 8 * index);
    if (size > kMaxSection || at > bytes.size() ||
        paddedSize(size) > bytes.size() - at)
      return "truncated or damaged: a section ends after the file";
    section = bytes.substr(at, size);
    at += paddedSize(size);
  }
  if (at != bytes.size())
    return "wrong length: expected " + std::to_string(at) + " bytes, got " +
           std::to_string(bytes.size());
  auto checksum = checksumOf(bytes);
  if (std::memcmp(bytes.data() + kChecksumOffset, checksum.data(),
                  kChecksumBytes) != 0)
    return "checksum mismatch";
  if (sections[0] != key.text())
    return "belongs to another key";
  artifacts = {sections[1], sections[2], sections[3]};
  // The checksum says that the bytes are those that were written; this says
  // that what was written is code for the chip asked for.
  if (!artifacts.cubin.empty()) {
    Expected<unsigned> wanted = parseChipNumber(key.chip);
    Expected<unsigned> got = cubinChipNumber(artifacts.cubin);
    if (!wanted || !got) {
      std::string reason = "cubin unusable";
      if (!wanted)
        reason += ": " + toString(wanted.takeError());
      if (!got)
        reason += ": " + toString(got.takeError());
      return reason;
    }
    if (*wanted != *got)
      return "cubin is for sm_" + std::to_string(*got) + ", expected " +
             key.chip;
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

DiskCache::DiskCache(std::string folder, WarningHandler warn,
                     std::optional<uint64_t> limit)
    : root(std::move(folder)), warn(std::move(warn)),
      limit(limit.value_or(kDefaultLimit)) {
  std::optional<std::string> text = sys::Process::GetEnv("HUMMING_CACHE_LIMIT");
  if (limit || !text || text->empty())
    return;
  if (std::optional<uint64_t> bytes = parseLimit(*text))
    this->limit = *bytes;
  else if (this->warn)
    this->warn("HUMMING_CACHE_LIMIT: expected a number of bytes such as "
               "500M or 4G, or 0 for none, got '" +
               *text + "'; the limit is 4G");
}

std::string DiskCache::pathOf(const CacheKey &key) const {
  SmallString<160> path(root);
  sys::path::append(path, key.hash() + ".hkc");
  return std::string(path);
}

void DiskCache::warnOnce(std::atomic<bool> &flag, const Twine &message) {
  if (!flag.exchange(true) && warn)
    warn(message.str());
}

void DiskCache::reject(StringRef path, const Twine &reason) {
  ++rejected;
  if (warn)
    warn(("kernel cache: ignoring " + path + ": " + reason).str());
}

std::optional<CacheEntry> DiskCache::read(const CacheKey &key, Miss &why,
                                          bool quiet) {
  why = Miss::Absent;
  if (root.empty())
    return std::nullopt;
  std::string path = pathOf(key);
  // O_NONBLOCK: a FIFO in the entry's place must not hang the open.
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return std::nullopt;
    why = Miss::Bad;
    if (!quiet)
      reject(path, std::strerror(errno));
    return std::nullopt;
  }
  llvm::scope_exit close([&] { ::close(file); });
  struct stat status;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    why = Miss::Bad;
    if (!quiet)
      reject(path, S_ISDIR(status.st_mode) ? "a directory is in its place"
                                           : "not a regular file");
    return std::nullopt;
  }
  // Maps the file where it is larger than a few pages; the mapping keeps the
  // old content when another process renames a new entry over it.
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getOpenFile(
      file, path, uint64_t(status.st_size), /*RequiresNullTerminator=*/false);
  if (!buffer) {
    why = Miss::Bad;
    if (!quiet)
      reject(path, buffer.getError().message());
    return std::nullopt;
  }
  CacheEntry entry;
  std::string problem =
      deserialise((*buffer)->getBuffer(), key, entry.artifacts);
  if (!problem.empty()) {
    why = Miss::Bad;
    if (!quiet)
      reject(path, problem);
    return std::nullopt;
  }
  entry.buffer = std::move(*buffer);
  markUsed(file, status);
  return entry;
}

std::optional<CacheEntry> DiskCache::lookup(const CacheKey &key) {
  Miss why;
  std::optional<CacheEntry> entry = read(key, why);
  ++(entry ? hits : misses);
  return entry;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// With the rights that the umask leaves, so that a folder can be shared.
static std::error_code createFolder(StringRef path) {
  return sys::fs::create_directories(path, /*IgnoreExisting=*/true,
                                     sys::fs::perms::all_all);
}

/// Writes all of `bytes`; 0 or errno.
static int writeAll(int file, StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR)
        continue;
      return errno;
    }
    bytes = bytes.drop_front(size_t(written));
  }
  return 0;
}

bool DiskCache::store(const CacheKey &key, const CacheArtifacts &artifacts) {
  if (root.empty())
    return false;
  auto fail = [&](const Twine &what, const Twine &reason) {
    ++storeFailures;
    warnOnce(warnedStore, "kernel cache: cannot " + what + ": " + reason +
                              "; kernels are compiled anew in each process "
                              "(set HUMMING_CACHE_DIR to a writable folder)");
    return false;
  };
  if (std::error_code error = createFolder(root))
    return fail("create " + root, error.message());

  std::string path = pathOf(key);
  // A name of its own per process and call, in the same folder, so that the
  // rename stays within one file system.
  static std::atomic<uint64_t> serial{0};
  std::string temporary = path + "." +
                          std::to_string(sys::Process::getProcessId()) + "-" +
                          std::to_string(serial++) + "-" +
                          utohexstr(sys::Process::GetRandomNumber()) + ".tmp";
  int file = ::open(temporary.c_str(),
                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0)
    return fail("write to " + root, std::strerror(errno));
  int code = writeAll(file, serialise(key.text(), artifacts));
  // The rename must not become durable before the data.
  if (code == 0 && ::fsync(file) != 0 && errno != EINVAL)
    code = errno;
  if (::close(file) != 0 && code == 0)
    code = errno;
  if (code == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) {
    code = errno;
    // Something that is not a file, such as a directory, is in the entry's
    // place: make way. Only what bears our name is touched.
    if (code == EISDIR || code == ENOTEMPTY || code == EEXIST) {
      sys::fs::remove_directories(path, /*IgnoreErrors=*/true);
      code = ::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
    }
  }
  if (code != 0) {
    ::unlink(temporary.c_str());
    return fail("write " + path, std::strerror(code));
  }
  ++stores;
  evict(path);
  return true;
}

//===----------------------------------------------------------------------===//
// One compile per key
//===----------------------------------------------------------------------===//

Expected<CacheEntry> DiskCache::getOrCompute(const CacheKey &key,
                                             function_ref<Error(Sink)> compute,
                                             unsigned lockSeconds) {
  Miss why = Miss::Absent;
  if (std::optional<CacheEntry> entry = read(key, why)) {
    ++hits;
    return std::move(*entry);
  }
  std::optional<KeyLock> lock;
  if (!root.empty()) {
    // A folder that cannot be made is reported when the entry is stored.
    (void)createFolder(root);
    lock.emplace(pathOf(key) + ".lock", lockSeconds);
    // Another process may have finished while this one waited. A bad entry has
    // been reported already.
    std::optional<CacheEntry> entry =
        read(key, why, /*quiet=*/why == Miss::Bad);
    if (entry) {
      ++hits;
      return std::move(*entry);
    }
  }
  ++misses;

  CacheEntry entry;
  bool filled = false;
  ++computes;
  Error error = compute([&](const CacheArtifacts &artifacts) {
    filled = true;
    store(key, artifacts);
    // The caller's buffers end with the call: keep a copy in the same form.
    std::string bytes = serialise(key.text(), artifacts);
    entry.buffer = MemoryBuffer::getMemBufferCopy(bytes, "kernel");
    StringRef all = entry.buffer->getBuffer();
    uint64_t at = kHeaderBytes + paddedSize(key.text().size());
    auto next = [&](size_t size) {
      StringRef section = all.substr(at, size);
      at += paddedSize(size);
      return section;
    };
    entry.artifacts.launch = next(artifacts.launch.size());
    entry.artifacts.ptx = next(artifacts.ptx.size());
    entry.artifacts.cubin = next(artifacts.cubin.size());
  });
  if (error)
    return std::move(error);
  if (!filled)
    return createStringError(inconvertibleErrorCode(),
                             "kernel cache: the compile function gave neither "
                             "artefacts nor an error");
  return std::move(entry);
}

CacheCounters DiskCache::counters() const {
  return {hits, misses, rejected, stores, storeFailures, computes, evictions};
}

} // namespace humming
