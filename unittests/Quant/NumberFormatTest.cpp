//===- NumberFormatTest.cpp
//-------------------------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/NumberFormat.h"
#include "Humming/Quant/Float16.h"
#include "Humming/Quant/QuantType.h"
#include "Humming/Quant/QuantizedWeights.h"
#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"
#include <cmath>
#include <vector>

using namespace humming;
using namespace llvm;

namespace {

std::vector<NumberFormat> allNarrowFormats() {
  std::vector<NumberFormat> formats;
  for (unsigned bits = 1; bits <= 8; ++bits)
    formats.push_back(NumberFormat::unsignedInt(bits));
  for (unsigned bits = 2; bits <= 8; ++bits)
    formats.push_back(NumberFormat::signedInt(bits));
  for (unsigned exponent = 1; exponent <= 7; ++exponent)
    for (unsigned mantissa = 0; exponent + mantissa <= 7; ++mantissa)
      formats.push_back(NumberFormat::smallFloat(exponent, mantissa));
  formats.push_back(NumberFormat::e8m0());
  return formats;
}

std::vector<NumberFormat> allFormats() {
  std::vector<NumberFormat> formats = allNarrowFormats();
  formats.push_back(NumberFormat::f16());
  formats.push_back(NumberFormat::bf16());
  formats.push_back(NumberFormat::f32());
  return formats;
}

bool sameBits(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

TEST(NumberFormat, ParsesItsOwnNames) {
  for (NumberFormat format : allFormats()) {
    Expected<NumberFormat> parsed = NumberFormat::parse(format.str());
    ASSERT_TRUE(bool(parsed)) << format.str() << toString(parsed.takeError());
    EXPECT_EQ(*parsed, format) << format.str();
  }
}

TEST(NumberFormat, RejectsOtherNames) {
  for (const char *name :
       {"",     "u0",   "u9",   "u04",  "u",    "s1",   "s9",
        "s-4",  "e0m3", "e4m4", "e8m1", "e4",   "e4m",  "e4m3 ",
        "E4M3", "m3e4", "f8",   "f64",  "int4", "e10m0"}) {
    Expected<NumberFormat> parsed = NumberFormat::parse(name);
    EXPECT_FALSE(bool(parsed)) << name;
    std::string message = toString(parsed.takeError());
    EXPECT_NE(message.find("expected a number format"), std::string::npos);
    EXPECT_NE(message.find("'" + std::string(name) + "'"), std::string::npos);
  }
}

TEST(NumberFormat, IntegersOfEveryWidth) {
  for (unsigned bits = 1; bits <= 8; ++bits)
    for (int code = 0; code < 1 << bits; ++code) {
      EXPECT_EQ(NumberFormat::unsignedInt(bits).decode(code), code);
      if (bits > 1) {
        int value = code < 1 << (bits - 1) ? code : code - (1 << bits);
        EXPECT_EQ(NumberFormat::signedInt(bits).decode(code), value);
      }
    }
}

/// Compares a format with LLVM's own arithmetic, code by code.
void compareWithAPFloat(NumberFormat format, const fltSemantics &semantics) {
  uint64_t count = uint64_t(1) << std::min<unsigned>(format.bits, 16);
  for (uint64_t i = 0; i < count; ++i) {
    // Of f32, the codes with all upper halves and a mixed lower half.
    uint32_t code = format.bits == 32 ? uint32_t(i << 16 | (i * 40503 & 0xFFFF))
                                      : uint32_t(i);
    APFloat value(semantics, APInt(format.bits, code));
    double expected;
    if (value.isNaN()) {
      expected = std::nan("");
    } else {
      bool lossy;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &lossy);
      EXPECT_FALSE(lossy);
      expected = value.convertToDouble();
    }
    EXPECT_TRUE(sameBits(format.decode(code), expected))
        << format.str() << " code " << code << ": " << format.decode(code)
        << " vs " << expected;
  }
}

TEST(NumberFormat, DecodesLikeAPFloat) {
  compareWithAPFloat(NumberFormat::smallFloat(2, 1), APFloat::Float4E2M1FN());
  compareWithAPFloat(NumberFormat::smallFloat(3, 2), APFloat::Float6E3M2FN());
  compareWithAPFloat(NumberFormat::smallFloat(2, 3), APFloat::Float6E2M3FN());
  compareWithAPFloat(NumberFormat::smallFloat(4, 3), APFloat::Float8E4M3FN());
  compareWithAPFloat(NumberFormat::smallFloat(5, 2), APFloat::Float8E5M2());
  compareWithAPFloat(NumberFormat::f16(), APFloat::IEEEhalf());
  compareWithAPFloat(NumberFormat::bf16(), APFloat::BFloat());
  compareWithAPFloat(NumberFormat::f32(), APFloat::IEEEsingle());
  compareWithAPFloat(NumberFormat::e8m0(), APFloat::Float8E8M0FNU());
}

TEST(NumberFormat, ScaleExtremes) {
  EXPECT_EQ(NumberFormat::e8m0().decode(0), 0x1p-127);
  EXPECT_EQ(NumberFormat::e8m0().decode(127), 1);
  EXPECT_EQ(NumberFormat::e8m0().decode(254), 0x1p127);
  EXPECT_TRUE(std::isnan(NumberFormat::e8m0().decode(255)));
  NumberFormat e4m3 = NumberFormat::smallFloat(4, 3);
  EXPECT_EQ(e4m3.decode(1), 0x1p-9);
  EXPECT_EQ(e4m3.maxFinite(), 448);
  EXPECT_TRUE(std::isnan(e4m3.decode(0x7F)));
  EXPECT_TRUE(std::isnan(e4m3.decode(0xFF)));
  NumberFormat e5m2 = NumberFormat::smallFloat(5, 2);
  EXPECT_EQ(e5m2.maxFinite(), 57344);
  EXPECT_TRUE(std::isinf(e5m2.decode(0x7C)));
}

TEST(NumberFormat, OddFormatsHaveTheValuesOfTheirFormula) {
  // By hand: positive codes in order.
  auto expectValues = [](unsigned exponent, unsigned mantissa,
                         std::vector<double> values) {
    NumberFormat format = NumberFormat::smallFloat(exponent, mantissa);
    for (size_t code = 0; code < values.size(); ++code) {
      EXPECT_EQ(format.decode(code), values[code]) << format.str();
      EXPECT_EQ(format.decode(code | 1u << (format.bits - 1)), -values[code]);
    }
  };
  expectValues(1, 1, {0, 1, 2, 3});                     // bias 0
  expectValues(1, 2, {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5}); // bias 0
  expectValues(2, 0, {0, 1, 2, 4});                     // bias 1
  expectValues(3, 0, {0, 0.25, 0.5, 1, 2, 4, 8, 16});   // bias 3
  expectValues(2, 1, {0, 0.5, 1, 1.5, 2, 3, 4, 6});
  EXPECT_EQ(NumberFormat::smallFloat(4, 2).maxFinite(), 448); // 1.75 * 2^8
  EXPECT_EQ(NumberFormat::smallFloat(3, 4).maxFinite(), 31);  // 1.9375 * 2^4
  EXPECT_EQ(NumberFormat::smallFloat(6, 1).maxFinite(), 0x1.8p32);
}

TEST(NumberFormat, EveryFiniteCodeSurvivesEncode) {
  for (NumberFormat format : allFormats()) {
    uint64_t count = uint64_t(1) << std::min<unsigned>(format.bits, 16);
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t code =
          format.bits == 32 ? uint32_t(i << 16 | (i & 0xFFFF)) : uint32_t(i);
      double value = format.decode(code);
      if (std::isfinite(value))
        EXPECT_EQ(format.encode(value), code) << format.str();
      else if (std::isnan(value))
        EXPECT_TRUE(std::isnan(format.decode(format.encode(value))));
      else
        EXPECT_EQ(format.decode(format.encode(value)),
                  value > 0 ? format.maxFinite() : format.minFinite());
    }
  }
}

TEST(NumberFormat, EncodeTakesTheNearestCode) {
  // Against a search over all codes, at midpoints, just beside them, and at
  // random points.
  for (NumberFormat format : allNarrowFormats()) {
    struct Entry {
      double value;
      uint32_t code;
    };
    std::vector<Entry> entries;
    for (uint32_t code = 0; code < 1u << format.bits; ++code)
      if (std::isfinite(format.decode(code)))
        entries.push_back({format.decode(code), code});
    auto distanceOf = [&](double x) {
      double best = std::numeric_limits<double>::infinity();
      for (const Entry &entry : entries)
        best = std::min(best, std::fabs(entry.value - x));
      return best;
    };
    auto check = [&](double x) {
      double got = format.decode(format.encode(x));
      EXPECT_EQ(std::fabs(got - x), distanceOf(x)) << format.str() << " " << x;
    };
    std::sort(entries.begin(), entries.end(),
              [](const Entry &a, const Entry &b) { return a.value < b.value; });
    for (size_t i = 0; i + 1 < entries.size(); ++i) {
      double low = entries[i].value, high = entries[i + 1].value;
      if (low == high)
        continue; // the two zeros
      double middle = (low + high) / 2;
      check(middle);
      check(std::nextafter(middle, low));
      check(std::nextafter(middle, high));
      // A tie goes to the even code (integers: the even value).
      if (format.encode(middle) != format.encode(-0.0))
        EXPECT_EQ(format.encode(middle) & 1, 0u) << format.str() << middle;
    }
    EXPECT_EQ(format.decode(format.encode(1e300)), format.maxFinite());
    EXPECT_EQ(format.decode(format.encode(-1e300)), format.minFinite());
    EXPECT_EQ(
        format.decode(format.encode(std::numeric_limits<double>::infinity())),
        format.maxFinite());
    Random random(7);
    for (int i = 0; i < 200; ++i)
      check(random.normal() * format.maxFinite() * 0.5);
  }
}

TEST(NumberFormat, ZeroKeepsItsSign) {
  EXPECT_EQ(NumberFormat::smallFloat(2, 1).encode(-0.0), 8u);
  EXPECT_EQ(NumberFormat::smallFloat(4, 3).encode(-1e-30), 0x80u);
  EXPECT_EQ(NumberFormat::unsignedInt(4).encode(-0.0), 0u);
}

TEST(Float16, RoundTripsEveryCode) {
  for (uint32_t code = 0; code < 65536; ++code) {
    double f16 = NumberFormat::f16().decode(code);
    double bf16 = NumberFormat::bf16().decode(code);
    EXPECT_TRUE(sameBits(f16ToFloat(code), f16));
    EXPECT_TRUE(sameBits(bf16ToFloat(code), bf16));
    if (!std::isnan(f16)) {
      EXPECT_EQ(floatToF16(float(f16)), code);
      EXPECT_EQ(doubleToF16(f16), code);
    } else {
      EXPECT_TRUE(std::isnan(f16ToFloat(floatToF16(f16ToFloat(code)))));
    }
    if (!std::isnan(bf16)) {
      EXPECT_EQ(floatToBF16(float(bf16)), code);
      EXPECT_EQ(doubleToBF16(bf16), code);
    } else {
      EXPECT_TRUE(std::isnan(bf16ToFloat(floatToBF16(bf16ToFloat(code)))));
    }
  }
}

uint16_t apfloatRound(double value, const fltSemantics &semantics) {
  APFloat x(value);
  bool lossy;
  x.convert(semantics, APFloat::rmNearestTiesToEven, &lossy);
  return uint16_t(x.bitcastToAPInt().getZExtValue());
}

TEST(Float16, RoundsLikeAPFloat) {
  Random random(3);
  auto check = [](double value) {
    EXPECT_EQ(doubleToF16(value), apfloatRound(value, APFloat::IEEEhalf()))
        << value;
    EXPECT_EQ(doubleToBF16(value), apfloatRound(value, APFloat::BFloat()))
        << value;
    float single = float(value);
    EXPECT_EQ(floatToF16(single), apfloatRound(single, APFloat::IEEEhalf()));
    EXPECT_EQ(floatToBF16(single), apfloatRound(single, APFloat::BFloat()));
  };
  // Midpoints between neighbours, and the doubles beside them: the cases where
  // rounding twice would go wrong.
  for (uint32_t code = 0; code < 0x7C00; code += 7) {
    double middle =
        (NumberFormat::f16().decode(code) +
         (code + 1 < 0x7C00 ? NumberFormat::f16().decode(code + 1) : 65536.0)) /
        2;
    for (double x :
         {middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e9)}) {
      check(x);
      check(-x);
    }
  }
  for (uint32_t code = 0; code < 0x7F80; code += 7) {
    double low = NumberFormat::bf16().decode(code);
    double high = code + 1 < 0x7F80 ? NumberFormat::bf16().decode(code + 1)
                                    : std::ldexp(1.0, 128);
    double middle = (low + high) / 2;
    for (double x :
         {middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e300)}) {
      check(x);
      check(-x);
    }
  }
  for (int i = 0; i < 20000; ++i)
    check(std::ldexp(random.normal(), int(random.below(300)) - 150));
  check(1e300);
  check(-1e300);
  check(5e-324);
  check(-5e-324);
  check(0.0);
  check(-0.0);
}

TEST(QuantType, GranularitySpelling) {
  auto parse = [](StringRef text) {
    return cantFail(Granularity::parse(text));
  };
  EXPECT_EQ(parse("128"), Granularity::group(128));
  EXPECT_EQ(parse("0"), Granularity::perChannel());
  EXPECT_EQ(parse("-1"), Granularity::perTensor());
  EXPECT_EQ(parse("128x64"), Granularity::block(128, 64));
  for (StringRef text : {"128", "0", "-1", "128x64", "16"})
    EXPECT_EQ(parse(text).str(), text);
  for (StringRef text : {"", "x", "128x", "x128", "0x128", "128x0", "-2", "+4",
                         "1 2", "99999999999", "1x2x3", "g128"}) {
    Expected<Granularity> granularity = Granularity::parse(text);
    EXPECT_FALSE(bool(granularity)) << text.str();
    consumeError(granularity.takeError());
  }
}

TEST(QuantType, ZeroPointSpelling) {
  for (ZeroPointKind kind :
       {ZeroPointKind::None, ZeroPointKind::Integer, ZeroPointKind::Float})
    EXPECT_EQ(cantFail(parseZeroPointKind(stringify(kind))), kind);
  Expected<ZeroPointKind> kind = parseZeroPointKind("asym");
  EXPECT_FALSE(bool(kind));
  EXPECT_EQ(toString(kind.takeError()),
            "expected a zero point kind (none, int or float), got 'asym'");
}

TEST(QuantType, VerifyRefusesWhatMakesNoSense) {
  auto refuse = [](QuantType type, StringRef part) {
    Error error = type.verify();
    ASSERT_TRUE(bool(error)) << part.str();
    std::string message = toString(std::move(error));
    EXPECT_NE(message.find(part.str()), std::string::npos) << message;
  };
  QuantType good;
  cantFail(good.verify());
  EXPECT_EQ(good.str(), "u4/g128/f16");
  QuantType type = good;
  type.weight = NumberFormat::f16();
  refuse(type, "expected a weight format");
  type = good;
  type.scale = NumberFormat::unsignedInt(8);
  refuse(type, "expected a float scale format");
  type = good;
  type.weight = NumberFormat::smallFloat(2, 1);
  type.zeroPoint = ZeroPointKind::Integer;
  refuse(type, "expected unsigned integer weights");
  type = good;
  type.columnPhase = 128;
  refuse(type, "expected a column phase");
  type = good;
  type.rowPhase = 1;
  refuse(type, "expected a row phase");
  type = good;
  type.weight = NumberFormat::unsignedInt(8);
  type.table = CodeTable::nf4();
  refuse(type, "at most 4 bits for a code table");
}

TEST(QuantType, PhaseShiftsBlocks) {
  // A shard of 7392 columns that begins 96 into a group of 128.
  QuantType type;
  type.columnPhase = 96;
  EXPECT_EQ(type.scaleColumn(0), 0);
  EXPECT_EQ(type.scaleColumn(31), 0);
  EXPECT_EQ(type.scaleColumn(32), 1);
  EXPECT_EQ(type.scaleColumns(7392), 59);
  // Rows 1856.. of a matrix in blocks of 128: shard 1 begins in block 14.
  type.granularity = Granularity::block(128, 128);
  type.columnPhase = 0;
  type.rowPhase = 1856 % 128;
  EXPECT_EQ(type.scaleRow(63), 0);
  EXPECT_EQ(type.scaleRow(64), 1);
  EXPECT_EQ(type.scaleRows(1856), 15);
}

} // namespace
