//===- Lexer.cpp - Tokens of PTX text -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"
#include "Humming/Emulator/Emulator.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include <cstdlib>

using namespace llvm;

namespace humming {
namespace emulator {

Error syntaxError(uint32_t line, const Twine &message) {
  auto error =
      std::make_unique<EmulatorError>(EmulatorFault::Syntax, message.str());
  error->site.ptxLine = line;
  return Error(std::move(error));
}

static bool isWord(char c) { return isAlnum(c) || c == '_' || c == '$'; }

namespace {
class Lexer {
public:
  explicit Lexer(StringRef text) : text(text) {}

  Expected<std::vector<Token>> run() {
    while (true) {
      bool space = false;
      if (Error e = skipSpace(space))
        return std::move(e);
      Token token;
      token.line = line;
      token.spaceBefore = space;
      if (pos >= text.size()) {
        tokens.push_back(token);
        return std::move(tokens);
      }
      if (Error e = next(token))
        return std::move(e);
      tokens.push_back(token);
    }
  }

private:
  char at(size_t i) const { return i < text.size() ? text[i] : '\0'; }

  Error skipSpace(bool &space) {
    while (pos < text.size()) {
      char c = text[pos];
      if (c == '\n') {
        ++line;
        ++pos;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\0') {
        ++pos;
      } else if (c == '/' && at(pos + 1) == '/') {
        pos = std::min(text.find('\n', pos), text.size());
      } else if (c == '/' && at(pos + 1) == '*') {
        size_t end = text.find("*/", pos + 2);
        if (end == StringRef::npos)
          return syntaxError(line, "expected '*/' before the end of the text");
        line += text.slice(pos, end).count('\n');
        pos = end + 2;
      } else {
        return Error::success();
      }
      space = true;
    }
    return Error::success();
  }

  Error next(Token &token) {
    size_t start = pos;
    char c = text[pos];
    if (isAlpha(c) || c == '_' || c == '$' ||
        (c == '%' && isWord(at(pos + 1)))) {
      ++pos;
      while (isWord(at(pos)))
        ++pos;
      token.kind = Token::Ident;
    } else if (isDigit(c)) {
      return number(token);
    } else if (c == '.' && isWord(at(pos + 1))) {
      ++pos;
      while (isWord(at(pos)) ||
             (at(pos) == ':' && at(pos + 1) == ':' && isWord(at(pos + 2)))) {
        pos += at(pos) == ':' ? 2 : 1;
      }
      token.kind = Token::Dot;
      token.text = text.slice(start + 1, pos);
      return Error::success();
    } else if (c == '"') {
      size_t end = text.find('"', pos + 1);
      if (end == StringRef::npos)
        return syntaxError(line, "expected '\"' at the end of the string");
      token.kind = Token::String;
      token.text = text.slice(pos + 1, end);
      line += token.text.count('\n');
      pos = end + 1;
      return Error::success();
    } else if (StringRef("@{}[]()<>,;:|=+-!*/~&^%#.").contains(c)) {
      ++pos;
      token.kind = Token::Punct;
    } else {
      return syntaxError(line, Twine("unexpected character ") +
                                   (isPrint(c) ? Twine("'") + Twine(c) + "'"
                                               : Twine(int(uint8_t(c)))));
    }
    token.text = text.slice(start, pos);
    return Error::success();
  }

  Error number(Token &token) {
    size_t start = pos;
    char second = at(pos + 1);
    if (text[pos] == '0' &&
        (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
      unsigned digits = second == 'f' || second == 'F' ? 8 : 16;
      StringRef hex = text.substr(pos + 2, digits);
      uint64_t value;
      if (hex.size() != digits || hex.getAsInteger(16, value))
        return syntaxError(line, "expected " + Twine(digits) +
                                     " hexadecimal digits after '" +
                                     text.substr(pos, 2) + "'");
      pos += 2 + digits;
      token.kind = Token::Float;
      token.floatBits = digits * 4;
      token.bits = value;
      token.text = text.slice(start, pos);
      return Error::success();
    }
    bool isFloat = false;
    if (text[pos] == '0' && (second == 'x' || second == 'X')) {
      pos += 2;
      while (isHexDigit(at(pos)))
        ++pos;
    } else {
      while (isDigit(at(pos)))
        ++pos;
      if (text[start] == '0' && (at(pos) == 'b' || at(pos) == 'B') &&
          pos == start + 1) {
        ++pos;
        while (isDigit(at(pos)))
          ++pos;
      } else {
        if (at(pos) == '.' && isDigit(at(pos + 1))) {
          isFloat = true;
          ++pos;
          while (isDigit(at(pos)))
            ++pos;
        }
        if ((at(pos) == 'e' || at(pos) == 'E') &&
            (isDigit(at(pos + 1)) ||
             ((at(pos + 1) == '-' || at(pos + 1) == '+') &&
              isDigit(at(pos + 2))))) {
          isFloat = true;
          pos += 2;
          while (isDigit(at(pos)))
            ++pos;
        }
      }
    }
    StringRef word = text.slice(start, pos);
    token.text = word;
    if (isFloat) {
      token.kind = Token::Float;
      token.bits =
          llvm::bit_cast<uint64_t>(strtod(word.str().c_str(), nullptr));
      return Error::success();
    }
    token.kind = Token::Integer;
    StringRef digits = word;
    unsigned radix = 10;
    if (digits.consume_front_insensitive("0x"))
      radix = 16;
    else if (digits.consume_front_insensitive("0b"))
      radix = 2;
    else if (digits.size() > 1 && digits.starts_with("0"))
      radix = 8;
    if (digits.getAsInteger(radix, token.bits))
      return syntaxError(line, "expected a 64-bit number, got '" + word + "'");
    if (at(pos) == 'U' || at(pos) == 'u')
      ++pos;
    return Error::success();
  }

  StringRef text;
  size_t pos = 0;
  uint32_t line = 1;
  std::vector<Token> tokens;
};
} // namespace

Expected<std::vector<Token>> tokenize(StringRef text) {
  return Lexer(text).run();
}

} // namespace emulator
} // namespace humming
