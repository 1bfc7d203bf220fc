//===- Parser.cpp - PTX modules: directives, variables, layout -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parser.h"
#include "Humming/Emulator/Emulator.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstring>
#include <map>

using namespace llvm;

namespace humming {
namespace emulator {

/// Sizes past these are refused so that hostile text cannot exhaust memory.
constexpr uint64_t MaxVariableBytes = uint64_t(1) << 28;

bool Parser::fail(uint32_t line, const Twine &message) {
  if (!failed) {
    failed = true;
    consumeError(std::move(error));
    error = syntaxError(line, message);
  }
  return false;
}

std::string Parser::describeToken() const {
  const Token &t = tok();
  if (t.kind == Token::End)
    return "the end of the text";
  return ("'" + Twine(t.kind == Token::Dot ? "." : "") + t.text + "'").str();
}

bool Parser::expect(char c) {
  if (accept(c))
    return true;
  return fail("expected '" + Twine(c) + "', got " + describeToken());
}

bool Parser::integer(int64_t &value) {
  bool negative = accept('-');
  if (tok().kind != Token::Integer)
    return fail("expected an integer, got " + describeToken());
  value = negative ? -uint64_t(tok().bits) : tok().bits;
  advance();
  return true;
}

bool Parser::skipStatement() {
  while (tok().kind != Token::End)
    if (accept(';'))
      return true;
    else
      advance();
  return fail("expected ';' before the end of the text");
}

bool Parser::skipBraces() {
  if (!expect('{'))
    return false;
  unsigned depth = 1;
  while (depth) {
    if (tok().kind == Token::End)
      return fail("expected '}' before the end of the text");
    if (tok().is('{'))
      ++depth;
    else if (tok().is('}'))
      --depth;
    advance();
  }
  return true;
}

Expected<std::unique_ptr<Module>> Parser::parse(StringRef text) {
  auto tokens = tokenize(text);
  if (!tokens)
    return tokens.takeError();
  auto module = std::make_unique<Module>();
  SmallVector<StringRef, 0> lines;
  text.split(lines, '\n');
  module->lines.reserve(lines.size());
  for (StringRef line : lines)
    module->lines.push_back(line.trim().str());
  Parser parser(*module, std::move(*tokens));
  parser.scopes.emplace_back();
  bool ok = parser.parseModule();
  if (ok) {
    parser.layoutVariables();
    if (!parser.failed)
      parser.layoutFrames();
    if (!parser.failed)
      parser.patchSymbols();
    ok = !parser.failed;
  }
  if (!ok) {
    Error e = std::move(parser.error);
    parser.error = Error::success();
    return std::move(e);
  }
  for (Function &f : module->functions)
    if (f.isDefined)
      analyzeControlFlow(*module, f);
  return std::move(module);
}

bool Parser::parseModule() {
  if (!tok().isDot("version"))
    return fail("expected '.version' at the start, got " + describeToken());
  while (tok().kind != Token::End) {
    if (tok().kind != Token::Dot)
      return fail("expected a directive, got " + describeToken());
    StringRef word = tok().text;
    if (word == "version") {
      if (!parseVersion())
        return false;
    } else if (word == "target") {
      if (!parseTarget())
        return false;
    } else if (word == "address_size") {
      advance();
      int64_t bits;
      if (!integer(bits))
        return false;
      if (bits != 64)
        return fail("expected .address_size 64, got " + Twine(bits));
    } else if (word == "file") {
      if (!parseFile())
        return false;
    } else if (word == "loc") {
      if (!parseLoc())
        return false;
    } else if (word == "section") {
      advance();
      while (tok().kind == Token::Dot || tok().kind == Token::Ident)
        advance();
      if (!skipBraces())
        return false;
    } else if (word == "pragma" || word == "alias") {
      if (!skipStatement())
        return false;
    } else {
      bool isExtern = false;
      while (tok().kind == Token::Dot &&
             (tok().text == "extern" || tok().text == "visible" ||
              tok().text == "weak" || tok().text == "common")) {
        isExtern |= tok().text == "extern";
        advance();
      }
      if (acceptDot("entry")) {
        if (!parseFunction(true))
          return false;
      } else if (acceptDot("func")) {
        if (!parseFunction(false))
          return false;
      } else if (acceptDot("global")) {
        if (!parseVariables(Space::Global, isExtern))
          return false;
      } else if (acceptDot("const")) {
        if (!parseVariables(Space::Const, isExtern))
          return false;
      } else if (acceptDot("shared")) {
        if (!parseVariables(Space::Shared, isExtern))
          return false;
      } else {
        return fail("expected a directive, got " + describeToken());
      }
    }
  }
  return true;
}

bool Parser::parseVersion() {
  advance();
  StringRef text = tok().text;
  auto [major, minor] = text.split('.');
  if (tok().kind != Token::Float || major.getAsInteger(10, mod.versionMajor) ||
      minor.getAsInteger(10, mod.versionMinor))
    return fail("expected a version like 8.0, got " + describeToken());
  advance();
  if (mod.versionMajor < 6 || mod.versionMajor > 9)
    return fail("expected PTX ISA 6.0 to 9.x, got " + Twine(mod.versionMajor) +
                "." + Twine(mod.versionMinor));
  return true;
}

bool Parser::parseTarget() {
  advance();
  if (tok().kind != Token::Ident)
    return fail("expected a target like sm_80, got " + describeToken());
  mod.target = tok().text.str();
  StringRef digits = tok().text;
  if (digits.consume_front("sm_"))
    digits.take_while([](char c) { return c >= '0' && c <= '9'; })
        .getAsInteger(10, mod.smVersion);
  advance();
  while (accept(',')) {
    if (tok().kind != Token::Ident)
      return fail("expected a target option, got " + describeToken());
    advance();
  }
  return true;
}

bool Parser::parseFile() {
  advance();
  int64_t index;
  if (!integer(index))
    return false;
  if (tok().kind != Token::String)
    return fail("expected a file name in quotes, got " + describeToken());
  if (index >= 0 && index < 1 << 20)
    mod.files[uint32_t(index)] = tok().text.str();
  advance();
  while (accept(',')) {
    int64_t ignored;
    if (!integer(ignored))
      return false;
  }
  return true;
}

bool Parser::parseTriple(uint32_t (&values)[3]) {
  values[0] = values[1] = values[2] = 1;
  for (unsigned i = 0; i < 3; ++i) {
    int64_t v;
    if (!integer(v))
      return false;
    if (v < 1 || v > INT32_MAX)
      return fail("expected a positive number, got " + Twine(v));
    values[i] = uint32_t(v);
    if (!accept(','))
      break;
  }
  return true;
}

bool Parser::parseParams(std::vector<Param> &list, bool isEntry, Function &f) {
  if (!expect('('))
    return false;
  if (accept(')'))
    return true;
  do {
    if (!parseParam(list, isEntry, f))
      return false;
  } while (accept(','));
  return expect(')');
}

bool Parser::parseParam(std::vector<Param> &list, bool isEntry, Function &f) {
  Param p;
  if (acceptDot("reg"))
    p.isRegister = true;
  else if (!acceptDot("param"))
    return fail("expected '.param', got " + describeToken());
  if (p.isRegister && isEntry)
    return fail("expected '.param' parameters of an entry, got '.reg'");
  bool typed = false;
  while (tok().kind == Token::Dot) {
    StringRef word = tok().text;
    advance();
    if (word == "align") {
      int64_t align;
      if (!integer(align))
        return false;
      if (align < 1 || align > 4096 || !isPowerOf2_64(align))
        return fail("expected an alignment that is a power of two, got " +
                    Twine(align));
      if (!typed || p.size == 0)
        p.align = uint32_t(align);
    } else if (word == "ptr" || word == "global" || word == "shared" ||
               word == "const" || word == "local" || word == "texref" ||
               word == "samplerref" || word == "surfref") {
      // What a pointer points to changes nothing here, but its .align does not
      // align the parameter itself.
      if (word == "ptr" && tok().kind == Token::Dot)
        while (tok().kind == Token::Dot) {
          bool isAlign = tok().text == "align";
          advance();
          int64_t ignored;
          if (isAlign && !integer(ignored))
            return false;
        }
    } else {
      p.ty = parseTy(word);
      if (p.ty == Ty::None || (p.ty == Ty::Pred && !p.isRegister))
        return fail("expected a type, got '." + word + "'");
      typed = true;
    }
  }
  if (!typed)
    return fail("expected a type, got " + describeToken());
  if (tok().kind == Token::Ident) {
    p.name = tok().text.str();
    advance();
  } else if (!tok().is('_')) {
    return fail("expected a parameter name, got " + describeToken());
  }
  uint64_t count = 1;
  if (accept('[')) {
    int64_t n = 0;
    if (!tok().is(']') && !integer(n))
      return false;
    if (n < 0 || n > 1 << 16)
      return fail("expected at most 65536 elements, got " + Twine(n));
    count = uint64_t(n);
    if (!expect(']'))
      return false;
  }
  if (p.isRegister) {
    p.reg = newRegister(p.ty);
    if (!p.name.empty())
      scopes.back().names[p.name] = {p.reg, p.ty};
    list.push_back(p);
    return true;
  }
  p.size = uint32_t(bytesOf(p.ty) * count);
  p.align = std::max<uint32_t>(p.align, bytesOf(p.ty));
  uint32_t &area = isEntry ? f.paramBytes : f.callBytes;
  area = uint32_t(alignTo(area, p.align));
  p.offset = area;
  area += p.size;
  if (area > 1 << 20)
    return fail("expected at most 1 MiB of parameters");
  if (!isEntry && !p.name.empty())
    scopes.back().callVars[p.name] = {p.offset, p.size, p.align};
  list.push_back(p);
  return true;
}

bool Parser::parseFunction(bool isEntry) {
  Function f;
  f.isEntry = isEntry;
  f.line = tok().line;
  // Registers of the parameter list belong to the function, so it has to exist.
  current = uint32_t(mod.functions.size());
  mod.functions.push_back(std::move(f));
  scopes.emplace_back();
  std::vector<Param> params, returns;
  if (!isEntry && tok().is('(') &&
      !parseParams(returns, false, mod.functions[current]))
    return false;
  if (tok().kind != Token::Ident)
    return fail("expected a function name, got " + describeToken());
  std::string name = tok().text.str();
  advance();
  if (tok().is('(') && !parseParams(params, isEntry, mod.functions[current]))
    return false;
  {
    Function &fn = mod.functions[current];
    fn.name = name;
    fn.params = std::move(params);
    fn.returns = std::move(returns);
  }
  while (tok().kind == Token::Dot) {
    Function &fn = mod.functions[current];
    StringRef word = tok().text;
    advance();
    int64_t value;
    if (word == "maxntid") {
      if (!parseTriple(fn.maxntid))
        return false;
    } else if (word == "reqntid") {
      if (!parseTriple(fn.reqntid))
        return false;
    } else if (word == "reqnctapercluster") {
      if (!parseTriple(fn.reqnctapercluster))
        return false;
      fn.explicitCluster = true;
    } else if (word == "minnctapersm" || word == "maxnreg" ||
               word == "maxnctapersm" || word == "maxclusterrank") {
      if (!integer(value))
        return false;
    } else if (word == "explicitcluster") {
      fn.explicitCluster = true;
    } else if (word == "noreturn" || word == "blocksareclusters" ||
               word == "unified") {
    } else if (word == "pragma") {
      if (!skipStatement())
        return false;
    } else if (word == "attribute" || word == "abi_preserve" ||
               word == "abi_preserve_control") {
      while (tok().kind != Token::End && !tok().is('{') && !tok().is(';') &&
             tok().kind != Token::Dot)
        advance();
    } else {
      return fail("unknown function directive '." + word + "'");
    }
  }
  auto known = mod.functionIndex.find(name);
  if (accept(';') || tok().kind != Token::Punct || !tok().is('{')) {
    // A declaration. Keep the first; a definition replaces it.
    if (known == mod.functionIndex.end())
      mod.functionIndex[name] = current;
    scopes.pop_back();
    current = NoFunction;
    return true;
  }
  if (known != mod.functionIndex.end() &&
      mod.functions[known->second].isDefined)
    return fail("function '" + name + "' is already defined");
  mod.functions[current].isDefined = true;
  if (known != mod.functionIndex.end()) {
    // Calls already refer to the declaration's index: swap the two.
    uint32_t first = known->second;
    std::swap(mod.functions[first], mod.functions[current]);
    current = first;
  } else {
    mod.functionIndex[name] = current;
  }
  if (!parseBody())
    return false;
  scopes.pop_back();
  current = NoFunction;
  return true;
}

bool Parser::parseVariables(Space space, bool isExtern) {
  uint32_t align = 0;
  Ty ty = Ty::None;
  unsigned vec = 1;
  while (tok().kind == Token::Dot) {
    StringRef word = tok().text;
    advance();
    if (word == "align") {
      int64_t value;
      if (!integer(value))
        return false;
      if (value < 1 || value > 65536 || !isPowerOf2_64(value))
        return fail("expected an alignment that is a power of two, got " +
                    Twine(value));
      align = uint32_t(value);
    } else if (word == "v2") {
      vec = 2;
    } else if (word == "v4") {
      vec = 4;
    } else if (word == "attribute") {
      if (!accept('('))
        return fail("expected '(' after '.attribute'");
      while (tok().kind != Token::End && !accept(')'))
        advance();
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
      return fail("expected a variable name, got " + describeToken());
    Variable v;
    v.name = tok().text.str();
    v.space = space;
    v.isExtern = isExtern && space == Space::Shared;
    uint32_t line = tok().line;
    advance();
    uint64_t size = uint64_t(bytesOf(ty)) * vec;
    v.align = std::max<uint32_t>(align, uint32_t(size));
    bool openEnded = false;
    while (accept('[')) {
      int64_t n = 0;
      if (!tok().is(']')) {
        if (!integer(n))
          return false;
      } else {
        openEnded = true;
      }
      if (!expect(']'))
        return false;
      if (n < 0 || uint64_t(n) > MaxVariableBytes)
        return fail("expected an array size up to " + Twine(MaxVariableBytes) +
                    ", got " + Twine(n));
      size *= openEnded ? 1 : uint64_t(n);
      if (size > MaxVariableBytes)
        return fail("variable '" + v.name + "' is larger than " +
                    Twine(MaxVariableBytes) + " bytes");
    }
    if (openEnded) {
      size = 0;
      if (space == Space::Shared)
        v.isExtern = true;
    }
    v.size = size;
    if (accept('=')) {
      uint64_t offset = 0;
      v.init.resize(openEnded ? 0 : v.size);
      if (space != Space::Global && space != Space::Const)
        return fail("expected no initialiser of a shared or local variable");
      if (!parseInitializer(v, ty, offset, 0))
        return false;
      if (openEnded)
        v.size = v.init.size();
    }
    uint32_t index = uint32_t(mod.variables.size());
    Scope &scope = scopes.back();
    if (scope.variables.count(v.name)) {
      if (!isExtern)
        return fail(line, "variable '" + v.name + "' is already declared");
      continue;
    }
    scope.variables[v.name] = index;
    if (space == Space::Shared && scopes.size() > 1 &&
        mod.functions[current].isEntry)
      v.entry = int32_t(current);
    if (space == Space::Local)
      localOwner[index] = current;
    else if (space == Space::Global || space == Space::Const)
      mod.variableIndex[v.name] = index;
    mod.variables.push_back(std::move(v));
  } while (accept(','));
  return expect(';');
}

bool Parser::parseInitializer(Variable &v, Ty ty, uint64_t &offset,
                              unsigned depth) {
  if (depth > 8)
    return fail("initialiser is nested too deeply");
  if (!accept('{'))
    return parseInitializerValue(v, ty, offset);
  if (accept('}'))
    return true;
  do {
    if (!parseInitializer(v, ty, offset, depth + 1))
      return false;
  } while (accept(','));
  return expect('}');
}

bool Parser::parseInitializerValue(Variable &v, Ty ty, uint64_t &offset) {
  unsigned bytes = bytesOf(ty);
  uint64_t bits = 0;
  if (tok().kind == Token::Ident) {
    Variable::Reloc reloc;
    reloc.offset = offset;
    reloc.bytes = uint8_t(bytes);
    reloc.generic = false;
    reloc.addend = 0;
    if (tok().text == "generic" && tok(1).is('(')) {
      advance();
      advance();
      reloc.generic = true;
    } else if (tok(1).is('(')) {
      return fail("unsupported initialiser operator '" + tok().text + "'");
    }
    if (tok().kind != Token::Ident)
      return fail("expected a symbol, got " + describeToken());
    reloc.symbol = tok().text.str();
    advance();
    if (reloc.generic && !expect(')'))
      return false;
    if (accept('+') || tok().is('-'))
      if (!integer(reloc.addend))
        return false;
    v.relocs.push_back(reloc);
  } else {
    POperand op;
    if (!parseNumber(op))
      return false;
    bits = op.bits;
    if (op.floatBits == 1 && ty == Ty::F32)
      bits = llvm::bit_cast<uint32_t>(float(llvm::bit_cast<double>(bits)));
    else if (op.floatBits == 0 && ty == Ty::F32)
      bits = llvm::bit_cast<uint32_t>(float(int64_t(bits)));
    else if (op.floatBits == 0 && ty == Ty::F64)
      bits = llvm::bit_cast<uint64_t>(double(int64_t(bits)));
  }
  if (v.init.size() < offset + bytes) {
    if (v.size)
      return fail("too many initialisers of '" + v.name + "'");
    if (offset + bytes > MaxVariableBytes)
      return fail("initialiser is too long");
    v.init.resize(offset + bytes);
  }
  std::memcpy(v.init.data() + offset, &bits, std::min(bytes, 8u));
  offset += bytes;
  return true;
}

void Parser::layoutVariables() {
  uint64_t globals = 0, shared = 0;
  // The shared variables of one kernel's body lie where those of another do,
  // behind those of the module.
  std::map<int32_t, uint64_t> ends;
  auto place = [&](Variable &v, uint64_t &end) {
    end = alignTo(end, v.align);
    v.address = SharedBase + end;
    end += v.size;
    mod.sharedAlign = std::max(mod.sharedAlign, v.align);
  };
  for (Variable &v : mod.variables) {
    if (v.space == Space::Global || v.space == Space::Const) {
      // 256 bytes apart, so that running past the end is seen.
      globals = alignTo(globals, std::max<uint64_t>(256, v.align));
      v.address = GlobalsBase + globals;
      globals += v.size + 16;
    } else if (v.space == Space::Shared && !v.isExtern && v.entry < 0) {
      place(v, shared);
    }
    if (globals > 4 * MaxVariableBytes || shared > (1 << 24)) {
      fail(1, "the module's variables are too large");
      return;
    }
  }
  uint64_t common = shared;
  for (Variable &v : mod.variables)
    if (v.space == Space::Shared && !v.isExtern && v.entry >= 0) {
      uint64_t &end = ends.try_emplace(v.entry, common).first->second;
      place(v, end);
      shared = std::max(shared, end);
      if (shared > (1 << 24)) {
        fail(1, "the module's variables are too large");
        return;
      }
    }
  for (Variable &v : mod.variables)
    if (v.space == Space::Shared && v.isExtern)
      mod.sharedAlign = std::max(mod.sharedAlign, v.align);
  mod.staticShared = uint32_t(shared);
  // Dynamic shared memory starts at one address for all extern arrays.
  uint32_t dynamicAlign = 16;
  for (Variable &v : mod.variables)
    if (v.space == Space::Shared && v.isExtern)
      dynamicAlign = std::max(dynamicAlign, v.align);
  mod.staticShared = uint32_t(alignTo(shared, dynamicAlign));
  for (Variable &v : mod.variables)
    if (v.space == Space::Shared && v.isExtern)
      v.address = alignTo(SharedBase + shared, dynamicAlign);
  mod.staticShared =
      uint32_t(alignTo(SharedBase + shared, dynamicAlign)) - SharedBase;
  bool anyExtern = llvm::any_of(mod.variables, [](const Variable &v) {
    return v.space == Space::Shared && v.isExtern;
  });
  if (!anyExtern)
    mod.staticShared = uint32_t(shared);

  mod.globalsBytes = globals;
  mod.globalsImage.assign(globals, 0);
  for (Variable &v : mod.variables) {
    if (v.space != Space::Global && v.space != Space::Const)
      continue;
    uint8_t *bytes = mod.globalsImage.data() + (v.address - GlobalsBase);
    std::copy_n(v.init.begin(), std::min<size_t>(v.init.size(), v.size), bytes);
    for (const Variable::Reloc &r : v.relocs) {
      uint64_t value = 0;
      auto variable = scopes.front().variables.find(r.symbol);
      auto fn = mod.functionIndex.find(r.symbol);
      if (variable != scopes.front().variables.end()) {
        const Variable &target = mod.variables[variable->second];
        value = target.address +
                (r.generic && target.space == Space::Shared ? SharedWindow : 0);
      } else if (fn != mod.functionIndex.end()) {
        value = FunctionBase + 16 * uint64_t(fn->second);
      } else {
        fail(1, "initialiser of '" + v.name + "' names the unknown symbol '" +
                    r.symbol + "'");
        return;
      }
      value += r.addend;
      if (r.offset + r.bytes <= v.size)
        std::memcpy(bytes + r.offset, &value, std::min<unsigned>(r.bytes, 8));
    }
  }
}

void Parser::layoutFrames() {
  // The frame of a function starts after the frames of every call path to it,
  // so a frame needs no stack pointer at run time. Longest paths by repeated
  // relaxation; a function that keeps growing is on a cycle.
  std::vector<Function> &fs = mod.functions;
  for (auto [index, f] : llvm::enumerate(fs)) {
    uint64_t local = 0;
    for (auto [variable, owner] : localOwner) {
      (void)variable;
      (void)owner;
    }
    for (uint32_t i = 0; i < mod.variables.size(); ++i) {
      auto it = localOwner.find(i);
      if (it == localOwner.end() || it->second != index)
        continue;
      Variable &v = mod.variables[i];
      local = alignTo(local, std::max<uint32_t>(v.align, 1));
      v.address = local;
      local += v.size;
      if (local > (1 << 20)) {
        fail(f.line, "function '" + f.name +
                         "' has more than 1 MiB of local variables");
        return;
      }
    }
    f.localBytes = uint32_t(alignTo(local, 16));
    f.callBytes = uint32_t(alignTo(f.callBytes, 16));
  }
  bool changed = true;
  for (size_t round = 0; changed && round <= fs.size() + 1; ++round) {
    changed = false;
    for (Function &f : fs)
      for (uint32_t calleeIndex : f.callees) {
        Function &c = fs[calleeIndex];
        auto raise = [&](uint32_t &base, uint32_t value) {
          if (base < value) {
            base = value;
            changed = true;
          }
        };
        if (round > fs.size()) {
          f.recursive = true;
          continue;
        }
        // The local frame of device functions is aligned like any variable.
        raise(c.rowBase, f.rowBase + f.rows);
        raise(c.predBase, f.predBase + f.preds);
        raise(c.localBase, uint32_t(alignTo(f.localBase + f.localBytes, 16)));
        raise(c.callBase, f.callBase + f.callBytes);
      }
    if (round > fs.size())
      break;
  }
  // What an entry needs is the furthest end over all functions it can reach.
  for (Function &entry : fs) {
    if (!entry.isEntry)
      continue;
    std::vector<bool> seen(fs.size(), false);
    std::vector<Function *> work{&entry};
    while (!work.empty()) {
      Function *f = work.back();
      work.pop_back();
      entry.rowsTotal = std::max(entry.rowsTotal, f->rowBase + f->rows);
      entry.predsTotal = std::max(entry.predsTotal, f->predBase + f->preds);
      entry.localTotal =
          std::max(entry.localTotal, f->localBase + f->localBytes);
      entry.callTotal = std::max(entry.callTotal, f->callBase + f->callBytes);
      entry.usesWgmma |= f->usesWgmma;
      entry.usesGlobalSync |= f->usesGlobalSync;
      entry.recursive |= f->recursive;
      for (uint32_t c : f->callees)
        if (!seen[c]) {
          seen[c] = true;
          work.push_back(&fs[c]);
        }
    }
  }
}

void Parser::patchSymbols() {
  for (const SymbolUse &use : symbolUses) {
    uint64_t value = 0;
    switch (use.kind) {
    case SymbolUse::Var: {
      const Variable &v = mod.variables[use.index];
      value = v.address;
      if (v.space == Space::Local)
        value += mod.functions[localOwner[use.index]].localBase;
      break;
    }
    case SymbolUse::CallVar:
      value = mod.functions[use.index].callBase;
      break;
    case SymbolUse::Func:
      value = FunctionBase + 16 * uint64_t(use.index);
      break;
    }
    value += use.offset;
    uint8_t *row = mod.constants.data() + size_t(use.row) * 128;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (use.width == Operand::W32) {
        uint32_t v32 = uint32_t(value);
        std::memcpy(row + 4 * lane, &v32, 4);
      } else {
        std::memcpy(row + 8 * lane, &value, 8);
      }
    }
  }
}

} // namespace emulator
} // namespace humming
