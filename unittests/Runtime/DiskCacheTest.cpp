//===- DiskCacheTest.cpp - Tests of the kernel cache ----------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Runtime/DiskCache.h"
#include "FakeDriver.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace humming;
using namespace llvm;

namespace {

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

std::string readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Entries of a folder, without `.` and `..`.
std::vector<std::string> listFolder(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    names.push_back(sys::path::filename(it->path()).str());
  return names;
}

class DiskCacheTest : public testing::Test {
protected:
  void SetUp() override {
    SmallString<128> path;
    ASSERT_FALSE(sys::fs::createUniqueDirectory("humming-cache", path));
    folder = std::string(path);
    // A sub-folder, so that creating it is tested too.
    root = folder + "/a/b";
    key.problem = "w4a16 u4/g128/bf16 x bf16 -> bf16";
    key.config = "mma=m16n8k16";
    key.chip = "sm_90";
    key.ptxVersion = 78;
    key.compiler = "humming 0.1.0, LLVM 22.1.8";
    key.assembler = "nvjitlink-157d67e6";
    cubin = makeCubin(90) + std::string(60000, '\x5a');
    artifacts = {launch, ptx, cubin};
  }
  void TearDown() override { sys::fs::remove_directories(folder); }

  DiskCache::WarningHandler collect() {
    return [this](StringRef text) { warnings.push_back(text.str()); };
  }
  void expectHit(DiskCache &cache) {
    std::optional<CacheEntry> entry = cache.lookup(key);
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->launch(), launch);
    EXPECT_EQ(entry->ptx(), ptx);
    EXPECT_EQ(entry->cubin(), cubin);
    // What takes C strings may read on: a NUL follows each section.
    EXPECT_EQ(entry->ptx().data()[entry->ptx().size()], '\0');
    EXPECT_EQ(entry->cubin().data()[entry->cubin().size()], '\0');
  }

  std::string folder, root;
  CacheKey key;
  std::string launch = "{\"kernel\": \"k\"}", ptx = makePtx("sm_90", "7.8");
  std::string cubin;
  CacheArtifacts artifacts;
  std::vector<std::string> warnings;
};

TEST_F(DiskCacheTest, StoreThenLookup) {
  DiskCache cache(root, collect());
  EXPECT_FALSE(cache.lookup(key));
  EXPECT_TRUE(cache.store(key, artifacts));
  expectHit(cache);
  DiskCache second(root, collect());
  expectHit(second);
  EXPECT_EQ(cache.counters().hits, 1u);
  EXPECT_EQ(cache.counters().misses, 1u);
  EXPECT_EQ(cache.counters().stores, 1u);
  EXPECT_TRUE(warnings.empty());
  // One file, no left-overs.
  EXPECT_EQ(listFolder(root), std::vector<std::string>{key.hash() + ".hkc"});
}

TEST_F(DiskCacheTest, FolderCanBeShared) {
  mode_t mask = umask(022);
  ASSERT_TRUE(DiskCache(root).store(key, artifacts));
  umask(mask);
  struct stat status;
  ASSERT_EQ(stat(root.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0755u);
}

TEST_F(DiskCacheTest, AnySectionMayBeAbsent) {
  DiskCache cache(root, collect());
  for (int mask = 0; mask < 8; ++mask) {
    key.config = std::to_string(mask);
    CacheArtifacts some = {mask & 1 ? StringRef(launch) : StringRef(),
                           mask & 2 ? StringRef(ptx) : StringRef(),
                           mask & 4 ? StringRef(cubin) : StringRef()};
    ASSERT_TRUE(cache.store(key, some));
    std::optional<CacheEntry> entry = cache.lookup(key);
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->launch(), some.launch);
    EXPECT_EQ(entry->ptx(), some.ptx);
    EXPECT_EQ(entry->cubin(), some.cubin);
  }
}

TEST_F(DiskCacheTest, EveryFieldIsInTheKey) {
  std::string base = key.hash();
  EXPECT_EQ(base.size(), 64u);
  auto changed = [&](auto change) {
    CacheKey other = key;
    change(other);
    return other.hash();
  };
  using K = CacheKey;
  EXPECT_NE(base, changed([](K &k) { k.problem += "x"; }));
  EXPECT_NE(base, changed([](K &k) { k.config += "x"; }));
  EXPECT_NE(base, changed([](K &k) { k.chip = "sm_89"; }));
  EXPECT_NE(base, changed([](K &k) { k.ptxVersion = 79; }));
  EXPECT_NE(base, changed([](K &k) { k.compiler += "x"; }));
  EXPECT_NE(base, changed([](K &k) { k.assembler += "x"; }));
  // Moving text from one field to the next is another key.
  K left = key, right = key;
  left.problem = "a\nconfig=b";
  left.config = "";
  right.problem = "a";
  right.config = "b";
  EXPECT_NE(left.hash(), right.hash());
}

TEST_F(DiskCacheTest, EnvironmentDoesNotChangeTheKey) {
  std::string before = key.hash();
  std::string path = std::getenv("PATH"),
              home = std::getenv("HOME") ? std::getenv("HOME") : "";
  setenv("PATH", "/elsewhere", 1);
  setenv("HOME", "/elsewhere", 1);
  mode_t mask = umask(0077);
  EXPECT_EQ(key.hash(), before);
  umask(mask);
  setenv("PATH", path.c_str(), 1);
  setenv("HOME", home.c_str(), 1);
}

TEST_F(DiskCacheTest, EveryFlippedByteIsNoticed) {
  DiskCache cache(root);
  cubin = makeCubin(90);
  artifacts.cubin = cubin;
  ASSERT_TRUE(cache.store(key, artifacts));
  std::string path = cache.pathOf(key), good = readFile(path);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 0x10;
    writeFile(path, bad);
    EXPECT_FALSE(cache.lookup(key)) << "byte " << at;
  }
  EXPECT_EQ(cache.counters().rejected, good.size());
}

TEST_F(DiskCacheTest, EveryTruncationIsNoticed) {
  DiskCache cache(root);
  cubin = makeCubin(90);
  artifacts.cubin = cubin;
  ASSERT_TRUE(cache.store(key, artifacts));
  std::string path = cache.pathOf(key), good = readFile(path);
  for (size_t size = 0; size < good.size(); ++size) {
    writeFile(path, good.substr(0, size));
    EXPECT_FALSE(cache.lookup(key)) << size << " bytes";
  }
  writeFile(path, good + "x");
  EXPECT_FALSE(cache.lookup(key));
  writeFile(path, good);
  EXPECT_TRUE(cache.lookup(key));
}

TEST_F(DiskCacheTest, BadEntriesAreReplacedWithOneWarning) {
  auto compute = [&](DiskCache::Sink sink) {
    sink(artifacts);
    return Error::success();
  };
  std::string path = DiskCache(root).pathOf(key);
  cantFail(DiskCache(root).getOrCompute(key, compute));
  std::string good = readFile(path);

  std::pair<const char *, std::function<void()>> damages[] = {
      {"truncated: 0 bytes", [&] { writeFile(path, ""); }},
      {"truncated or damaged",
       [&] { writeFile(path, good.substr(0, good.size() / 2)); }},
      {"checksum mismatch",
       [&] {
         std::string bad = good;
         bad[good.size() / 2] ^= 1;
         writeFile(path, bad);
       }},
      {"format version 99",
       [&] {
         std::string bad = good;
         bad[8] = 99;
         writeFile(path, bad);
       }},
      {"not a kernel cache entry",
       [&] { writeFile(path, std::string(500, 'x')); }},
      {"a directory is in its place",
       [&] {
         sys::fs::remove(path);
         ASSERT_FALSE(sys::fs::create_directories(path + "/inside"));
       }},
      {"not a regular file",
       [&] {
         sys::fs::remove(path);
         ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
       }},
      {"belongs to another key",
       [&] {
         CacheKey other = key;
         other.config = "another";
         DiskCache cache(root);
         ASSERT_TRUE(cache.store(other, artifacts));
         ASSERT_FALSE(sys::fs::copy_file(cache.pathOf(other), path));
       }},
      {"cubin is for sm_80, expected sm_90",
       [&] {
         std::string foreign = makeCubin(80);
         ASSERT_TRUE(DiskCache(root).store(key, {launch, ptx, foreign}));
       }},
      {"cubin unusable",
       [&] { ASSERT_TRUE(DiskCache(root).store(key, {launch, ptx, "junk"})); }},
  };
  for (auto &[reason, damage] : damages) {
    damage();
    warnings.clear();
    DiskCache cache(root, collect());
    Expected<CacheEntry> entry = cache.getOrCompute(key, compute);
    ASSERT_TRUE(bool(entry)) << toString(entry.takeError());
    EXPECT_EQ(entry->cubin(), cubin);
    ASSERT_EQ(warnings.size(), 1u) << reason;
    EXPECT_TRUE(contains(warnings[0], reason)) << warnings[0];
    EXPECT_EQ(cache.counters().computes, 1u) << reason;
    // Mended: the next process has a hit and nothing to say.
    warnings.clear();
    DiskCache next(root, collect());
    expectHit(next);
    EXPECT_TRUE(warnings.empty());
  }
}

/// Runs `body` in a child that has no rights beyond those of a plain user, so
/// that permissions count even when the tests run as root.
int runUnprivileged(function_ref<int()> body) {
  pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0)
      _exit(100);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

TEST_F(DiskCacheTest, UnreadableEntryIsAMiss) {
  DiskCache(root).store(key, artifacts);
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  ASSERT_EQ(chmod(DiskCache(root).pathOf(key).c_str(), 0), 0);
  EXPECT_EQ(runUnprivileged([&] {
              int seen = 0;
              DiskCache cache(root, [&](StringRef) { ++seen; });
              bool hit = bool(cache.lookup(key));
              return !hit && seen == 1 ? 0 : 1;
            }),
            0);
}

TEST_F(DiskCacheTest, ReadOnlyFolderStillHits) {
  DiskCache(root).store(key, artifacts);
  for (const std::string &path : {folder, folder + "/a", root})
    ASSERT_EQ(chmod(path.c_str(), 0555), 0);
  EXPECT_EQ(runUnprivileged([&] {
              std::vector<std::string> seen;
              DiskCache cache(
                  root, [&](StringRef text) { seen.push_back(text.str()); });
              auto fail = [](DiskCache::Sink) -> Error {
                return createStringError(inconvertibleErrorCode(), "compiled");
              };
              Expected<CacheEntry> entry = cache.getOrCompute(key, fail);
              if (!entry) {
                consumeError(entry.takeError());
                return 1;
              }
              if (entry->cubin() != cubin || !seen.empty())
                return 2;
              // A kernel that is not there is compiled and cannot be kept: one
              // warning, however many there are.
              for (int i = 0; i < 3; ++i) {
                CacheKey other = key;
                other.config = std::to_string(i);
                Expected<CacheEntry> made =
                    cache.getOrCompute(other, [&](DiskCache::Sink sink) {
                      sink(artifacts);
                      return Error::success();
                    });
                if (!made) {
                  consumeError(made.takeError());
                  return 3;
                }
                if (made->cubin() != cubin)
                  return 4;
              }
              if (seen.size() != 1 || !contains(seen[0], "cannot write to"))
                return 5;
              return cache.counters().storeFailures == 3 ? 0 : 6;
            }),
            0);
  for (const std::string &path : {folder, folder + "/a", root})
    chmod(path.c_str(), 0755);
}

TEST_F(DiskCacheTest, ImpossibleFolderFallsBackWithOneWarning) {
  writeFile(folder + "/file", "x");
  for (const std::string &impossible :
       {folder + "/file/cache", std::string("/proc/no/such")}) {
    warnings.clear();
    DiskCache cache(impossible, collect());
    for (int i = 0; i < 2; ++i) {
      Expected<CacheEntry> entry =
          cache.getOrCompute(key, [&](DiskCache::Sink sink) {
            sink(artifacts);
            return Error::success();
          });
      ASSERT_TRUE(bool(entry)) << toString(entry.takeError());
      EXPECT_EQ(entry->ptx(), ptx);
    }
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_TRUE(contains(warnings[0], "HUMMING_CACHE_DIR")) << warnings[0];
    EXPECT_EQ(cache.counters().computes, 2u);
  }
}

TEST_F(DiskCacheTest, NoFolderIsNoCache) {
  DiskCache cache("", collect());
  EXPECT_FALSE(cache.store(key, artifacts));
  EXPECT_FALSE(cache.lookup(key));
  Expected<CacheEntry> entry =
      cache.getOrCompute(key, [&](DiskCache::Sink sink) {
        sink(artifacts);
        return Error::success();
      });
  ASSERT_TRUE(bool(entry));
  EXPECT_EQ(entry->cubin(), cubin);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(DiskCacheTest, ComputeErrorsAreHandedOnAndNotRemembered) {
  DiskCache cache(root, collect());
  Expected<CacheEntry> entry = cache.getOrCompute(key, [](DiskCache::Sink) {
    return createStringError(inconvertibleErrorCode(), "no assembler");
  });
  ASSERT_FALSE(bool(entry));
  EXPECT_EQ(toString(entry.takeError()), "no assembler");
  entry =
      cache.getOrCompute(key, [](DiskCache::Sink) { return Error::success(); });
  ASSERT_FALSE(bool(entry));
  EXPECT_TRUE(contains(toString(entry.takeError()), "neither artefacts"));
  entry = cache.getOrCompute(key, [&](DiskCache::Sink sink) {
    sink(artifacts);
    return Error::success();
  });
  EXPECT_TRUE(bool(entry));
  // Lock files do not stay.
  EXPECT_EQ(listFolder(root).size(), 1u);
}

TEST_F(DiskCacheTest, StaleLockOfADeadProcessDoesNotBlock) {
  ASSERT_FALSE(sys::fs::create_directories(root));
  DiskCache cache(root, collect());
  writeFile(cache.pathOf(key) + ".lock", "");
  auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(bool(cache.getOrCompute(key, [&](DiskCache::Sink sink) {
    sink(artifacts);
    return Error::success();
  })));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(DiskCacheTest, SixteenProcessesCompileOnce) {
  for (int round = 0; round < 5; ++round) {
    key.config = "round " + std::to_string(round);
    std::string folderOfRound = root + std::to_string(round);
    // A pipe that closes when all children are to start.
    int gate[2];
    ASSERT_EQ(pipe(gate), 0);
    std::string log = folder + "/compiles" + std::to_string(round);
    std::vector<pid_t> children;
    for (int i = 0; i < 16; ++i) {
      pid_t child = fork();
      if (child == 0) {
        close(gate[1]);
        char byte;
        (void)!read(gate[0], &byte, 1);
        int seen = 0;
        DiskCache cache(folderOfRound, [&](StringRef) { ++seen; });
        Expected<CacheEntry> entry =
            cache.getOrCompute(key, [&](DiskCache::Sink sink) {
              // One byte per compile; O_APPEND keeps them apart.
              std::ofstream(log, std::ios::app) << 'c' << std::flush;
              std::this_thread::sleep_for(std::chrono::milliseconds(30));
              sink(artifacts);
              return Error::success();
            });
        if (!entry) {
          consumeError(entry.takeError());
          _exit(1);
        }
        _exit(entry->cubin() == cubin && entry->ptx() == ptx && seen == 0 ? 0
                                                                          : 2);
      }
      children.push_back(child);
    }
    close(gate[0]);
    close(gate[1]);
    for (pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
          << "status " << status;
    }
    EXPECT_EQ(readFile(log), "c");
    EXPECT_EQ(listFolder(folderOfRound).size(), 1u);
  }
}

TEST_F(DiskCacheTest, WritersWithoutALockNeverShowAHalfEntry) {
  // store() alone takes no lock: readers see whole entries only.
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    pid_t child = fork();
    if (child == 0) {
      DiskCache cache(root);
      for (int j = 0; j < 25; ++j) {
        if (i % 2 == 0 && !cache.store(key, artifacts))
          _exit(1);
        std::optional<CacheEntry> entry = cache.lookup(key);
        if (entry && entry->cubin() != cubin)
          _exit(2);
      }
      _exit(cache.counters().rejected == 0 ? 0 : 3);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

TEST_F(DiskCacheTest, TwoChipsInOneProcessKeepApart) {
  std::string other = makeCubin(89);
  DiskCache cache(root, collect());
  CacheKey key89 = key;
  key89.chip = "sm_89";
  // In either order.
  ASSERT_TRUE(cache.store(key89, {launch, ptx, other}));
  ASSERT_TRUE(cache.store(key, artifacts));
  EXPECT_EQ(cache.lookup(key89)->cubin(), other);
  EXPECT_EQ(cache.lookup(key)->cubin(), cubin);
}

TEST_F(DiskCacheTest, SecondStartCompilesNothing) {
  auto compute = [&](DiskCache::Sink sink) {
    sink(artifacts);
    return Error::success();
  };
  DiskCache first(root);
  cantFail(first.getOrCompute(key, compute));
  EXPECT_EQ(first.counters().computes, 1u);
  DiskCache second(root);
  cantFail(second.getOrCompute(key, compute));
  EXPECT_EQ(second.counters().computes, 0u);
  EXPECT_EQ(second.counters().hits, 1u);
}

TEST_F(DiskCacheTest, FolderFollowsTheEnvironment) {
  auto with = [](const char *dir, const char *xdg, const char *home) {
    for (auto [name, value] :
         {std::pair<const char *, const char *>{"HUMMING_CACHE_DIR", dir},
          {"XDG_CACHE_HOME", xdg},
          {"HOME", home}})
      value ? setenv(name, value, 1) : unsetenv(name);
    return DiskCache::defaultFolder();
  };
  std::string oldHome = std::getenv("HOME") ? std::getenv("HOME") : "";
  const char *oldDir = std::getenv("HUMMING_CACHE_DIR");
  const char *oldXdg = std::getenv("XDG_CACHE_HOME");
  std::string keepDir = oldDir ? oldDir : "", keepXdg = oldXdg ? oldXdg : "";
  EXPECT_EQ(with("/d", "/x", "/h"), "/d");
  EXPECT_EQ(with("", "/x", "/h"), "/x/humming");
  EXPECT_EQ(with(nullptr, "relative", "/h"), "/h/.cache/humming");
  EXPECT_EQ(with(nullptr, nullptr, "/h"), "/h/.cache/humming");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
  with(oldDir ? keepDir.c_str() : nullptr, oldXdg ? keepXdg.c_str() : nullptr,
       oldHome.empty() ? nullptr : oldHome.c_str());
}

TEST_F(DiskCacheTest, AHitTakesWellUnderFiveMilliseconds) {
  // A kernel of typical size: 200 kB of PTX, 60 kB of cubin.
  std::string bigPtx = ptx + std::string(200000, ' ');
  DiskCache(root).store(key, {launch, bigPtx, cubin});
  // The best of ten, as other processes may hold the machine; the page cache is
  // warm, as it is for a kernel in use.
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    auto start = std::chrono::steady_clock::now();
    DiskCache cache(root);
    std::optional<CacheEntry> entry = cache.lookup(key);
    double ms = std::chrono::duration<double, std::milli>(
                    std::chrono::steady_clock::now() - start)
                    .count();
    ASSERT_TRUE(entry);
    best = std::min(best, ms);
  }
  RecordProperty("hit_microseconds", int(best * 1000));
  EXPECT_LT(best, 5.0);
}

TEST_F(DiskCacheTest, LimitIsParsed) {
  EXPECT_EQ(DiskCache::parseLimit("0"), 0u);
  EXPECT_EQ(DiskCache::parseLimit("123456"), 123456u);
  EXPECT_EQ(DiskCache::parseLimit("3k"), 3u << 10);
  EXPECT_EQ(DiskCache::parseLimit(" 500M "), 500u << 20);
  EXPECT_EQ(DiskCache::parseLimit("4G"), uint64_t(4) << 30);
  for (const char *bad : {"", "G", "-1", "1.5G", "4GB", "0x10", "99999999999G"})
    EXPECT_FALSE(DiskCache::parseLimit(bad)) << bad;
}

TEST_F(DiskCacheTest, LimitComesFromTheEnvironment) {
  setenv("HUMMING_CACHE_LIMIT", "70000", 1);
  DiskCache cache(root, collect());
  EXPECT_TRUE(warnings.empty());
  // Entries of about 61 kB each: one fits, two do not.
  ASSERT_TRUE(cache.store(key, artifacts));
  key.config = "second";
  ASSERT_TRUE(cache.store(key, artifacts));
  EXPECT_EQ(cache.counters().evictions, 1u);
  expectHit(cache);
  setenv("HUMMING_CACHE_LIMIT", "much", 1);
  DiskCache other(root, collect());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(contains(warnings[0], "expected a number of bytes"));
  unsetenv("HUMMING_CACHE_LIMIT");
}

/// Sets the time of an entry's last use to so many seconds ago.
void age(const std::string &path, int seconds) {
  struct timespec times[2];
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds;
  times[1] = times[0];
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST_F(DiskCacheTest, TheLongestUnusedGoFirst) {
  // Ten entries of about 61 kB; eight fit.
  DiskCache cache(root, collect(), /*limit=*/8 * 62000);
  auto named = [&](int i) {
    CacheKey other = key;
    other.config = std::to_string(i);
    return other;
  };
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(cache.store(named(i), artifacts));
    age(cache.pathOf(named(i)), 1000 - i);
  }
  EXPECT_EQ(cache.counters().evictions, 0u);
  // A hit makes the oldest the newest.
  EXPECT_TRUE(cache.lookup(named(0)));
  // What a killed process left goes, what one is writing stays.
  writeFile(root + "/left.hkc.1-1-A.tmp", "x");
  age(root + "/left.hkc.1-1-A.tmp", 7200);
  writeFile(root + "/live.hkc.1-1-B.tmp", "x");
  writeFile(root + "/foreign.txt", "x");
  age(root + "/foreign.txt", 7200);
  ASSERT_TRUE(cache.store(named(8), artifacts));
  // Nine entries: down to 7/8 of the limit, which seven are.
  EXPECT_EQ(cache.counters().evictions, 2u);
  for (int i = 0; i < 9; ++i)
    EXPECT_EQ(bool(cache.lookup(named(i))), i != 1 && i != 2) << i;
  EXPECT_FALSE(sys::fs::exists(root + "/left.hkc.1-1-A.tmp"));
  EXPECT_TRUE(sys::fs::exists(root + "/live.hkc.1-1-B.tmp"));
  EXPECT_TRUE(sys::fs::exists(root + "/foreign.txt"));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(DiskCacheTest, AnEntryLargerThanTheLimitStays) {
  DiskCache cache(root, collect(), /*limit=*/1000);
  ASSERT_TRUE(cache.store(key, artifacts));
  expectHit(cache);
}

// A mapped entry outlives its removal.
TEST_F(DiskCacheTest, AnEntryInUseKeepsItsBytes) {
  DiskCache cache(root, collect(), /*limit=*/70000);
  ASSERT_TRUE(cache.store(key, artifacts));
  std::optional<CacheEntry> used = cache.lookup(key);
  ASSERT_TRUE(used);
  age(cache.pathOf(key), 500);
  CacheKey other = key;
  other.config = "other";
  ASSERT_TRUE(cache.store(other, artifacts));
  EXPECT_FALSE(cache.lookup(key));
  EXPECT_EQ(used->cubin(), cubin);
}

// Processes that store, look up and evict in one folder at once: no failure, no
// wrong bytes, and the limit holds at the end but for what the last stores of
// each process added while another tidied.
TEST_F(DiskCacheTest, ProcessesEvictTogether) {
  constexpr int kProcesses = 8, kRounds = 40;
  constexpr uint64_t kLimit = 6 * 62000;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::vector<std::string> complaints;
      DiskCache cache(
          root, [&](StringRef text) { complaints.push_back(text.str()); },
          kLimit);
      bool ok = true;
      for (int i = 0; i < kRounds && ok; ++i) {
        CacheKey mine = key;
        mine.config = std::to_string((p * 7 + i * 3) % 20);
        Expected<CacheEntry> entry =
            cache.getOrCompute(mine, [&](DiskCache::Sink sink) -> Error {
              sink(artifacts);
              return Error::success();
            });
        ok = bool(entry) && entry->cubin() == cubin && entry->ptx() == ptx;
        if (!entry)
          consumeError(entry.takeError());
      }
      _exit(ok && complaints.empty() && cache.counters().storeFailures == 0
                ? 0
                : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  DiskCache cache(root, collect(), kLimit);
  CacheKey last = key;
  last.config = "last";
  ASSERT_TRUE(cache.store(last, artifacts));
  uint64_t bytes = 0;
  for (const std::string &name : listFolder(root)) {
    EXPECT_TRUE(StringRef(name).ends_with(".hkc")) << name;
    uint64_t size = 0;
    EXPECT_FALSE(sys::fs::file_size(root + "/" + name, size));
    bytes += size;
  }
  EXPECT_LE(bytes, kLimit);
  EXPECT_TRUE(warnings.empty());
}

} // namespace
