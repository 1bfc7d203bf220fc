//===- QuantType.cpp - Spelling and rules of a quantization ---------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/QuantType.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace humming {

Expected<Granularity> Granularity::parse(StringRef text) {
  auto fail = [&]() -> Error {
    return createStringError(
        formatv("expected a granularity (G for groups of G weights along K, 0 "
                "for one scale per channel, -1 for one per tensor, NxK for "
                "blocks), got '{0}'",
                text.take_front(64)));
  };
  if (text == "-1")
    return perTensor();
  auto [first, second] = text.split('x');
  int32_t rows, columns;
  if (!text.contains('x')) {
    if (text.empty() || !all_of(text, isDigit) ||
        text.getAsInteger(10, columns))
      return fail();
    return columns == 0 ? perChannel() : group(columns);
  }
  if (first.empty() || second.empty() || !all_of(first, isDigit) ||
      !all_of(second, isDigit) || first.getAsInteger(10, rows) ||
      second.getAsInteger(10, columns) || rows == 0 || columns == 0)
    return fail();
  return block(rows, columns);
}

std::string Granularity::str() const {
  if (isPerTensor())
    return "-1";
  if (rows == 1)
    return itostr(columns);
  return itostr(rows) + "x" + itostr(columns);
}

Expected<ZeroPointKind> parseZeroPointKind(StringRef text) {
  if (text == "none")
    return ZeroPointKind::None;
  if (text == "int")
    return ZeroPointKind::Integer;
  if (text == "float")
    return ZeroPointKind::Float;
  return createStringError(
      formatv("expected a zero point kind (none, int or float), got '{0}'",
              text.take_front(64)));
}

StringRef stringify(ZeroPointKind kind) {
  switch (kind) {
  case ZeroPointKind::None:
    return "none";
  case ZeroPointKind::Integer:
    return "int";
  case ZeroPointKind::Float:
    return "float";
  }
  return "none";
}

Error QuantType::verify() const {
  auto fail = [&](const Twine &message) -> Error {
    return createStringError("quantization " + str() + ": " + message);
  };
  if (weight.bits < 1 || weight.bits > 8 || weight.isE8M0())
    return fail("expected a weight format of 1 to 8 bits (uN, sN or eXmY), "
                "got " +
                weight.str());
  if (scale.isInteger())
    return fail("expected a float scale format (f32, f16, bf16, e8m0 or "
                "eXmY), got " +
                scale.str());
  if (granularity.rows < 0 || granularity.columns < 0 ||
      (granularity.rows == 0 && granularity.columns != 0))
    return fail("expected block extents of at least one, got " +
                Twine(granularity.rows) + " x " + Twine(granularity.columns));
  if (zeroPoint != ZeroPointKind::None &&
      weight.kind != NumberFormat::Kind::Unsigned)
    return fail("expected unsigned integer weights beside zero points, got " +
                weight.str());
  if (table) {
    if (weight.kind != NumberFormat::Kind::Unsigned || weight.bits > 4)
      return fail("expected unsigned codes of at most 4 bits for a code "
                  "table, got " +
                  weight.str());
    if (zeroPoint != ZeroPointKind::None)
      return fail("expected no zero points beside a code table");
  }
  if (rowPhase < 0 || (rowPhase > 0 && rowPhase >= granularity.rows))
    return fail("expected a row phase of 0 to the block's rows - 1, got " +
                Twine(rowPhase));
  if (columnPhase < 0 ||
      (columnPhase > 0 && columnPhase >= granularity.columns))
    return fail("expected a column phase of 0 to the group size - 1, got " +
                Twine(columnPhase));
  return Error::success();
}

CodeTable CodeTable::nf4() {
  // The values of the reference implementation, as float literals.
  return {{-1.0f, -0.6961928009986877f, -0.5250730514526367f,
           -0.39491748809814453f, -0.28444138169288635f, -0.18477343022823334f,
           -0.09105003625154495f, 0.0f, 0.07958029955625534f,
           0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
           0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f,
           1.0f}};
}

CodeTable CodeTable::fp4() {
  // Sign, then {0, 1/192, 2/3, 1, 1/3, 1/2, 1/6, 1/4} by the low three bits.
  const float m[8] = {0.0f, 0.005208333333f, 0.66666667f, 1.0f, 0.33333333f,
                      0.5f, 0.16666667f,     0.25f};
  CodeTable table;
  for (unsigned i = 0; i < 8; ++i) {
    table.values[i] = m[i];
    table.values[i + 8] = -m[i];
  }
  return table;
}

std::string QuantType::str() const {
  std::string text = weight.str() + "/";
  if (granularity.isPerChannel())
    text += "channel";
  else if (granularity.isPerTensor())
    text += "tensor";
  else
    text += (granularity.isGroup() ? "g" : "") + granularity.str();
  text += "/" + scale.str();
  if (zeroPoint != ZeroPointKind::None)
    text += "/zp-" + stringify(zeroPoint).str();
  if (table)
    text += "/table";
  if (globalScale != GlobalScaleKind::None)
    text += globalScale == GlobalScaleKind::Tensor ? "/global" : "/global-row";
  if (rowPhase)
    text += "/row+" + itostr(rowPhase);
  if (columnPhase)
    text += "/column+" + itostr(columnPhase);
  return text;
}

} // namespace humming
