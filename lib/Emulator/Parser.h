//===- Parser.h - PTX text to a decoded module -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_PARSER_H
#define HUMMING_LIB_EMULATOR_PARSER_H

#include "Decode.h"
#include "Lexer.h"
#include <map>

namespace humming {
namespace emulator {

/// Recursive descent over the tokens. Every parse function returns true on
/// success; on failure `error` holds the first syntax error.
class Parser : public DecodeHost {
public:
  static llvm::Expected<std::unique_ptr<Module>> parse(llvm::StringRef text);
  ~Parser() override {
    // An error that was never handed out (parse() always does).
    llvm::consumeError(std::move(error));
  }

private:
  Parser(Module &module, std::vector<Token> tokens)
      : mod(module), tokens(std::move(tokens)) {}

  //===--- Tokens -------------------------------------------------------===//
  const Token &tok(unsigned ahead = 0) const {
    return tokens[std::min(pos + ahead, tokens.size() - 1)];
  }
  void advance() {
    if (pos + 1 < tokens.size())
      ++pos;
  }
  bool fail(const llvm::Twine &message) { return fail(tok().line, message); }
  bool fail(uint32_t line, const llvm::Twine &message);
  bool accept(char c) {
    if (!tok().is(c))
      return false;
    advance();
    return true;
  }
  bool expect(char c);
  bool acceptDot(llvm::StringRef word) {
    if (!tok().isDot(word))
      return false;
    advance();
    return true;
  }
  bool integer(int64_t &value);
  /// Skips to after the next ';'.
  bool skipStatement();
  bool skipBraces();
  std::string describeToken() const;

  //===--- Module level (Parser.cpp) -------------------------------------===//
  bool parseModule();
  bool parseVersion();
  bool parseTarget();
  bool parseFile();
  bool parseFunction(bool isEntry);
  bool parseParams(std::vector<Param> &list, bool isEntry, Function &f);
  bool parseParam(std::vector<Param> &list, bool isEntry, Function &f);
  bool parseTriple(uint32_t (&values)[3]);
  bool parseVariables(Space space, bool isExtern);
  bool parseInitializer(Variable &v, Ty ty, uint64_t &offset, unsigned depth);
  bool parseInitializerValue(Variable &v, Ty ty, uint64_t &offset);
  void layoutVariables();
  void layoutFrames();
  void patchSymbols();

  //===--- Function bodies (ParserBody.cpp) ------------------------------===//
  struct Scope {
    /// Registers declared one by one, and families %r<N>.
    llvm::StringMap<std::pair<Operand, Ty>> names;
    struct Family {
      Operand first;
      Ty ty;
      uint32_t count, step;
    };
    llvm::StringMap<Family> families;
    llvm::StringMap<uint32_t> variables; ///< into Module::variables
    struct CallVar {
      uint32_t offset, size, align;
    };
    llvm::StringMap<CallVar> callVars;
    llvm::StringMap<uint32_t> labels;
    struct Fixup {
      uint32_t inst, line;
      std::string label;
      int32_t table; ///< -1: Inst::target, else the entry of a branch table
      uint32_t entry;
    };
    std::vector<Fixup> fixups;
    llvm::StringMap<uint32_t> tables; ///< .branchtargets lists
    struct TableUse {
      uint32_t inst, line;
      std::string name;
    };
    std::vector<TableUse> tableUses;
  };
  bool parseBody();
  bool parseStatement();
  bool parseRegisters();
  bool parseCallVars();
  bool parseLoc();
  bool parseLabel();
  bool parseInstruction();
  bool parseCall(Inst &inst);
  bool parseCallList(std::vector<CallInfo::Arg> &list, bool isReturn,
                     Inst &inst);
  bool parseOperand(POperand &op, bool inAddress = false);
  bool parseSimpleOperand(POperand &op);
  bool parseNumber(POperand &op);
  bool closeScope();
  bool lookupRegister(llvm::StringRef name, Operand &reg, Ty &ty);
  void resolveName(POperand &op);
  void emit(Inst &inst, llvm::ArrayRef<Operand> operands);
  Operand newRegister(Ty ty);
  Operand newRow(Operand::Width width);
  uint32_t addUnsupported(const llvm::Twine &text);

  //===--- DecodeHost ----------------------------------------------------===//
  Operand constant(Operand::Width width, uint64_t lo, uint64_t hi) override;
  Operand symbolConstant(const POperand &symbol, Operand::Width width) override;
  Operand scratch(Operand::Width width) override;
  Operand readSpecial(SReg sreg, Operand::Width width) override;
  Function &function() override { return mod.functions[current]; }
  Module &module() override { return mod; }

  Module &mod;
  std::vector<Token> tokens;
  size_t pos = 0;
  llvm::Error error = llvm::Error::success();
  bool failed = false;
  uint32_t current = NoFunction; ///< function being parsed
  std::vector<Scope> scopes;     ///< [0] the module, then the function, blocks
  uint32_t currentLoc = 0, currentLine = 0;
  std::map<std::tuple<unsigned, uint64_t, uint64_t>, Operand> constantPool;
  std::map<unsigned, Operand> scratchRows;
  /// Constant rows that wait for layout.
  struct SymbolUse {
    uint32_t row;
    Operand::Width width;
    enum { Var, CallVar, Func } kind;
    uint32_t index; ///< variable, or function for the others
    int64_t offset;
  };
  std::vector<SymbolUse> symbolUses;
  llvm::DenseMap<uint32_t, uint32_t> localOwner; ///< local variable -> function
};

/// Addresses of functions, for indirect calls.
constexpr uint64_t FunctionBase = 0x0000500000000000;

} // namespace emulator
} // namespace humming

#endif // HUMMING_LIB_EMULATOR_PARSER_H
