//===- HardwareSupport.h - Reads and compares hardware results ------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_UNITTESTS_EMULATORARITHMETIC_HARDWARESUPPORT_H
#define HUMMING_UNITTESTS_EMULATORARITHMETIC_HARDWARESUPPORT_H

#include "Truth.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <map>
#include <string>
#include <vector>

/// The cases of one file by name. A missing or malformed file is a failure.
inline std::map<std::string, truth::Case> load(const char *family) {
  std::map<std::string, truth::Case> cases;
  std::string path =
      std::string(HUMMING_SOURCE_DIR "/test/data/hardware/") + family + ".bin";
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    ADD_FAILURE() << path << ": " << buffer.getError().message();
    return cases;
  }
  std::vector<truth::Case> list;
  if (!truth::parseFile(
          reinterpret_cast<const uint8_t *>((*buffer)->getBufferStart()),
          (*buffer)->getBufferSize(), list)) {
    ADD_FAILURE() << path << ": malformed";
    return cases;
  }
  for (truth::Case &c : list)
    cases[c.name] = std::move(c);
  return cases;
}

inline const truth::Case *find(const std::map<std::string, truth::Case> &cases,
                               const std::string &name) {
  auto it = cases.find(name);
  if (it == cases.end()) {
    ADD_FAILURE() << "no hardware results for " << name;
    return nullptr;
  }
  return &it->second;
}

inline uint64_t storedValue(const truth::Case &c, size_t slot) {
  uint64_t v = 0;
  memcpy(&v, c.stored.data() + slot * c.bytes, c.bytes);
  return v;
}

/// Compares all results; `describe(index)` names the inputs of one.
template <typename Describe>
inline void compareBits(const truth::Case &hardware, const void *computed,
                        uint32_t count, unsigned bytes, Describe describe) {
  truth::Case mine =
      truth::makeCase(hardware.name, computed, count, bytes, hardware.full);
  ASSERT_EQ(hardware.count, mine.count) << hardware.name;
  ASSERT_EQ(hardware.bytes, mine.bytes) << hardware.name;
  unsigned shown = 0, wrong = 0;
  size_t slot = 0;
  std::string text;
  for (uint32_t i = 0; i < count; ++i) {
    if (!truth::isStored(hardware.full, i))
      continue;
    uint64_t want = storedValue(hardware, slot), got = storedValue(mine, slot);
    ++slot;
    if (want == got)
      continue;
    ++wrong;
    if (shown++ < 4) {
      char line[256];
      snprintf(line, sizeof(line), "  [%u] %s: hardware %llx, emulator %llx\n",
               i, describe(i).c_str(), (unsigned long long)want,
               (unsigned long long)got);
      text += line;
    }
  }
  unsigned blocks = 0;
  for (size_t b = 0; b < hardware.hashes.size(); ++b)
    if (hardware.hashes[b] != mine.hashes[b] && ++blocks <= 4)
      text += "  results " + std::to_string(256 * b) + " to " +
              std::to_string(256 * b + 255) + " differ\n";
  EXPECT_TRUE(wrong == 0 && blocks == 0)
      << hardware.name << ": " << wrong << " of " << slot
      << " stored results and " << blocks << " of " << hardware.hashes.size()
      << " blocks differ\n"
      << text;
}

inline std::string number(uint32_t i) { return "result " + std::to_string(i); }

#endif // HUMMING_UNITTESTS_EMULATORARITHMETIC_HARDWARESUPPORT_H
