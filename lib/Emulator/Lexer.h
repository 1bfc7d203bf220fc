//===- Lexer.h - Tokens of PTX text -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_LEXER_H
#define HUMMING_LIB_EMULATOR_LEXER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <vector>

namespace humming {
namespace emulator {

struct Token {
  enum Kind : uint8_t {
    End,
    Ident,   ///< name, %name, $name
    Dot,     ///< ".word", also ".shared::cta" and ".2d"
    Integer, ///< value in `bits`
    Float,   ///< f64 bits in `bits`; 0f and 0d forms have `floatBits` set
    String,
    Punct, ///< one character, in `text`
  };
  Kind kind = End;
  uint8_t floatBits = 0; ///< 32 or 64 for 0fXXXXXXXX / 0dXXXXXXXXXXXXXXXX
  bool spaceBefore = false;
  uint32_t line = 0;
  llvm::StringRef text;
  uint64_t bits = 0;

  bool is(char c) const { return kind == Punct && text[0] == c; }
  bool isDot(llvm::StringRef s) const { return kind == Dot && text == s; }
};

/// Splits \p text. The tokens point into it. Error: EmulatorError, Syntax.
llvm::Expected<std::vector<Token>> tokenize(llvm::StringRef text);

/// A syntax error at a line.
llvm::Error syntaxError(uint32_t line, const llvm::Twine &message);

} // namespace emulator
} // namespace humming

#endif // HUMMING_LIB_EMULATOR_LEXER_H
