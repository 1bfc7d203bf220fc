//===- DiskCacheLimit.cpp - The size limit of the kernel cache ------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The modification time of an entry is the time of its last use: written by a
// store, renewed by a hit (access times are off on many file systems). Nothing
// but the order of removal depends on it.
//
// After a store, the sizes of all entries are added up. Past the limit, the
// process that gets the folder's eviction lock removes entries, the longest
// unused first, down to 7/8 of the limit, so that a full cache is not tidied at
// each store. Removing is safe at any time: a reader that has opened the entry
// keeps its bytes, one that comes later misses and compiles.
//
//===----------------------------------------------------------------------===//

#include "Humming/Runtime/DiskCache.h"
#include "KeyLock.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <ctime>
#include <tuple>
#include <vector>

using namespace llvm;

namespace humming {

/// A hit renews the time of use at most this often: serving must not write to
/// the disk with each lookup.
static constexpr int64_t kRenewSeconds = 60;
/// A temporary file this old was left by a process that was killed.
static constexpr int64_t kStaleSeconds = 3600;

std::optional<uint64_t> DiskCache::parseLimit(StringRef text) {
  text = text.trim();
  unsigned shift = 0;
  if (!text.empty())
    switch (text.back()) {
    case 'k':
    case 'K':
      shift = 10;
      break;
    case 'm':
    case 'M':
      shift = 20;
      break;
    case 'g':
    case 'G':
      shift = 30;
      break;
    default:
      break;
    }
  uint64_t value;
  if ((shift ? text.drop_back() : text).getAsInteger(10, value) ||
      value > (UINT64_MAX >> shift))
    return std::nullopt;
  return value << shift;
}

void DiskCache::markUsed(int file, const struct stat &status) {
  if (limit == 0 || std::time(nullptr) - status.st_mtime < kRenewSeconds)
    return;
  // Not ours to write in a shared or read-only folder: the order is then that
  // of the stores.
  (void)::futimens(file, nullptr);
}

namespace {
struct UsedFile {
  int64_t seconds, nanoseconds; ///< of the last use
  uint64_t bytes;
  std::string path;
};
struct FolderContent {
  std::vector<UsedFile> entries;
  std::vector<std::string> stale; ///< temporary files nobody will finish
  uint64_t bytes = 0;             ///< of the entries
};
} // namespace

static FolderContent listFolder(StringRef root) {
  FolderContent content;
  std::error_code error;
  int64_t now = std::time(nullptr);
  for (sys::fs::directory_iterator it(root, error), end; !error && it != end;
       it.increment(error)) {
    StringRef extension = sys::path::extension(it->path());
    if (extension != ".hkc" && extension != ".tmp")
      continue;
    struct stat status;
    if (::lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    if (extension == ".hkc") {
      content.entries.push_back({int64_t(status.st_mtim.tv_sec),
                                 int64_t(status.st_mtim.tv_nsec),
                                 uint64_t(status.st_size), it->path()});
      content.bytes += uint64_t(status.st_size);
    } else if (StringRef(it->path()).contains(".hkc.") &&
               now - status.st_mtime > kStaleSeconds) {
      content.stale.push_back(it->path());
    }
  }
  return content;
}

void DiskCache::evict(StringRef keep) {
  if (limit == 0 || listFolder(root).bytes <= limit)
    return;
  SmallString<160> lockPath(root);
  sys::path::append(lockPath, "evict.lock");
  KeyLock lock(std::string(lockPath), /*seconds=*/0);
  if (!lock.held())
    return;                                 // another process is at it
  FolderContent content = listFolder(root); // as it is now
  for (const std::string &path : content.stale)
    ::unlink(path.c_str());
  if (content.bytes <= limit)
    return;
  llvm::sort(content.entries, [](const UsedFile &a, const UsedFile &b) {
    return std::tie(a.seconds, a.nanoseconds, a.path) <
           std::tie(b.seconds, b.nanoseconds, b.path);
  });
  uint64_t goal = limit - limit / 8;
  for (const UsedFile &file : content.entries) {
    if (content.bytes <= goal)
      break;
    if (file.path == keep || ::unlink(file.path.c_str()) != 0)
      continue;
    content.bytes -= file.bytes;
    ++evictions;
  }
}

} // namespace humming
