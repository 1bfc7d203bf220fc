//===- QuantizeActivations.cpp - What quantize means ----------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every operation on floats below is one f32 operation, rounded to nearest
// even, in the order that kernels have. Q is the largest code.
//
//   symmetric    s = max(high / Q, 2^-126)          f32
//                s = 2^e, the least one >= that     e8m0
//   asymmetric   s = max(high / 255 - low / 255, 2^-126)
//                z = clamp(-128 - round(low / s))
//   codes        clamp(round(x * (1 / s)) + z)
//
// Worked example, e4m3: a row whose largest magnitude is 3 has s = 3/448 =
// 0.0066964..., 1/s = 149.333..., and 3 becomes 448 = 0x7E.
//
// Bounds of gates (gateError). Relative errors that add up: ex2.approx 2^-22
// and div.full 2^-22 (PTX ISA: 2 ulp both), products and sums 2^-24 each; the
// argument of ex2 carries its own relative error into the result multiplied by
// itself. erf is Abramowitz and Stegun 7.1.26, off by 1.5e-7 at most, whose
// polynomial (coefficients up to 1.5, ten roundings) adds less than 3e-6.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/QuantizeActivations.h"
#include "llvm/ADT/Twine.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace humming {

llvm::StringRef stringify(GateKind kind) {
  switch (kind) {
  case GateKind::None:
    return "none";
  case GateKind::Silu:
    return "silu";
  case GateKind::Gelu:
    return "gelu";
  case GateKind::GeluTanh:
    return "gelu_tanh";
  }
  return "none";
}

llvm::Expected<GateKind> parseGateKind(llvm::StringRef text) {
  for (GateKind kind :
       {GateKind::None, GateKind::Silu, GateKind::Gelu, GateKind::GeluTanh})
    if (stringify(kind) == text)
      return kind;
  return llvm::createStringError(
      "expected none, silu, gelu or gelu_tanh, got '" + text + "'");
}

/// Twice the argument of gelu_tanh's tanh.
static double tanhArgument(double x) {
  return 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

double gateValue(GateKind kind, double x) {
  switch (kind) {
  case GateKind::None:
    return x;
  case GateKind::Silu:
    return x / (1 + std::exp(-x));
  case GateKind::Gelu:
    return x * std::erfc(-x * M_SQRT1_2) / 2;
  case GateKind::GeluTanh:
    return x / (1 + std::exp(-tanhArgument(x)));
  }
  return x;
}

double gateError(GateKind kind, double x, double y) {
  if (x == 0 || y == 0)
    return 0;
  double value = std::fabs(gateValue(kind, x) * y);
  // Where a denominator overflows, the result is 0.
  double floor = std::fabs(x * y) * 0x1p-125 + 0x1p-149;
  switch (kind) {
  case GateKind::None:
    return 0;
  case GateKind::Silu:
    return value * (std::fabs(x) * 0x1p-23 + 0x1p-20) + floor;
  case GateKind::Gelu:
    return std::fabs(x * y) * 0x1p-18 + floor;
  case GateKind::GeluTanh:
    return value * (std::min(std::fabs(tanhArgument(x)), 128.0) * 0x1p-21 +
                    0x1p-20) +
           floor;
  }
  return 0;
}

double largestCode(const NumberFormat &format) {
  return format.isInteger() ? std::ldexp(1.0, format.bits - 1) - 1
                            : format.maxFinite();
}

static constexpr float kLeastScale = 0x1p-126f;

static float roundEven(float value) { return std::nearbyintf(value); }

SegmentScale quantizeScale(const ActivationCodes &codes, float high,
                           float low) {
  SegmentScale result;
  if (!codes.zeroPoint)
    low = 0;
  if (!(std::isfinite(high) && std::isfinite(low))) {
    result.scale = std::numeric_limits<float>::quiet_NaN();
    result.code = codes.scaleFormat.isE8M0() ? 0xFF : 0x7FFFFFFF;
    result.inverse = 0;
    return result;
  }
  if (high == 0 && low == 0) {
    result.code = codes.scaleFormat.isE8M0() ? 127 : 0x3F800000;
    return result;
  }
  float scale = codes.zeroPoint ? high / 255.0f - low / 255.0f
                                : high / float(largestCode(codes.format));
  scale = std::max(scale, kLeastScale);
  uint32_t bits = llvm::bit_cast<uint32_t>(scale);
  if (codes.scaleFormat.isE8M0()) {
    result.code = (bits >> 23) + ((bits & 0x7FFFFF) != 0);
    result.scale = std::ldexp(1.0f, int(result.code) - 127);
    result.inverse = std::ldexp(1.0f, 127 - int(result.code));
    return result;
  }
  result.scale = scale;
  result.code = bits;
  result.inverse = 1.0f / scale;
  if (codes.zeroPoint)
    result.zeroPoint =
        std::clamp(-128 - int(roundEven(low * result.inverse)), -128, 127);
  return result;
}

uint32_t quantizeValue(const ActivationCodes &codes, const SegmentScale &scale,
                       float value) {
  float scaled = value * scale.inverse;
  if (!codes.format.isInteger())
    return codes.format.encode(scaled);
  int32_t most = int32_t(largestCode(codes.format));
  int32_t least = codes.zeroPoint ? -128 : -most;
  int32_t code = 0;
  if (!std::isnan(scaled))
    code = int32_t(roundEven(std::clamp(scaled, -1024.0f, 1024.0f)));
  code = std::clamp(code, least - scale.zeroPoint, most - scale.zeroPoint) +
         scale.zeroPoint;
  return uint32_t(code) & ((1u << codes.format.bits) - 1);
}

QuantizedActivations quantizeActivations(const ActivationCodes &codes,
                                         llvm::ArrayRef<float> values,
                                         int64_t m, int64_t k) {
  int64_t group = codes.group ? codes.group : std::max<int64_t>(k, 1);
  int64_t groups = (k + group - 1) / group;
  QuantizedActivations result;
  result.codes.resize(size_t(m * k));
  result.scales.resize(size_t(m * groups));
  if (codes.zeroPoint)
    result.zeroPoints.resize(size_t(m));
  for (int64_t row = 0; row < m; ++row)
    for (int64_t g = 0; g < groups; ++g) {
      int64_t end = std::min(k, (g + 1) * group);
      float high = 0, low = 0;
      bool special = false;
      for (int64_t j = g * group; j < end; ++j) {
        float value = values[row * k + j];
        special |= !std::isfinite(value);
        high = std::max(high, codes.zeroPoint ? value : std::fabs(value));
        low = std::min(low, value);
      }
      if (special)
        high = std::numeric_limits<float>::infinity();
      SegmentScale scale = quantizeScale(codes, high, low);
      result.scales[g * m + row] = scale.code;
      if (codes.zeroPoint)
        result.zeroPoints[row] = scale.zeroPoint;
      for (int64_t j = g * group; j < end; ++j)
        result.codes[row * k + j] =
            quantizeValue(codes, scale, values[row * k + j]);
    }
  return result;
}

} // namespace humming
