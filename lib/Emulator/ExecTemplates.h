//===- ExecTemplates.h - Element-wise handlers -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_EXECTEMPLATES_H
#define HUMMING_LIB_EMULATOR_EXECTEMPLATES_H

#include "Decode.h"
#include "Exec.h"
#include <type_traits>

namespace humming {
namespace emulator {

/// The element type of a row that holds a T.
template <class T>
using Storage = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
inline Storage<T> pack(T v) {
  return Storage<T>(std::make_unsigned_t<T>(v));
}

/// d = Op(a), Op(a, b), Op(a, b, c), all of one integer type.
template <class T, class Op>
void unaryHandler(Warp &w, const Inst &inst, uint32_t mask) {
  using S = Storage<T>;
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]);
  vectorLanes(mask, [&](unsigned l) { d[l] = pack<T>(Op::run(T(a[l]))); });
}
template <class T, class Op>
void binaryHandler(Warp &w, const Inst &inst, uint32_t mask) {
  using S = Storage<T>;
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]), *b = w.row<S>(o[2]);
  vectorLanes(mask,
              [&](unsigned l) { d[l] = pack<T>(Op::run(T(a[l]), T(b[l]))); });
}
template <class T, class Op>
void ternaryHandler(Warp &w, const Inst &inst, uint32_t mask) {
  using S = Storage<T>;
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]), *b = w.row<S>(o[2]), *c = w.row<S>(o[3]);
  vectorLanes(mask, [&](unsigned l) {
    d[l] = pack<T>(Op::run(T(a[l]), T(b[l]), T(c[l])));
  });
}

/// Picks the instance of a handler template by integer type; null for others.
template <template <class, class> class Make, class Op>
Handler pickInteger(Ty ty) {
  switch (ty) {
  case Ty::U16:
  case Ty::B16:
    return Make<uint16_t, Op>::fn;
  case Ty::S16:
    return Make<int16_t, Op>::fn;
  case Ty::U32:
  case Ty::B32:
    return Make<uint32_t, Op>::fn;
  case Ty::S32:
    return Make<int32_t, Op>::fn;
  case Ty::U64:
  case Ty::B64:
    return Make<uint64_t, Op>::fn;
  case Ty::S64:
    return Make<int64_t, Op>::fn;
  default:
    return nullptr;
  }
}
template <class T, class Op>
struct Unary {
  static constexpr Handler fn = unaryHandler<T, Op>;
};
template <class T, class Op>
struct Binary {
  static constexpr Handler fn = binaryHandler<T, Op>;
};
template <class T, class Op>
struct Ternary {
  static constexpr Handler fn = ternaryHandler<T, Op>;
};

} // namespace emulator
} // namespace humming

#endif // HUMMING_LIB_EMULATOR_EXECTEMPLATES_H
