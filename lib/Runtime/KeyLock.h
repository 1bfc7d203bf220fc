//===- KeyLock.h - A lock file ----------------------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What keeps processes that share a cache folder from doing the same work at
// once. Private to the cache.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_RUNTIME_KEYLOCK_H
#define HUMMING_LIB_RUNTIME_KEYLOCK_H

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace humming {

/// A lock file held through flock, so it goes with its process however that
/// ends. The file is removed by its holder; whoever waited on the removed file
/// sees that the path no longer leads to it and tries again.
class KeyLock {
public:
  /// Waits at most `seconds`; 0: takes it if it is free.
  KeyLock(std::string path, unsigned seconds) : path(std::move(path)) {
    using Clock = std::chrono::steady_clock;
    auto deadline = Clock::now() + std::chrono::seconds(seconds);
    auto pause = std::chrono::microseconds(500);
    while (true) {
      file = ::open(this->path.c_str(),
                    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
      if (file < 0)
        return; // read-only or missing folder: do without
      while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
        bool busy = errno == EWOULDBLOCK || errno == EINTR;
        if (!busy || Clock::now() >= deadline) {
          ::close(file);
          file = -1;
          return;
        }
        std::this_thread::sleep_for(pause);
        pause = std::min<std::chrono::microseconds>(
            pause * 2, std::chrono::milliseconds(20));
      }
      struct stat mine, current;
      if (::fstat(file, &mine) == 0 &&
          ::stat(this->path.c_str(), &current) == 0 &&
          mine.st_ino == current.st_ino && mine.st_dev == current.st_dev)
        return;
      ::close(file);
      file = -1;
    }
  }
  KeyLock(const KeyLock &) = delete;
  KeyLock &operator=(const KeyLock &) = delete;
  /// Whether it was taken: not if another holds it, or no file can be made.
  bool held() const { return file >= 0; }
  ~KeyLock() {
    if (file < 0)
      return;
    ::unlink(path.c_str());
    ::close(file);
  }

private:
  std::string path;
  int file = -1;
};

} // namespace humming

#endif // HUMMING_LIB_RUNTIME_KEYLOCK_H
