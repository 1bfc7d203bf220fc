//===- DiskCache.h - Content-addressed kernel cache on disk -----*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One file per kernel: launch description, PTX and cubin under a checksum. The
// file's name is the hash of what determines the code (problem, config, chip,
// versions), never of a path or a time, so a folder may be shared by processes,
// containers and machines, or shipped in an image.
//
// A file appears by rename, so a reader sees a whole entry or none. Whatever
// looks wrong about an entry (length, checksum, version, key, chip) makes it a
// miss with one warning; the entry is then written anew. The cache never fails
// a compile: without a usable folder it is off, with one warning.
//
// The folder has a size limit. A hit marks its entry as used; a store that
// takes the folder past the limit removes the entries that were not used for
// longest.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_RUNTIME_DISKCACHE_H
#define HUMMING_RUNTIME_DISKCACHE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

struct stat;

namespace humming {

/// What determines the code of a kernel. Every field is part of the key.
struct CacheKey {
  std::string problem; ///< MatmulProblem's text, with the declared divisors
  std::string config;  ///< KernelConfig's text
  std::string chip;    ///< `sm_90`
  int32_t ptxVersion = 0;
  std::string compiler;  ///< version of Humming and of LLVM
  std::string assembler; ///< Assembler::identity; empty if no cubin is wanted

  /// One `name=value` line per field; each value is preceded by its length, so
  /// that no two different keys have the same text.
  std::string text() const;
  /// BLAKE3 of text(), 64 hexadecimal digits.
  std::string hash() const;
};

/// One kernel's artefacts. Any may be empty.
struct CacheArtifacts {
  llvm::StringRef launch; ///< JSON text of the LaunchDescription
  llvm::StringRef ptx;
  llvm::StringRef cubin;
};

/// An entry that was found, or made by getOrCompute. Owns the memory that the
/// views refer to (a mapping of the file, or a copy); each view is followed by
/// a NUL byte.
class CacheEntry {
public:
  llvm::StringRef launch() const { return artifacts.launch; }
  llvm::StringRef ptx() const { return artifacts.ptx; }
  llvm::StringRef cubin() const { return artifacts.cubin; }

private:
  friend class DiskCache;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  CacheArtifacts artifacts;
};

struct CacheCounters {
  uint64_t hits = 0;     ///< lookups that found a good entry
  uint64_t misses = 0;   ///< lookups that did not
  uint64_t rejected = 0; ///< misses because the entry was bad
  uint64_t stores = 0;   ///< entries written
  uint64_t storeFailures = 0;
  uint64_t computes = 0;  ///< calls of getOrCompute's function
  uint64_t evictions = 0; ///< entries that this cache removed to stay in limit
};

/// Thread safe, and safe for any number of processes on one folder.
class DiskCache {
public:
  using WarningHandler = std::function<void(llvm::StringRef)>;

  /// HUMMING_CACHE_DIR, else $XDG_CACHE_HOME/humming, else ~/.cache/humming.
  /// Empty if none of the variables is set.
  static std::string defaultFolder();

  /// Bytes of all entries of a folder where HUMMING_CACHE_LIMIT says nothing:
  /// some twenty thousand kernels.
  static constexpr uint64_t kDefaultLimit = uint64_t(4) << 30;
  /// `500M`, `4G`, `123456` (bytes), `0` (no limit); K, M and G are powers of
  /// 1024. Nothing if it is none of these.
  static std::optional<uint64_t> parseLimit(llvm::StringRef text);

  /// A cache in `folder`, which is created when first needed; empty: no disk
  /// cache. `warn` gets each warning once, and may be called from any thread.
  /// `limit`, in bytes, 0 for none: by default HUMMING_CACHE_LIMIT, else
  /// kDefaultLimit.
  explicit DiskCache(std::string folder, WarningHandler warn = nullptr,
                     std::optional<uint64_t> limit = std::nullopt);
  DiskCache(const DiskCache &) = delete;
  DiskCache &operator=(const DiskCache &) = delete;

  const std::string &folder() const { return root; }
  /// The file that holds, or would hold, the entry.
  std::string pathOf(const CacheKey &key) const;

  /// The entry of `key`, or nothing.
  std::optional<CacheEntry> lookup(const CacheKey &key);

  /// Writes an entry. False: could not (counted, one warning per cache).
  bool store(const CacheKey &key, const CacheArtifacts &artifacts);

  /// lookup, else `compute`, whose artefacts (moved into `sink` by calling it)
  /// are stored. Of several processes or threads that ask for one key at once,
  /// one computes and the others wait for it, for at most `lockSeconds`; after
  /// that, or where the file system has no locks, they compute as well.
  /// Error: `compute`'s; it is not remembered.
  using Sink = llvm::function_ref<void(const CacheArtifacts &)>;
  llvm::Expected<CacheEntry>
  getOrCompute(const CacheKey &key,
               llvm::function_ref<llvm::Error(Sink sink)> compute,
               unsigned lockSeconds = 60);

  CacheCounters counters() const;

private:
  enum class Miss { Absent, Bad };
  std::optional<CacheEntry> read(const CacheKey &key, Miss &why,
                                 bool quiet = false);
  /// Notes that the open entry was used now.
  void markUsed(int file, const struct stat &status);
  /// Brings the folder back under the limit; never removes `keep`.
  void evict(llvm::StringRef keep);
  void reject(llvm::StringRef path, const llvm::Twine &reason);
  void warnOnce(std::atomic<bool> &flag, const llvm::Twine &message);

  std::string root;
  WarningHandler warn;
  uint64_t limit;
  std::atomic<bool> warnedStore{false};
  std::atomic<uint64_t> hits{0}, misses{0}, rejected{0}, stores{0},
      storeFailures{0}, computes{0}, evictions{0};
};

} // namespace humming

#endif // HUMMING_RUNTIME_DISKCACHE_H
