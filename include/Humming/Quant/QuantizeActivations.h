//===- QuantizeActivations.h - What quantize means ---------------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference of hquant.quantize, in the very f32 operations that kernels
// use: without a gate, a kernel gives these bits.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_QUANTIZEACTIVATIONS_H
#define HUMMING_QUANT_QUANTIZEACTIVATIONS_H

#include "Humming/Quant/NumberFormat.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace humming {

/// What activations become.
struct ActivationCodes {
  NumberFormat format = NumberFormat::smallFloat(4, 3); ///< e4m3 e5m2 s8 s4
  int32_t group = 0; ///< values of a token that share a scale; 0: all
  NumberFormat scaleFormat = NumberFormat::f32(); ///< f32, or e8m0 with groups
  bool zeroPoint = false; ///< asymmetric: x = (code - z) * scale, s8 only

  bool operator==(const ActivationCodes &o) const {
    return format == o.format && group == o.group &&
           scaleFormat == o.scaleFormat && zeroPoint == o.zeroPoint;
  }
};

/// y = f(x[k]) * x[K + k].
enum class GateKind : uint8_t {
  None,
  Silu,     ///< x / (1 + exp(-x))
  Gelu,     ///< x (1 + erf(x / sqrt 2)) / 2
  GeluTanh, ///< x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
};
llvm::StringRef stringify(GateKind kind);
/// Error: "expected none, silu, gelu or gelu_tanh, got ...".
llvm::Expected<GateKind> parseGateKind(llvm::StringRef text);
/// f in f64.
double gateValue(GateKind kind, double x);
/// A bound on |kernel's f(x) y - f(x) y|: see QuantizeActivations.cpp.
double gateError(GateKind kind, double x, double y);

/// The largest code that scales aim at: 448, 57344, 127, 7.
double largestCode(const NumberFormat &format);

/// Scale, its inverse, and zero point of one segment.
struct SegmentScale {
  float scale = 1;   ///< value, exact in the scale's format
  uint32_t code = 0; ///< bits of the f32, or the byte of the e8m0
  float inverse = 1; ///< what values are multiplied by
  int32_t zeroPoint = 0;
};

/// From the range of a segment's values, which holds 0: `high` the largest,
/// `low` the smallest (symmetric codes: high the largest magnitude, low
/// unused). Where the range is {0}, the scale is 1 and the zero point 0. Where
/// it holds an infinity or a NaN, the scale is NaN and all codes are 0, so that
/// every result of the token (of the group) is NaN. Scales are at least 2^-126.
SegmentScale quantizeScale(const ActivationCodes &codes, float high, float low);

/// The code of one value: round to nearest even of value * inverse (in f32,
/// plus the zero point), saturated. Static scales: infinities saturate, NaN is
/// the float formats' NaN and the integers' 0.
uint32_t quantizeValue(const ActivationCodes &codes, const SegmentScale &scale,
                       float value);

struct QuantizedActivations {
  std::vector<uint32_t> codes;     ///< [m, k]
  std::vector<uint32_t> scales;    ///< [m], or [ceil(k / group), m]: codes
  std::vector<int32_t> zeroPoints; ///< [m] where asymmetric
};

/// Quantizes rows of f32 values, [m, k], with dynamic scales.
QuantizedActivations quantizeActivations(const ActivationCodes &codes,
                                         llvm::ArrayRef<float> values,
                                         int64_t m, int64_t k);

} // namespace humming

#endif // HUMMING_QUANT_QUANTIZEACTIVATIONS_H
