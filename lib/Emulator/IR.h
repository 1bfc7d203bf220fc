//===- IR.h - Decoded PTX -------------------------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module is decoded once, into one array of instructions for all functions.
// Execution then never looks at text: an operand is a row number, a branch a
// target index, an opcode with its types a function pointer.
//
// Registers live in rows of 32 lanes. A row unit is 128 bytes (32 x 32 bits):
// registers of up to 32 bits take one unit, 64-bit registers two (32 x 64
// bits), 128-bit registers four (two 64-bit rows, low half first). Immediates
// and symbol addresses are rows too, already broadcast, in a constant bank
// shared by all warps: `add.s32 %r3, %r1, 5` is add(row 3, row 1, constant row
// 0). Predicates are one 32-bit lane mask each, in a bank of their own.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_IR_H
#define HUMMING_LIB_EMULATOR_IR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace humming {
namespace emulator {

/// Types as written after an opcode or a declaration. Narrow formats that only
/// occur in cvt and mma are parsed where they occur.
enum class Ty : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  F32,
  F64,
  U16x2,
  S16x2,
  F32x2,
};
/// Ty::None when \p text is no type.
Ty parseTy(llvm::StringRef text);
unsigned bitsOf(Ty ty);
inline unsigned bytesOf(Ty ty) { return bitsOf(ty) / 8; }
inline bool isSignedTy(Ty ty) {
  return ty == Ty::S8 || ty == Ty::S16 || ty == Ty::S32 || ty == Ty::S64;
}
inline bool isFloatTy(Ty ty) {
  return ty == Ty::F16 || ty == Ty::BF16 || ty == Ty::F32 || ty == Ty::F64 ||
         ty == Ty::F16x2 || ty == Ty::BF16x2;
}

enum class Space : uint8_t {
  Generic,
  Global,
  Shared, ///< shared::cta and shared::cluster
  Local,
  Const,
  Param,     ///< entry parameters
  CallParam, ///< .param of device functions and of call sequences
};

/// Counter classes, in report order.
enum class InstClass : uint8_t {
  Integer,
  Logic,
  Move,
  Float,
  Half,
  Double,
  Convert,
  Special, ///< ex2, rsqrt, sin, ...
  Predicate,
  Control,
  GlobalLoad,
  GlobalStore,
  SharedLoad,
  SharedStore,
  LocalAccess,
  ParamAccess,
  Atomic,
  AsyncCopy,
  Bulk,
  Matrix, ///< ldmatrix, stmatrix, movmatrix
  Mma,
  Wgmma,
  Warp, ///< shfl, vote, match, redux, elect, activemask
  Barrier,
  Mbarrier,
  Fence,
  Other,
  Count,
};
llvm::StringRef nameOf(InstClass cls);

/// Row reference: bits 31..30 the bank, 29..28 the width, the rest the row unit
/// (or predicate number).
struct Operand {
  enum Bank : uint32_t { Register = 0, Constant = 1 };
  enum Width : uint32_t { W32 = 0, W64 = 1, W128 = 2, Pred = 3 };

  uint32_t ref = 0;
  int32_t offset = 0; ///< address operands: the immediate displacement

  static Operand make(Bank bank, Width width, uint32_t row) {
    Operand o;
    o.ref = uint32_t(bank) << 30 | uint32_t(width) << 28 | row;
    return o;
  }
  Bank bank() const { return Bank(ref >> 30); }
  Width width() const { return Width(ref >> 28 & 3); }
  uint32_t row() const { return ref & 0x0FFFFFFF; }
  bool isPred() const { return width() == Pred; }
};

constexpr uint32_t NoPred = 0xFFFF;

class Warp;
struct Inst;
/// Executes an instruction for the lanes in \p mask.
using Handler = void (*)(Warp &warp, const Inst &inst, uint32_t mask);

/// What the interpreter loop itself has to do; everything else is a handler.
enum class Flow : uint8_t {
  None,
  Branch,
  BranchIndexed,
  Call,
  Return,
  Exit,
  Trap,
  Sync, ///< the handler may block, and the loop may preempt afterwards
};

struct Inst {
  Handler fn = nullptr;
  uint32_t opBegin = 0; ///< first operand in Module::operands
  uint16_t opCount = 0;
  uint16_t guard = NoPred; ///< predicate register, NoPred: none
  bool guardNegated = false;
  Flow flow = Flow::None;
  InstClass cls = InstClass::Other;
  Space space = Space::Generic;
  Ty ty = Ty::None;        ///< main (destination) type
  Ty ty2 = Ty::None;       ///< source type of cvt, set, mad.wide...
  uint8_t vec = 1;         ///< vector width of ld/st
  uint8_t numDst = 1;      ///< leading operands that are written
  uint32_t flags = 0;      ///< meaning is the handler's
  uint32_t target = 0;     ///< branch target, callee, or table index
  uint32_t aux = 0;        ///< index of extra data, the handler's
  uint32_t line = 0;       ///< line in the PTX text, from 1
  uint32_t loc = 0;        ///< index in Module::locs, 0: none
  uint32_t reconverge = 0; ///< immediate post-dominator of a branch
};

struct SourceLoc {
  uint32_t file = 0, line = 0, column = 0;
};

/// A variable of the global, const or shared space, or an automatic one of the
/// local or call-parameter space.
struct Variable {
  std::string name;
  Space space = Space::Global;
  uint32_t align = 1;
  uint64_t size = 0;
  uint64_t address = 0;
  bool isExtern = false; ///< .extern .shared: dynamic shared memory
  int32_t entry = -1;    ///< the kernel whose body declares a .shared one
  std::vector<uint8_t> init;
  /// Pointers inside the initialiser: offset, symbol, addend.
  struct Reloc {
    uint64_t offset;
    std::string symbol;
    int64_t addend;
    uint8_t bytes;
    bool generic;
  };
  std::vector<Reloc> relocs;
};

struct Param {
  std::string name;
  Ty ty = Ty::B8;
  uint32_t align = 1;
  uint32_t size = 0;   ///< bytes
  uint32_t offset = 0; ///< in the parameter block (entries) or lane area
  bool isRegister = false;
  Operand reg;
};

/// A loop: the natural loop of a backward branch.
struct Loop {
  uint32_t header = 0; ///< first instruction
  uint32_t latch = 0;  ///< last backward branch
  int32_t parent = -1;
  uint32_t depth = 1;
  std::string label;
};

struct Function {
  std::string name;
  bool isEntry = false;
  bool isDefined = false;
  uint32_t begin = 0, end = 0; ///< instructions
  uint32_t line = 0;
  uint32_t rows = 0;  ///< register row units
  uint32_t preds = 0; ///< predicate registers
  std::vector<Param> params, returns;
  uint32_t paramBytes = 0; ///< entries: size of the argument block
  uint32_t localBytes = 0, callBytes = 0;
  /// Frame bases, from the longest call path that leads here.
  uint32_t rowBase = 0, predBase = 0, localBase = 0, callBase = 0;
  uint32_t rowsTotal = 0, predsTotal = 0, localTotal = 0, callTotal = 0;
  uint32_t reqntid[3] = {0, 0, 0}, maxntid[3] = {0, 0, 0};
  uint32_t reqnctapercluster[3] = {0, 0, 0};
  bool explicitCluster = false;
  std::vector<uint32_t> callees;
  bool recursive = false;
  std::vector<Loop> loops;
  std::vector<int32_t> loopOf; ///< innermost loop per instruction, or -1
  /// Labels by instruction, for reports.
  std::vector<std::pair<uint32_t, std::string>> labels;
  bool usesWgmma = false, usesGlobalSync = false;
};

struct CallInfo {
  uint32_t callee = 0;  ///< function index; NoFunction for an indirect call
  std::string external; ///< vprintf, __assertfail, ...
  struct Arg {
    bool isRegister = false;
    Operand reg;
    uint32_t offset = 0, size = 0; ///< call-parameter area
    Ty ty = Ty::None;
  };
  std::vector<Arg> returns, args;
};
constexpr uint32_t NoFunction = 0xFFFFFFFF;

struct Module {
  unsigned versionMajor = 0, versionMinor = 0;
  std::string target;
  unsigned smVersion = 0;
  std::vector<Inst> code;
  std::vector<Operand> operands;
  std::vector<Function> functions;
  llvm::StringMap<uint32_t> functionIndex;
  std::vector<Variable> variables;
  llvm::StringMap<uint32_t> variableIndex;
  std::vector<SourceLoc> locs{SourceLoc()};
  llvm::DenseMap<uint32_t, std::string> files;
  std::vector<uint8_t> constants; ///< broadcast rows
  std::vector<std::vector<uint32_t>> branchTables;
  std::vector<CallInfo> calls;
  std::vector<std::string> strings; ///< unsupported instruction texts, ...
  std::vector<std::shared_ptr<void>> aux; ///< decoded mma shapes, ...
  std::vector<std::string> lines;         ///< the text, for messages
  uint32_t staticShared = 0;              ///< bytes of static shared memory
  uint32_t sharedAlign = 16;
  uint64_t globalsBytes = 0; ///< initial image of global + const variables
  std::vector<uint8_t> globalsImage;

  llvm::StringRef fileOf(uint32_t loc) const;
};

// The address map. Generic addresses of the windows; plain shared addresses are
// below SharedWindow's size: bits 31..24 are 0 for the own block or 1 + rank.
constexpr uint64_t SharedWindow = 0x0000700000000000;
constexpr uint64_t LocalWindow = 0x0000710000000000;
constexpr uint64_t ParamWindow = 0x0000720000000000;
constexpr uint64_t WindowSize = 0x0000000100000000;
constexpr uint64_t GlobalsBase = 0x0000600000000000;
constexpr uint32_t SharedBase = 1024; ///< offset of the first shared byte

/// Fills Inst::reconverge and Function::loops. (Cfg.cpp)
void analyzeControlFlow(Module &module, Function &function);

} // namespace emulator
} // namespace humming

#endif // HUMMING_LIB_EMULATOR_IR_H
