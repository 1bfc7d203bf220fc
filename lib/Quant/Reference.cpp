//===- Reference.cpp - Reference arithmetic and error bounds --------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bound. Exact value c = sum_j x_j w_j + b with w = a * s * t, where
// a = value(q) - z, s the block scale, t the global scale. A kernel makes these
// errors; u(T) is the unit roundoff of type T, 2^-(mantissa bits + 1), and
// eta(T) half its subnormal quantum.
//
// 1. Operand. The MMA reads w'_j with |w'_j - w_j| <= d_j. With A the operand
//    type and fl its rounding (actual rounding errors of a, z and s are used,
//    so whatever is exact in A costs nothing):
//      e_a = |fl(a) - a|; float zero points, subtracted in A before or after
//            scaling: e_a = |fl(z) - z| + 2 u |z| + u |a| + eta
//      Operand site: e_s = |fl(s) - s|,
//            d = (e_a |s| + |a| e_s + e_a e_s + u (|a|+e_a)(|s|+e_s) + eta) |t|
//      otherwise: d = e_a |s t|.
//    Contribution: D = sum |x_j| d_j.
//
// 2. Accumulation. One MMA sums P products and the accumulator. Tensor cores
//    align the addends to the largest and truncate, without guaranteed guard
//    bits (Fasi et al., "Numerical behavior of NVIDIA tensor cores", PeerJ CS
//    2021): each of the P + 1 addends loses less than 2^-p of the largest, p
//    the accumulator's mantissa bits, and the normalised result once more. An
//    IEEE accumulator (emulator) does better. With B a bound on every addend
//    and partial sum, K/P steps cost at most (K/P + G)(P + 2) 2^-p B, where G
//    steps more are allowed for groups that begin inside a step. Adding group
//    sums, warps and splits costs a rounding each: (G + warpsK + splitK) u B.
//    B <= S + D with S = sum |x_j w_j|.
//    p is 23 for f16 and bf16. For e4m3 and e5m2 it is 13, on Hopper (measured:
//    the emulator's model agrees bit for bit with an H200) and on Ada (no such
//    card was measured; Zhang, Huang, Zhang, Wei, Zhu and Chen,
//    "SageAttention2: Efficient Attention with Thorough Outlier Smoothing and
//    Per-thread INT4 Quantization", arXiv 2411.10958, report 22-bit sums of 1
//    sign, 8 exponent and 13 mantissa bits). A chip that keeps more is within
//    the same bound.
//
// 3. Scales and bias. f32 scaling of sums and the bias: four roundings of S.
//
// 3a. Partial sums that move to f32 every L elements (scales of activation
//    groups, f16 sums): a chain is L/P steps long, and each move (they may come
//    every 64 elements where L is longer) rounds twice (its scale, the
//    addition). f16 sums round to a quantum of 2^-24 besides: each of their
//    steps may lose (P + 2) 2^-25, times the largest scale that follows (of
//    weights and activations, and the power of two that 8-bit operands are too
//    small by). With 8-bit floats p is 10 then: the sums are kept in 13 bits
//    within an instruction and rounded to f16's 10 after it.
//
// 3b. Asymmetric activations: the kernel adds up (x + o) w and o w, so the
//    magnitudes above are those of |x| + 2 |o|. Their signs are not independent
//    of the weights: no `probable` gain for such rows.
//
// 4. Output: u(out) (|c| + E) + eta(out) for the error E so far.
//
// `worst` is the sum of these. It grows like K, as if all errors had one sign.
// `probable` uses that, with signs of x independent of the weights, the operand
// errors x_j e_j are independent and symmetric: by Hoeffding's inequality
// |sum| > L sqrt(sum x_j^2 d_j^2) has probability below 2 exp(-L^2/2), and by
// Levy's maximal inequality all partial sums of x_j w_j stay below
// L sqrt(sum x_j^2 w_j^2) but for twice that. With L = 8.5 this is 8.4e-16 per
// sum; a sum has at most a hundred partial sums that matter here, so 1e-13.
// Cutting a product loses less than 2^-p B with the product's sign, which is
// symmetric given all before it; so K cuts lose at most L sqrt(K) 2^-p B by the
// Azuma-Hoeffding inequality, and only the accumulator's two cuts a step (when
// it is aligned, when the result is normalised) add up:
// (2 (K/P + G) + L sqrt(K)) 2^-p B. With p = 13, K = 8192 and P = 32 this is
// 0.16 B, where the worst case, 1.07 B, would hold of anything.
// (Approach: Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019.)
//
// Worked example: bf16 operands, exact scales, K = 64, all |x| = |w| = 1, P=16.
// D = 64 * 2^-9 = 0.125 at worst, 8.5 * 8 * 2^-9 = 0.13 (no gain yet); at
// K = 8192 16 at worst and 1.5 probable. Accumulation: 4*18*2^-23*64 = 5e-4.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Reference.h"
#include "Humming/Quant/Float16.h"
#include "Humming/Quant/Parallel.h"
#include "llvm/Support/FormatVariadic.h"
#include <cassert>
#include <cmath>

using namespace llvm;

namespace humming {

static constexpr double kHoeffding = 8.5;
/// Weight rows that one task dequantises at a time.
static constexpr int64_t kStrip = 16;

static double unitRoundoff(NumberFormat format) {
  return std::ldexp(1.0, -int(format.mantissaBits) - 1);
}

/// Half the subnormal quantum of a float format.
static double halfQuantum(NumberFormat format) {
  int bias = (1 << (format.exponentBits - 1)) - 1;
  return std::ldexp(1.0, -bias - int(format.mantissaBits));
}

/// Rounds to a format; exact for integers in integer formats.
static double roundTo(NumberFormat format, double value) {
  if (format.isF16())
    return f16ToFloat(doubleToF16(value));
  if (format.isBF16())
    return bf16ToFloat(doubleToBF16(value));
  if (format.isF32())
    return float(value);
  return format.decode(format.encode(value));
}

//===----------------------------------------------------------------------===//
// Dequantisation
//===----------------------------------------------------------------------===//

namespace {
/// Decodes a row's scales and zero points once per block, and its weights by a
/// table; optionally the operand error d_j of each weight beside it.
class RowDecoder {
public:
  RowDecoder(const QuantizedWeights &weights, const KernelNumerics *numerics)
      : w(weights), numerics(numerics), values(codeValues(weights.type)) {
    if (!numerics)
      return;
    // Floats become integer operands of twice their value (e2m1 in s8).
    bool isDoubled = numerics->operand.isInteger() && w.type.weight.isFloat();
    double factor = isDoubled ? 2 : 1;
    for (double value : values)
      valueErrors.push_back(
          std::isfinite(value)
              ? std::fabs(roundTo(numerics->operand, factor * value) / factor -
                          value)
              : 0);
  }

  /// Writes row `row`, and its operand errors unless `errors` is null.
  void decode(int64_t row, double *out, double *errors) const {
    int64_t groups = w.type.scaleColumns(w.k);
    int64_t scaleRow = w.type.scaleRow(row);
    double global = w.globalScaleOf(row);
    bool integerZero = w.type.zeroPoint == ZeroPointKind::Integer;
    int64_t column = 0;
    for (int64_t group = 0; group < groups && column < w.k; ++group) {
      int64_t end =
          w.type.granularity.columns == 0
              ? w.k
              : std::min(w.k, (group + 1) * w.type.granularity.columns -
                                  w.type.columnPhase);
      int64_t index = scaleRow * groups + group;
      double scale = w.type.scale.decode(w.scales[index]);
      double factor = scale * global;
      double zero = 0;
      if (w.type.zeroPoint != ZeroPointKind::None)
        zero = integerZero ? double(w.zeroPoints[index])
                           : w.type.scale.decode(w.zeroPoints[index]);
      for (int64_t j = column; j < end; ++j)
        if (position(j) >= 0)
          out[position(j)] = (values[w.codes[row * w.k + j]] - zero) * factor;
      if (errors)
        decodeErrors(row, column, end, scale, global, zero, errors);
      column = end;
    }
  }

  /// The largest scale that a kernel multiplies sums of the row by.
  double largestFactor(int64_t row) const {
    double global = std::fabs(w.globalScaleOf(row));
    if (!numerics || numerics->scale == ScaleSite::Operand)
      return global;
    int64_t groups = w.type.scaleColumns(w.k);
    double largest = 0;
    for (int64_t group = 0; group < groups; ++group)
      largest = std::max(largest,
                         std::fabs(w.type.scale.decode(
                             w.scales[w.type.scaleRow(row) * groups + group])));
    return largest * global;
  }

private:
  int64_t position(int64_t j) const {
    return w.kOrder.empty() ? j : w.kOrder[j];
  }

  void decodeErrors(int64_t row, int64_t begin, int64_t end, double scale,
                    double global, double zero, double *errors) const {
    NumberFormat operand = numerics->operand;
    bool isFloat = operand.isFloat();
    double u = isFloat ? unitRoundoff(operand) : 0;
    double eta = isFloat ? halfQuantum(operand) : 0;
    double s = std::fabs(scale), t = std::fabs(global);
    // Integers up to here are exact in the operand type.
    double exactIntegers = isFloat ? std::ldexp(1.0, operand.mantissaBits + 1)
                                   : operand.maxFinite();
    bool onOperand = numerics->scale == ScaleSite::Operand;
    double scaleError =
        onOperand ? std::fabs(roundTo(operand, scale) - scale) : 0;
    double zeroError = 0;
    if (w.type.zeroPoint == ZeroPointKind::Float)
      zeroError = std::fabs(roundTo(operand, zero) - zero) +
                  2 * u * std::fabs(zero) + eta;
    for (int64_t j = begin; j < end; ++j) {
      if (position(j) < 0)
        continue;
      uint8_t code = w.codes[row * w.k + j];
      double value = std::fabs(values[code] - zero);
      double valueError = valueErrors[code];
      if (w.type.zeroPoint == ZeroPointKind::Float)
        valueError += zeroError + u * value;
      else if (w.type.zeroPoint == ZeroPointKind::Integer)
        valueError = value <= exactIntegers
                         ? 0
                         : std::fabs(roundTo(operand, value) - value);
      double error = valueError * s;
      // Where weight and scale are exact, so is how far their product is off.
      if (onOperand && valueError == 0 && scaleError == 0)
        error = std::fabs(roundTo(operand, value * s) - value * s);
      else if (onOperand)
        error += value * scaleError + valueError * scaleError +
                 u * (value + valueError) * (s + scaleError) + eta;
      errors[position(j)] = error * t;
    }
  }

  const QuantizedWeights &w;
  const KernelNumerics *numerics;
  std::vector<double> values;
  std::vector<double> valueErrors;
};
} // namespace

void dequantizeRows(const QuantizedWeights &weights, int64_t rowBegin,
                    int64_t rowEnd, MutableArrayRef<double> out) {
  int64_t width = weights.inputs();
  assert(int64_t(out.size()) >= (rowEnd - rowBegin) * width);
  RowDecoder decoder(weights, nullptr);
  for (int64_t row = rowBegin; row < rowEnd; ++row)
    decoder.decode(row, out.data() + (row - rowBegin) * width, nullptr);
}

std::vector<double> dequantize(const QuantizedWeights &weights) {
  int64_t width = weights.inputs();
  std::vector<double> out(size_t(weights.n * width));
  parallelFor(weights.n, kStrip, 0, [&](int64_t begin, int64_t end) {
    dequantizeRows(weights, begin, end,
                   MutableArrayRef<double>(out).slice(begin * width,
                                                      (end - begin) * width));
  });
  return out;
}

std::vector<float> QuantizedWeights::rowSums() const {
  std::vector<float> sums(static_cast<size_t>(n));
  parallelFor(n, kStrip, 0, [&](int64_t begin, int64_t end) {
    std::vector<double> values(static_cast<size_t>(inputs()));
    for (int64_t row = begin; row < end; ++row) {
      dequantizeRows(*this, row, row + 1, values);
      double sum = 0;
      for (double value : values)
        sum += value;
      sums[row] = float(sum);
    }
  });
  return sums;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

// The inner product is compiled for AVX2 + FMA as well and chosen when loaded.
#if defined(__x86_64__) && defined(__linux__) && defined(__clang__)
#define HUMMING_CLONES __attribute__((target_clones("arch=haswell", "default")))
#else
#define HUMMING_CLONES
#endif

/// out[i * ldo + r] = sum_j x[i * ldx + j] * w[r * k + j] for all i < m and
/// r < rows. K goes in blocks, so that the block of w stays in the L2 cache
/// while x streams by once; the order of additions depends on k alone.
HUMMING_CLONES
static void multiplyStrip(const double *x, int64_t ldx, int64_t m,
                          const double *w, int64_t rows, int64_t k, double *out,
                          int64_t ldo) {
  typedef double Vector __attribute__((vector_size(64), aligned(8)));
  constexpr int64_t width = 8, block = 1024;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t r = 0; r < rows; ++r)
      out[i * ldo + r] = 0;
  for (int64_t begin = 0; begin < k; begin += block) {
    int64_t length = std::min(block, k - begin);
    int64_t whole = length / width * width;
    for (int64_t i = 0; i < m; i += 2) {
      // An odd last row is computed twice, added once.
      const double *x0 = x + i * ldx + begin;
      const double *x1 = i + 1 < m ? x0 + ldx : x0;
      for (int64_t r = 0; r < rows; r += 2) {
        const double *w0 = w + r * k + begin;
        const double *w1 = r + 1 < rows ? w0 + k : w0;
        Vector a00 = {}, a01 = {}, a10 = {}, a11 = {};
        for (int64_t j = 0; j < whole; j += width) {
          Vector vx0 = *reinterpret_cast<const Vector *>(x0 + j);
          Vector vx1 = *reinterpret_cast<const Vector *>(x1 + j);
          Vector vw0 = *reinterpret_cast<const Vector *>(w0 + j);
          Vector vw1 = *reinterpret_cast<const Vector *>(w1 + j);
          a00 += vx0 * vw0;
          a01 += vx0 * vw1;
          a10 += vx1 * vw0;
          a11 += vx1 * vw1;
        }
        double s00 = 0, s01 = 0, s10 = 0, s11 = 0;
        for (int64_t lane = 0; lane < width; ++lane) {
          s00 += a00[lane];
          s01 += a01[lane];
          s10 += a10[lane];
          s11 += a11[lane];
        }
        for (int64_t j = whole; j < length; ++j) {
          s00 += x0[j] * w0[j];
          s01 += x0[j] * w1[j];
          s10 += x1[j] * w0[j];
          s11 += x1[j] * w1[j];
        }
        out[i * ldo + r] += s00;
        if (r + 1 < rows)
          out[i * ldo + r + 1] += s01;
        if (i + 1 < m) {
          out[(i + 1) * ldo + r] += s10;
          if (r + 1 < rows)
            out[(i + 1) * ldo + r + 1] += s11;
        }
      }
    }
  }
}

namespace {
/// |x| and x^2 of all activations, with the norms of each row.
struct ActivationSums {
  std::vector<double> absolute, square; // [m, k], only for exact sums
  std::vector<double> norm, largest;    // [m]
};

/// The four sums of a value's bound.
struct Sums {
  double product = 0;     // sum |x w|
  double productNorm = 0; // sqrt(sum x^2 w^2)
  double error = 0;       // sum |x| d
  double errorNorm = 0;   // sqrt(sum x^2 d^2)
  double scale = 0;       // largest factor after the MMA
};
} // namespace

static void finishValue(ReferenceResult &result, int64_t index,
                        const KernelNumerics &numerics, int64_t k,
                        int64_t groups, const Sums &sums, double bias) {
  double moves =
      numerics.partialK
          ? std::ceil(double(k) / std::min(numerics.partialK, 64)) + 1
          : 0;
  double chain = std::max<double>(
      1, numerics.partialK ? std::min<double>(double(k), numerics.partialK)
                           : double(k));
  double steps = std::ceil(chain / numerics.mmaK) + double(groups);
  double worstSum = 0, probableSum = 0;
  if (!numerics.exactAccumulation) {
    double cut = std::ldexp(1.0, -int(numerics.accumulator.mantissaBits));
    worstSum = steps * (numerics.mmaK + 2) * cut;
    // The norms of C chains add up to at most sqrt(C) times that of all.
    double spread = std::sqrt(std::max(1.0, std::ceil(double(k) / chain)));
    probableSum = std::min(
        worstSum * spread,
        (2 * steps * spread + kHoeffding * std::sqrt(double(k))) * cut);
  }
  const double u32 = 0x1p-24;
  double joins =
      (double(groups) + 2 * moves + numerics.warpsK + numerics.splitK) * u32;
  double quantum = 0;
  if (numerics.accumulator.isF16())
    quantum = (std::ceil(double(k) / numerics.mmaK) + moves) *
              (numerics.mmaK + 2) * 0x1p-25 * sums.scale;
  bool isFloat = numerics.output.isFloat();
  double u = isFloat ? unitRoundoff(numerics.output) : 0;
  double eta = isFloat ? halfQuantum(numerics.output) : 0.5;
  double value = result.values[index];
  auto total = [&](double operand, double magnitude, double perSum) {
    double error = operand + quantum +
                   (perSum + joins) * (magnitude + operand) +
                   4 * u32 * (magnitude + operand + std::fabs(bias));
    return error + u * (std::fabs(value) + error) + eta;
  };
  double worst = total(sums.error, sums.product, worstSum);
  double operand = std::min(sums.error, kHoeffding * sums.errorNorm);
  double magnitude = std::min(sums.product, kHoeffding * sums.productNorm);
  result.worst[index] = worst;
  result.probable[index] =
      std::min(worst, total(operand, magnitude, probableSum));
}

Expected<ReferenceResult> referenceMatmul(ArrayRef<double> x, int64_t m,
                                          int64_t ldx,
                                          const QuantizedWeights &weights,
                                          const ReferenceOptions &options) {
  if (Error error = weights.verify())
    return std::move(error);
  int64_t n = weights.n, k = weights.inputs();
  if (!options.offsets.empty() && int64_t(options.offsets.size()) != m)
    return createStringError(
        formatv("expected {0} offsets, got {1}", m, options.offsets.size()));
  if (!options.sumScales.empty() && int64_t(options.sumScales.size()) != m)
    return createStringError(formatv("expected {0} scales of sums, got {1}", m,
                                     options.sumScales.size()));
  if (m < 0 || ldx < k || (m > 0 && uint64_t((m - 1) * ldx + k) > x.size()))
    return createStringError(
        formatv("expected activations of {0} rows of {1} with a row stride of "
                "at least {1}, got {2} values with stride {3}",
                m, k, x.size(), ldx));
  for (int64_t feature : options.features)
    if (feature < 0 || feature >= n)
      return createStringError(formatv(
          "expected output features of 0 to {0}, got {1}", n - 1, feature));
  int64_t features =
      options.features.empty() ? n : int64_t(options.features.size());
  ReferenceResult result;
  result.m = m;
  result.features = features;
  result.values.resize(size_t(m * features));
  if (options.bounds) {
    result.worst.resize(result.values.size());
    result.probable.resize(result.values.size());
  }
  bool exact = options.bounds && double(m) * double(features) * double(k) <=
                                     double(options.exactSums);

  ActivationSums xs;
  if (options.bounds) {
    xs.norm.resize(size_t(m));
    xs.largest.resize(size_t(m));
    if (exact) {
      xs.absolute.resize(size_t(m * k));
      xs.square.resize(size_t(m * k));
    }
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0, largest = 0;
      double offset =
          options.offsets.empty() ? 0 : 2 * std::fabs(options.offsets[i]);
      for (int64_t j = 0; j < k; ++j) {
        double value = x[i * ldx + j];
        sum += value * value;
        largest = std::max(largest, std::fabs(value));
        if (exact) {
          xs.absolute[i * k + j] = std::fabs(value) + offset;
          xs.square[i * k + j] = value * value;
        }
      }
      xs.norm[i] = std::sqrt(sum) + offset * std::sqrt(double(k));
      xs.largest[i] = largest;
    }
  }

  RowDecoder decoder(weights, options.bounds ? &options.numerics : nullptr);
  int64_t groups = options.numerics.scale == ScaleSite::Accumulator
                       ? weights.type.scaleColumns(weights.k)
                       : 0;
  parallelFor(
      features, kStrip, options.threads, [&](int64_t begin, int64_t end) {
        int64_t rows = end - begin;
        std::vector<double> w(size_t(rows * k)), d;
        if (options.bounds)
          d.resize(w.size());
        auto rowOf = [&](int64_t r) {
          return options.features.empty() ? begin + r
                                          : options.features[begin + r];
        };
        for (int64_t r = 0; r < rows; ++r)
          decoder.decode(rowOf(r), w.data() + r * k,
                         options.bounds ? d.data() + r * k : nullptr);
        multiplyStrip(x.data(), ldx, m, w.data(), rows, k,
                      result.values.data() + begin, features);

        std::vector<double> sums[4], wNorm(rows), dNorm(rows);
        std::vector<double> factors(rows);
        for (int64_t r = 0; r < rows; ++r)
          factors[r] = decoder.largestFactor(rowOf(r));
        if (options.bounds) {
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t j = 0; j < k; ++j) {
              wNorm[r] += w[r * k + j] * w[r * k + j];
              dNorm[r] += d[r * k + j] * d[r * k + j];
            }
          if (exact) {
            for (std::vector<double> &sum : sums)
              sum.resize(size_t(m * rows));
            for (double &value : w)
              value = std::fabs(value);
            multiplyStrip(xs.absolute.data(), k, m, w.data(), rows, k,
                          sums[0].data(), rows);
            multiplyStrip(xs.absolute.data(), k, m, d.data(), rows, k,
                          sums[2].data(), rows);
            for (size_t i = 0; i < w.size(); ++i) {
              w[i] *= w[i];
              d[i] *= d[i];
            }
            multiplyStrip(xs.square.data(), k, m, w.data(), rows, k,
                          sums[1].data(), rows);
            multiplyStrip(xs.square.data(), k, m, d.data(), rows, k,
                          sums[3].data(), rows);
          }
        }
        for (int64_t i = 0; i < m; ++i)
          for (int64_t r = 0; r < rows; ++r) {
            int64_t index = i * features + begin + r;
            double bias = weights.bias.empty() ? 0 : weights.bias[rowOf(r)];
            result.values[index] += bias;
            if (!options.bounds)
              continue;
            Sums s;
            if (exact) {
              s.product = sums[0][i * rows + r];
              s.productNorm = std::sqrt(sums[1][i * rows + r]);
              s.error = sums[2][i * rows + r];
              s.errorNorm = std::sqrt(sums[3][i * rows + r]);
            } else { // Cauchy-Schwarz, and |x| <= max |x|
              s.product = xs.norm[i] * std::sqrt(wNorm[r]);
              s.productNorm = xs.largest[i] * std::sqrt(wNorm[r]);
              s.error = xs.norm[i] * std::sqrt(dNorm[r]);
              s.errorNorm = xs.largest[i] * std::sqrt(dNorm[r]);
            }
            if (!options.offsets.empty() && options.offsets[i] != 0) {
              s.productNorm = s.product;
              s.errorNorm = s.error;
            }
            s.scale = factors[r] *
                      (options.sumScales.empty() ? 1 : options.sumScales[i]);
            finishValue(result, index, options.numerics, k, groups, s, bias);
          }
      });
  return result;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

Comparison compareWithReference(const ReferenceResult &reference,
                                ArrayRef<double> got, int64_t ldc,
                                NumberFormat output, bool probable) {
  Comparison result;
  ArrayRef<double> bounds(probable ? reference.probable : reference.worst);
  assert(bounds.size() == reference.values.size() &&
         "the reference was computed without bounds");
  assert(reference.m == 0 ||
         int64_t(got.size()) >= (reference.m - 1) * ldc + reference.features);
  double errorSum = 0, valueSum = 0;
  for (int64_t i = 0; i < reference.m; ++i)
    for (int64_t f = 0; f < reference.features; ++f) {
      int64_t index = i * reference.features + f;
      double expected = reference.values[index], value = got[i * ldc + f];
      double bound = bounds[index];
      double ratio;
      if (std::isnan(expected) || std::isinf(expected)) {
        bool same =
            std::isnan(expected) ? std::isnan(value) : value == expected;
        ratio = same ? 0 : std::numeric_limits<double>::infinity();
      } else if (std::isinf(value) &&
                 std::fabs(expected) + bound > output.maxFinite() &&
                 std::signbit(value) == std::signbit(expected)) {
        ratio = 0; // overflow of the output type is what it should do
      } else if (!std::isfinite(value)) {
        ratio = std::numeric_limits<double>::infinity();
      } else {
        double error = std::fabs(value - expected);
        result.maxError = std::max(result.maxError, error);
        errorSum += error * error;
        valueSum += expected * expected;
        ratio = error == 0 ? 0 : error / bound;
      }
      bool bad = !(ratio <= 1);
      result.mismatches += bad;
      if (result.row < 0 || ratio > result.worstRatio) {
        result.worstRatio = ratio;
        result.row = i;
        result.feature = f;
        result.got = value;
        result.expected = expected;
        result.bound = bound;
      }
    }
  result.ok = result.mismatches == 0;
  if (errorSum > 0)
    result.relativeFrobenius = valueSum > 0
                                   ? std::sqrt(errorSum / valueSum)
                                   : std::numeric_limits<double>::infinity();
  return result;
}

std::string Comparison::str() const {
  if (ok)
    return formatv("ok, max error {0:e}, relative {1:e}, {2:f3} of the bound",
                   maxError, relativeFrobenius, worstRatio)
        .str();
  return formatv("{0} values outside their bound; the worst at row {1}, "
                 "feature {2}: expected {3} within {4:e}, got {5}",
                 mismatches, row, feature, expected, bound, got)
      .str();
}

} // namespace humming
