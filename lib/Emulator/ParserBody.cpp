//===- ParserBody.cpp - PTX function bodies: registers, operands, instructions
//-*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec.h"
#include "Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace llvm;

namespace humming {
namespace emulator {

constexpr uint32_t MaxRows = 1 << 18;
constexpr size_t MaxInstructions = 1 << 21;

static uint32_t unitsOf(Operand::Width width) {
  return width == Operand::W32 ? 1 : width == Operand::W64 ? 2 : 4;
}

Operand Parser::newRow(Operand::Width width) {
  Function &f = function();
  if (width == Operand::Pred)
    return Operand::make(Operand::Register, width, f.preds++);
  Operand o = Operand::make(Operand::Register, width, f.rows);
  f.rows += unitsOf(width);
  return o;
}

Operand Parser::newRegister(Ty ty) { return newRow(Decoder::widthOf(ty)); }

Operand Parser::scratch(Operand::Width width) {
  Operand &row = scratchRows[width];
  if (!row.ref)
    row = newRow(width);
  return row;
}

Operand Parser::constant(Operand::Width width, uint64_t lo, uint64_t hi) {
  if (width == Operand::W32)
    lo &= 0xFFFFFFFF;
  if (width != Operand::W128)
    hi = 0;
  auto [it, isNew] =
      constantPool.try_emplace({unsigned(width), lo, hi}, Operand());
  if (!isNew)
    return it->second;
  size_t row = mod.constants.size() / 128;
  it->second = Operand::make(Operand::Constant, width, uint32_t(row));
  mod.constants.resize(mod.constants.size() + 128 * unitsOf(width));
  uint8_t *p = mod.constants.data() + row * 128;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (width == Operand::W32) {
      uint32_t v = uint32_t(lo);
      std::memcpy(p + 4 * lane, &v, 4);
    } else {
      std::memcpy(p + 8 * lane, &lo, 8);
      if (width == Operand::W128)
        std::memcpy(p + 256 + 8 * lane, &hi, 8);
    }
  }
  return it->second;
}

Operand Parser::symbolConstant(const POperand &symbol, Operand::Width width) {
  if (symbol.kind == POperand::ParamSymbol && symbol.entryParam)
    return constant(width, uint64_t(symbol.offset), 0);
  size_t row = mod.constants.size() / 128;
  mod.constants.resize(mod.constants.size() + 128 * unitsOf(width));
  SymbolUse use;
  use.row = uint32_t(row);
  use.width = width;
  use.offset = symbol.offset;
  if (symbol.kind == POperand::ParamSymbol) {
    use.kind = SymbolUse::CallVar;
    use.index = current;
  } else if (symbol.kind == POperand::FunctionSymbol) {
    use.kind = SymbolUse::Func;
    use.index = symbol.index;
  } else {
    use.kind = SymbolUse::Var;
    use.index = symbol.index;
  }
  symbolUses.push_back(use);
  return Operand::make(Operand::Constant, width, uint32_t(row));
}

Operand Parser::readSpecial(SReg sreg, Operand::Width width) {
  Operand row = newRow(width);
  Inst inst;
  inst.fn = execReadSpecial;
  inst.cls = InstClass::Move;
  inst.aux = unsigned(sreg);
  inst.line = currentLine;
  inst.loc = currentLoc;
  emit(inst, row);
  return row;
}

void Parser::emit(Inst &inst, ArrayRef<Operand> operands) {
  inst.opBegin = uint32_t(mod.operands.size());
  inst.opCount = uint16_t(operands.size());
  mod.operands.insert(mod.operands.end(), operands.begin(), operands.end());
  mod.code.push_back(inst);
}

uint32_t Parser::addUnsupported(const Twine &text) {
  mod.strings.push_back(text.str());
  return uint32_t(mod.strings.size() - 1);
}

bool Parser::parseBody() {
  Function &f = function();
  f.begin = uint32_t(mod.code.size());
  scratchRows.clear();
  currentLoc = 0;
  if (!expect('{'))
    return false;
  size_t outer = scopes.size();
  scopes.emplace_back();
  while (true) {
    if (tok().kind == Token::End)
      return fail("expected '}' before the end of the text");
    if (accept('{')) {
      if (scopes.size() > 256)
        return fail("blocks are nested too deeply");
      scopes.emplace_back();
      continue;
    }
    if (tok().is('}')) {
      if (scopes.size() == outer + 1) {
        // Falling off the end returns.
        Inst inst;
        inst.flow = function().isEntry ? Flow::Exit : Flow::Return;
        inst.cls = InstClass::Control;
        inst.line = tok().line;
        inst.numDst = 0;
        emit(inst, {});
      }
      if (!closeScope())
        return false;
      advance();
      if (scopes.size() == outer)
        break;
      continue;
    }
    if (!parseStatement())
      return false;
    if (mod.code.size() > MaxInstructions)
      return fail("expected at most " + Twine(MaxInstructions) +
                  " instructions");
    if (function().rows > MaxRows || function().preds >= NoPred)
      return fail("function '" + function().name + "' has too many registers");
  }
  function().end = uint32_t(mod.code.size());
  return true;
}

bool Parser::closeScope() {
  Scope scope = std::move(scopes.back());
  scopes.pop_back();
  bool outermost = scopes.size() == 2; // module, parameters
  for (Scope::Fixup &fixup : scope.fixups) {
    auto it = scope.labels.find(fixup.label);
    if (it != scope.labels.end()) {
      if (fixup.table >= 0)
        mod.branchTables[fixup.table][fixup.entry] = it->second;
      else
        mod.code[fixup.inst].target = it->second;
    } else if (outermost) {
      return fail(fixup.line, "use of undefined label '" + fixup.label + "'");
    } else {
      scopes.back().fixups.push_back(std::move(fixup));
    }
  }
  for (Scope::TableUse &use : scope.tableUses) {
    auto it = scope.tables.find(use.name);
    if (it != scope.tables.end())
      mod.code[use.inst].target = it->second;
    else if (outermost)
      return fail(use.line,
                  "use of undefined branch target list '" + use.name + "'");
    else
      scopes.back().tableUses.push_back(std::move(use));
  }
  return true;
}

bool Parser::parseStatement() {
  const Token &t = tok();
  currentLine = t.line;
  if (t.kind == Token::Dot) {
    StringRef word = t.text;
    if (word == "reg")
      return parseRegisters();
    if (word == "loc")
      return parseLoc();
    if (word == "param")
      return parseCallVars();
    if (word == "pragma" || word == "file" || word == "alias")
      return word == "file" ? parseFile() : skipStatement();
    advance();
    if (word == "shared")
      return parseVariables(Space::Shared, false);
    if (word == "local")
      return parseVariables(Space::Local, false);
    if (word == "global")
      return parseVariables(Space::Global, false);
    if (word == "const")
      return parseVariables(Space::Const, false);
    if (word == "extern" && acceptDot("shared"))
      return parseVariables(Space::Shared, true);
    return fail("unknown directive '." + word + "'");
  }
  if (t.kind == Token::Ident && tok(1).is(':'))
    return parseLabel();
  if (accept(';'))
    return true;
  return parseInstruction();
}

bool Parser::parseRegisters() {
  advance();
  if (tok().kind != Token::Dot)
    return fail("expected a register type, got " + describeToken());
  Ty ty = parseTy(tok().text);
  if (ty == Ty::None)
    return fail("expected a register type, got " + describeToken());
  advance();
  do {
    if (tok().kind != Token::Ident)
      return fail("expected a register name, got " + describeToken());
    StringRef name = tok().text;
    advance();
    if (accept('<')) {
      int64_t count;
      if (!integer(count) || !expect('>'))
        return false;
      if (count < 0 || count > MaxRows)
        return fail("expected at most " + Twine(MaxRows) + " registers, got " +
                    Twine(count));
      if (count == 0)
        continue;
      Operand first = newRegister(ty);
      uint32_t step = ty == Ty::Pred ? 1 : unitsOf(first.width());
      Function &f = function();
      (ty == Ty::Pred ? f.preds : f.rows) += step * uint32_t(count - 1);
      scopes.back().families[name] = {first, ty, uint32_t(count), step};
      if (f.rows > MaxRows || f.preds >= NoPred)
        return fail("function '" + f.name + "' has too many registers");
    } else {
      scopes.back().names[name] = {newRegister(ty), ty};
    }
  } while (accept(','));
  return expect(';');
}

bool Parser::lookupRegister(StringRef name, Operand &reg, Ty &ty) {
  StringRef prefix = name.rtrim("0123456789");
  StringRef digits = name.substr(prefix.size());
  uint32_t number = 0;
  bool numbered = !digits.empty() && !digits.getAsInteger(10, number) &&
                  (digits.size() == 1 || digits[0] != '0');
  for (Scope &scope : llvm::reverse(scopes)) {
    auto it = scope.names.find(name);
    if (it != scope.names.end()) {
      std::tie(reg, ty) = it->second;
      return true;
    }
    if (!numbered)
      continue;
    // A prefix may itself end in digits (%r1_2<4>): try all splits.
    for (size_t cut = prefix.size(); cut < name.size(); ++cut) {
      auto family = scope.families.find(name.take_front(cut));
      if (family == scope.families.end())
        continue;
      StringRef rest = name.substr(cut);
      if (rest.getAsInteger(10, number) ||
          (rest.size() > 1 && rest[0] == '0') || number >= family->second.count)
        continue;
      reg = family->second.first;
      reg.ref += number * family->second.step;
      ty = family->second.ty;
      return true;
    }
  }
  return false;
}

bool Parser::parseCallVars() {
  advance();
  uint32_t align = 1;
  Ty ty = Ty::None;
  while (tok().kind == Token::Dot) {
    StringRef word = tok().text;
    advance();
    if (word == "align") {
      int64_t value;
      if (!integer(value))
        return false;
      if (value < 1 || value > 4096 || !isPowerOf2_64(value))
        return fail("expected an alignment that is a power of two, got " +
                    Twine(value));
      align = uint32_t(value);
    } else {
      ty = parseTy(word);
      if (ty == Ty::None || ty == Ty::Pred)
        return fail("expected a type, got '." + word + "'");
    }
  }
  if (ty == Ty::None)
    return fail("expected a type, got " + describeToken());
  do {
    if (tok().kind != Token::Ident)
      return fail("expected a parameter name, got " + describeToken());
    StringRef name = tok().text;
    advance();
    uint64_t size = bytesOf(ty);
    align = std::max(align, uint32_t(size));
    if (accept('[')) {
      int64_t n = 0;
      if (!tok().is(']') && !integer(n))
        return false;
      if (n < 0 || n > 1 << 16)
        return fail("expected at most 65536 elements, got " + Twine(n));
      size *= uint64_t(n);
      if (!expect(']'))
        return false;
    }
    Function &f = function();
    f.callBytes = uint32_t(alignTo(f.callBytes, align));
    scopes.back().callVars[name] = {f.callBytes, uint32_t(size), align};
    f.callBytes += uint32_t(size);
    if (f.callBytes > 1 << 20)
      return fail("expected at most 1 MiB of call parameters");
  } while (accept(','));
  return expect(';');
}

bool Parser::parseLoc() {
  advance();
  int64_t v[3];
  for (int64_t &x : v)
    if (!integer(x))
      return false;
  if (current != NoFunction) {
    mod.locs.push_back({uint32_t(v[0]), uint32_t(v[1]), uint32_t(v[2])});
    currentLoc = uint32_t(mod.locs.size() - 1);
  }
  // , function_name $L__info_string0 [+ 12], inlined_at 1 14 3
  while (accept(',')) {
    if (tok().kind != Token::Ident)
      return fail("expected 'function_name' or 'inlined_at', got " +
                  describeToken());
    bool inlined = tok().text == "inlined_at";
    advance();
    if (inlined) {
      for (int64_t &x : v)
        if (!integer(x))
          return false;
    } else {
      if (tok().kind != Token::Ident)
        return fail("expected a label, got " + describeToken());
      advance();
      int64_t ignored;
      if (accept('+') && !integer(ignored))
        return false;
    }
  }
  return true;
}

bool Parser::parseLabel() {
  StringRef name = tok().text;
  uint32_t line = tok().line;
  advance();
  advance();
  if (tok().kind == Token::Dot && tok().text == "branchtargets") {
    advance();
    uint32_t table = uint32_t(mod.branchTables.size());
    mod.branchTables.emplace_back();
    do {
      if (tok().kind != Token::Ident)
        return fail("expected a label, got " + describeToken());
      scopes.back().fixups.push_back(
          {0, tok().line, tok().text.str(), int32_t(table),
           uint32_t(mod.branchTables[table].size())});
      mod.branchTables[table].push_back(0);
      advance();
    } while (accept(','));
    scopes.back().tables[name] = table;
    return expect(';');
  }
  if (tok().kind == Token::Dot &&
      (tok().text == "callprototype" || tok().text == "calltargets"))
    return skipStatement();
  if (scopes.back().labels.count(name))
    return fail(line, "label '" + name + "' is already defined");
  scopes.back().labels[name] = uint32_t(mod.code.size());
  function().labels.push_back({uint32_t(mod.code.size()), name.str()});
  return true;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

bool Parser::parseNumber(POperand &op) {
  // sign* number (op number)*, where op is one of + - * << | &.
  auto term = [&]() {
    bool negative = false, inverted = false;
    while (tok().is('-') || tok().is('+') || tok().is('~')) {
      if (tok().is('-'))
        negative = !negative;
      else if (tok().is('~'))
        inverted = true;
      advance();
    }
    if (tok().kind != Token::Integer && tok().kind != Token::Float)
      return fail("expected a number, got " + describeToken());
    op.kind = POperand::Imm;
    op.bits = tok().bits;
    op.floatBits = tok().kind == Token::Float
                       ? (tok().floatBits ? tok().floatBits : 1)
                       : 0;
    advance();
    if (negative)
      op.bits = op.floatBits == 32 ? op.bits ^ 0x80000000u
                : op.floatBits     ? op.bits ^ (uint64_t(1) << 63)
                                   : uint64_t(0) - op.bits;
    if (inverted)
      op.bits = ~op.bits;
    return true;
  };
  if (!term())
    return false;
  while (!op.floatBits && (tok().is('+') || tok().is('-') || tok().is('*') ||
                           (tok().is('<') && tok(1).is('<')))) {
    char c = tok().text[0];
    advance();
    if (c == '<')
      advance();
    uint64_t left = op.bits;
    if (!term())
      return false;
    if (op.floatBits)
      return fail("expected an integer expression");
    op.bits = c == '+'       ? left + op.bits
              : c == '-'     ? left - op.bits
              : c == '*'     ? left * op.bits
              : op.bits < 64 ? left << op.bits
                             : 0;
  }
  return true;
}

void Parser::resolveName(POperand &op) {
  StringRef name = op.name;
  if (lookupRegister(name, op.reg, op.ty)) {
    op.kind = POperand::Reg;
    return;
  }
  if (current != NoFunction && function().isEntry)
    for (const Param &p : function().params)
      if (p.name == name) {
        op.kind = POperand::ParamSymbol;
        op.entryParam = true;
        op.offset = p.offset;
        op.paramSize = p.size;
        return;
      }
  for (Scope &scope : llvm::reverse(scopes)) {
    auto call = scope.callVars.find(name);
    if (call != scope.callVars.end()) {
      op.kind = POperand::ParamSymbol;
      op.offset = call->second.offset;
      op.paramSize = call->second.size;
      op.paramAlign = call->second.align;
      return;
    }
    auto variable = scope.variables.find(name);
    if (variable != scope.variables.end()) {
      op.kind = POperand::Symbol;
      op.index = variable->second;
      return;
    }
  }
  auto fn = mod.functionIndex.find(name);
  if (fn != mod.functionIndex.end()) {
    op.kind = POperand::FunctionSymbol;
    op.index = fn->second;
    return;
  }
  if (name == "WARP_SZ") {
    op.kind = POperand::Imm;
    op.bits = 32;
    return;
  }
  op.kind = POperand::Label;
}

bool Parser::parseSimpleOperand(POperand &op) {
  const Token &t = tok();
  if (t.kind != Token::Ident)
    return parseNumber(op);
  op.name = t.text;
  advance();
  if (op.name == "_") {
    op.kind = POperand::Discard;
    return true;
  }
  StringRef component;
  if (tok().kind == Token::Dot && op.name.starts_with("%")) {
    component = tok().text;
    advance();
  }
  if (!component.empty() || op.name.starts_with("%")) {
    op.sreg = parseSReg(op.name, component);
    if (op.sreg != SReg::Unknown) {
      op.kind = POperand::Special;
      return true;
    }
    if (!component.empty())
      return fail("unknown special register '" + op.name + "." + component +
                  "'");
  }
  resolveName(op);
  // sym+4 outside of brackets
  if ((op.kind == POperand::Symbol || op.kind == POperand::ParamSymbol) &&
      (tok().is('+') || tok().is('-'))) {
    POperand offset;
    if (!parseNumber(offset))
      return false;
    op.offset += int64_t(offset.bits);
  }
  return true;
}

bool Parser::parseOperand(POperand &op, bool inAddress) {
  if (accept('!')) {
    if (!parseSimpleOperand(op))
      return false;
    op.negated = true;
    if (op.kind != POperand::Reg || !op.reg.isPred())
      return fail("expected a predicate after '!'");
    return true;
  }
  if (accept('{')) {
    op.kind = POperand::Vector;
    do {
      POperand element;
      if (!parseSimpleOperand(element))
        return false;
      op.elements.push_back(std::move(element));
      if (op.elements.size() > 1024)
        return fail("expected at most 1024 elements");
    } while (accept(','));
    return expect('}');
  }
  if (!inAddress && accept('[')) {
    op.kind = POperand::Address;
    POperand base;
    if (!parseSimpleOperand(base))
      return false;
    op.name = base.name;
    if (tok().is('+') || tok().is('-')) {
      POperand offset;
      if (!parseNumber(offset))
        return false;
      op.offset = int64_t(offset.bits);
    }
    op.elements.push_back(std::move(base));
    while (accept(',')) {
      POperand coordinate;
      if (!parseOperand(coordinate, true))
        return false;
      op.elements.push_back(std::move(coordinate));
      if (op.elements.size() > 64)
        return fail("expected at most 64 operands in brackets");
    }
    return expect(']');
  }
  if (!parseSimpleOperand(op))
    return false;
  if (accept('|')) {
    POperand pair;
    pair.kind = POperand::Pair;
    pair.elements.push_back(std::move(op));
    POperand second;
    if (!parseSimpleOperand(second))
      return false;
    pair.elements.push_back(std::move(second));
    op = std::move(pair);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

bool Parser::parseCallList(std::vector<CallInfo::Arg> &list, bool isReturn,
                           Inst &inst) {
  if (!expect('('))
    return false;
  if (accept(')'))
    return true;
  do {
    POperand op;
    if (!parseSimpleOperand(op))
      return false;
    CallInfo::Arg arg;
    if (op.kind == POperand::ParamSymbol && !op.entryParam) {
      arg.offset = uint32_t(op.offset);
      arg.size = op.paramSize;
    } else if (op.kind == POperand::Reg) {
      arg.isRegister = true;
      arg.reg = op.reg;
      arg.ty = op.ty;
    } else if (op.kind == POperand::Discard && isReturn) {
      arg.size = 0;
    } else if (!isReturn && op.kind == POperand::Imm) {
      arg.isRegister = true;
      arg.reg = constant(Operand::W64, op.bits, 0);
      arg.ty = Ty::B64;
    } else if (!isReturn && (op.kind == POperand::Symbol ||
                             op.kind == POperand::FunctionSymbol)) {
      arg.isRegister = true;
      arg.reg = symbolConstant(op, Operand::W64);
      arg.ty = Ty::B64;
    } else {
      return fail("expected a call argument, got '" + op.name + "'");
    }
    list.push_back(arg);
  } while (accept(','));
  return expect(')');
}

bool Parser::parseCall(Inst &inst) {
  CallInfo info;
  if (tok().is('(')) {
    if (!parseCallList(info.returns, true, inst) || !expect(','))
      return false;
  }
  if (tok().kind != Token::Ident)
    return fail("expected a function, got " + describeToken());
  POperand callee;
  if (!parseSimpleOperand(callee))
    return false;
  SmallVector<Operand, 1> operands;
  if (callee.kind == POperand::FunctionSymbol) {
    info.callee = callee.index;
    const Function &f = mod.functions[callee.index];
    if (!f.isDefined)
      info.external = f.name;
    function().callees.push_back(callee.index);
  } else if (callee.kind == POperand::Reg &&
             callee.reg.width() == Operand::W64) {
    info.callee = NoFunction;
    operands.push_back(callee.reg);
    // Any function whose address is taken may be meant.
    for (uint32_t i = 0; i < mod.functions.size(); ++i)
      if (!mod.functions[i].isEntry && i != current)
        function().callees.push_back(i);
  } else {
    return fail("expected a function, got '" + callee.name + "'");
  }
  if (accept(',')) {
    if (tok().is('(')) {
      if (!parseCallList(info.args, false, inst))
        return false;
      if (accept(',')) // prototype or target list
        advance();
    } else {
      advance();
    }
  }
  if (!expect(';'))
    return false;
  inst.flow = Flow::Call;
  inst.cls = InstClass::Control;
  inst.numDst = 0;
  inst.aux = uint32_t(mod.calls.size());
  mod.calls.push_back(std::move(info));
  emit(inst, operands);
  return true;
}

bool Parser::parseInstruction() {
  Inst inst;
  inst.line = tok().line;
  inst.loc = currentLoc;
  if (accept('@')) {
    inst.guardNegated = accept('!');
    if (tok().kind != Token::Ident)
      return fail("expected a predicate, got " + describeToken());
    Operand reg;
    Ty ty;
    if (!lookupRegister(tok().text, reg, ty) || !reg.isPred())
      return fail("expected a predicate, got " + describeToken());
    inst.guard = uint16_t(reg.row());
    advance();
  }
  if (tok().kind != Token::Ident)
    return fail("expected an instruction, got " + describeToken());
  SmallVector<StringRef, 12> words;
  words.push_back(tok().text);
  uint32_t line = tok().line;
  currentLine = line;
  advance();
  while (tok().kind == Token::Dot) {
    words.push_back(tok().text);
    advance();
  }
  StringRef opcode = words[0];
  if (opcode == "call")
    return parseCall(inst);

  std::vector<POperand> operands;
  if (!tok().is(';')) {
    do {
      POperand op;
      if (!parseOperand(op))
        return false;
      operands.push_back(std::move(op));
      if (operands.size() > 64)
        return fail("expected at most 64 operands");
    } while (accept(','));
  }
  if (!expect(';'))
    return false;

  auto labelOperand = [&](const POperand &op) {
    return op.kind == POperand::Label || op.kind == POperand::Symbol ||
           (op.kind == POperand::FunctionSymbol);
  };
  if (opcode == "bra" || opcode == "brx") {
    bool indexed = opcode == "brx";
    size_t n = indexed ? 2 : 1;
    if (operands.size() != n || !labelOperand(operands.back()) ||
        (indexed && operands[0].kind != POperand::Reg))
      return fail(line, "expected a label as target of '" + opcode + "'");
    inst.cls = InstClass::Control;
    inst.numDst = 0;
    inst.flow = indexed ? Flow::BranchIndexed : Flow::Branch;
    inst.flags = llvm::is_contained(words, "uni");
    uint32_t index = uint32_t(mod.code.size());
    if (indexed) {
      if (operands[0].reg.width() != Operand::W32)
        return fail(line, "expected a 32-bit index register of 'brx.idx'");
      scopes.back().tableUses.push_back(
          {index, line, operands.back().name.str()});
      emit(inst, operands[0].reg);
    } else {
      scopes.back().fixups.push_back(
          {index, line, operands.back().name.str(), -1, 0});
      emit(inst, {});
    }
    return true;
  }
  if (opcode == "ret" || opcode == "exit") {
    if (!operands.empty())
      return fail(line, "expected no operands of '" + opcode + "'");
    inst.cls = InstClass::Control;
    inst.numDst = 0;
    inst.flow =
        opcode == "exit" || function().isEntry ? Flow::Exit : Flow::Return;
    emit(inst, {});
    return true;
  }

  DecodeFn decode = findDecoder(opcode);
  size_t before = mod.code.size();
  Decoder d(*this, inst, words, operands);
  if (decode)
    decode(d);
  else
    d.unsupported("opcode '" + opcode + "'");
  if (d.outcome == Decoder::Bad)
    return fail(line, d.why);
  if (d.outcome == Decoder::Unsupported) {
    mod.code.resize(before); // special registers read for it
    Inst missing;
    missing.line = inst.line;
    missing.loc = inst.loc;
    missing.guard = inst.guard;
    missing.guardNegated = inst.guardNegated;
    missing.fn = execUnsupported;
    missing.flow = Flow::Sync;
    missing.numDst = 0;
    missing.aux = addUnsupported(d.why);
    emit(missing, {});
    return true;
  }
  emit(inst, d.out);
  return true;
}

} // namespace emulator
} // namespace humming
