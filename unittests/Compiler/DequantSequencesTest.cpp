//===- DequantSequencesTest.cpp - Every code in every position ------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the emitted sequences in a small evaluator of the ops that they consist
// of: all codes at all places of a lane's fragment, against the number format.
// Words come from packWeights, so the sequences are held against the packed
// layout too.
//
//===----------------------------------------------------------------------===//

#include "DequantSequences.h"
#include "Humming/Quant/Float16.h"
#include "Humming/Quant/Packing.h"
#include "Humming/Quant/QuantizedWeights.h"
#include "Humming/Target/Dequant.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/TypeSwitch.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace humming;

namespace {

using Bits = SmallVector<uint32_t, 2>;

double decodeElement(Type type, uint32_t bits) {
  if (type.isF16())
    return f16ToFloat(uint16_t(bits));
  if (type.isBF16())
    return bf16ToFloat(uint16_t(bits));
  return floatFromBits(bits);
}

/// Rounds to nearest even, overflow to infinity, as the instructions do.
uint32_t encodeElement(Type type, double value) {
  if (type.isF16())
    return doubleToF16(value);
  if (type.isBF16())
    return doubleToBF16(value);
  float narrow = float(value);
  uint32_t bits;
  memcpy(&bits, &narrow, 4);
  return bits;
}

/// Evaluates straight-line code.
class Evaluator {
public:
  void set(Value v, Bits bits) { values[v] = std::move(bits); }
  const Bits &get(Value v) { return values[v]; }
  void run(Block &block) {
    for (Operation &op : block)
      evaluate(&op);
  }

private:
  uint32_t word(Value v) { return values[v][0]; }

  template <typename Fn>
  void floats(Operation *op, Fn fn) {
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    Bits result;
    for (size_t i = 0; i < get(op->getOperand(0)).size(); ++i) {
      SmallVector<double, 3> in;
      for (Value v : op->getOperands())
        in.push_back(
            decodeElement(getElementTypeOrSelf(v.getType()), values[v][i]));
      result.push_back(encodeElement(element, fn(in)));
    }
    set(op->getResult(0), result);
  }

  void evaluate(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](LLVM::ConstantOp c) { constant(c); })
        .Case([&](LLVM::PoisonOp p) { set(p.getRes(), {0, 0}); })
        .Case([&](LLVM::AndOp o) {
          set(o.getRes(), {word(o.getLhs()) & word(o.getRhs())});
        })
        .Case([&](LLVM::OrOp o) {
          set(o.getRes(), {word(o.getLhs()) | word(o.getRhs())});
        })
        .Case([&](LLVM::XOrOp o) {
          set(o.getRes(), {word(o.getLhs()) ^ word(o.getRhs())});
        })
        .Case([&](LLVM::LShrOp o) {
          set(o.getRes(), {word(o.getLhs()) >> word(o.getRhs())});
        })
        .Case([&](LLVM::ShlOp o) {
          set(o.getRes(), {word(o.getLhs()) << word(o.getRhs())});
        })
        .Case([&](LLVM::AddOp o) {
          set(o.getRes(), {word(o.getLhs()) + word(o.getRhs())});
        })
        .Case([&](LLVM::SubOp o) {
          set(o.getRes(), {word(o.getLhs()) - word(o.getRhs())});
        })
        .Case([&](LLVM::TruncOp o) {
          set(o.getRes(), {word(o.getArg()) & 0xffff});
        })
        .Case([&](LLVM::UMaxOp o) {
          Bits result;
          for (auto [x, y] : llvm::zip(get(o.getA()), get(o.getB())))
            result.push_back(std::max(x, y));
          set(o.getRes(), result);
        })
        .Case([&](LLVM::BitcastOp o) { bitcast(o); })
        .Case([&](LLVM::FMAOp o) {
          floats(o,
                 [](ArrayRef<double> v) { return std::fma(v[0], v[1], v[2]); });
        })
        .Case([&](LLVM::FAddOp o) {
          floats(o, [](ArrayRef<double> v) { return v[0] + v[1]; });
        })
        .Case([&](LLVM::FMulOp o) {
          floats(o, [](ArrayRef<double> v) { return v[0] * v[1]; });
        })
        .Case([&](LLVM::FNegOp o) {
          floats(o, [](ArrayRef<double> v) { return -v[0]; });
        })
        .Case<LLVM::FPExtOp, LLVM::FPTruncOp>(
            [&](auto o) { floats(o, [](ArrayRef<double> v) { return v[0]; }); })
        .Case([&](LLVM::ExtractElementOp o) {
          set(o.getRes(), {get(o.getVector())[word(o.getPosition())]});
        })
        .Case([&](LLVM::InsertElementOp o) {
          Bits v = get(o.getVector());
          v[word(o.getPosition())] = word(o.getValue());
          set(o.getRes(), v);
        })
        .Case([&](NVVM::PermuteOp o) { permute(o); })
        .Case([&](LLVM::InlineAsmOp o) {
          // cvt.rn.f16x2.e4m3x2
          uint32_t pair = word(o.getOperands()[0]), result = 0;
          for (int i = 0; i < 2; ++i)
            result |=
                uint32_t(doubleToF16(NumberFormat::smallFloat(4, 3).decode(
                    pair >> (8 * i) & 0xff)))
                << (16 * i);
          set(o.getRes(), {result});
        })
        .Default(
            [](Operation *o) { FAIL() << o->getName().getStringRef().str(); });
  }

  void constant(LLVM::ConstantOp c) {
    if (auto value = dyn_cast<IntegerAttr>(c.getValue())) {
      set(c.getRes(), {uint32_t(value.getValue().getZExtValue())});
      return;
    }
    Bits bits;
    auto elements = cast<DenseElementsAttr>(c.getValue());
    if (elements.getElementType().isInteger()) {
      for (APInt v : elements.getValues<APInt>())
        bits.push_back(uint32_t(v.getZExtValue()));
    } else {
      for (APFloat f : elements.getValues<APFloat>())
        bits.push_back(uint32_t(f.bitcastToAPInt().getZExtValue()));
    }
    set(c.getRes(), bits);
  }

  void bitcast(LLVM::BitcastOp o) {
    Bits in = get(o.getArg());
    bool wasPair = isa<VectorType>(o.getArg().getType());
    bool isPair = isa<VectorType>(o.getRes().getType());
    if (wasPair == isPair)
      set(o.getRes(), in);
    else if (isPair)
      set(o.getRes(), {in[0] & 0xffff, in[0] >> 16});
    else
      set(o.getRes(), {in[0] | in[1] << 16});
  }

  void permute(NVVM::PermuteOp o) {
    uint64_t pool = word(o.getLo()) | uint64_t(word(o.getHi())) << 32;
    uint32_t selector = word(o.getSelector()), result = 0;
    for (int i = 0; i < 4; ++i) {
      uint32_t s = selector >> (4 * i) & 0xf;
      uint32_t byte = uint32_t(pool >> (8 * (s & 7)) & 0xff);
      if (s & 8)
        byte = byte & 0x80 ? 0xff : 0;
      result |= byte << (8 * i);
    }
    set(o.getRes(), {result});
  }

  llvm::DenseMap<Value, Bits> values;
};

bool isAllOnes(Value v) {
  auto constant = v.getDefiningOp<LLVM::ConstantOp>();
  auto value =
      constant ? dyn_cast<IntegerAttr>(constant.getValue()) : IntegerAttr();
  return value && value.getValue().isAllOnes();
}

/// Instructions of a block; logic of at most three inputs is one lop3, whose
/// table turns inputs and results over at no cost.
double countInstructions(Block &block) {
  llvm::DenseMap<Operation *, SmallVector<Value, 3>> inputs;
  double count = 0;
  for (Operation &op : block) {
    if (isa<LLVM::ConstantOp, LLVM::PoisonOp, LLVM::BitcastOp, LLVM::TruncOp,
            LLVM::ExtractElementOp, LLVM::InsertElementOp>(op))
      continue;
    ++count;
    if (!isa<LLVM::AndOp, LLVM::OrOp, LLVM::XOrOp>(op))
      continue;
    SmallVector<Value, 3> leaves;
    auto add = [](SmallVectorImpl<Value> &set, Value v) {
      if (!llvm::is_contained(set, v))
        set.push_back(v);
    };
    for (Value operand : op.getOperands())
      if (!isAllOnes(operand))
        add(leaves, operand);
    for (Value operand : op.getOperands()) {
      auto found = inputs.find(operand.getDefiningOp());
      if (found == inputs.end() || !operand.hasOneUse())
        continue;
      SmallVector<Value, 3> merged;
      for (Value leaf : leaves)
        if (leaf != operand)
          add(merged, leaf);
      for (Value leaf : found->second)
        add(merged, leaf);
      if (merged.size() > 3)
        continue;
      leaves = merged;
      --count;
    }
    inputs[&op] = leaves;
  }
  return count;
}

/// The sequence of one spec, over all registers of a lane, as a function of
/// words, scales and zero points.
class Sequence {
public:
  explicit Sequence(const DequantSpec &spec) : spec(spec) {
    context.loadDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
    OpBuilder b(&context);
    Location loc = b.getUnknownLoc();
    for (int i = 0; i < spec.weight.bits + 2; ++i)
      block.addArgument(b.getI32Type(), loc);
    b.setInsertionPointToStart(&block);
    std::unique_ptr<DequantSequence> sequence =
        DequantSequence::create(b, loc, spec);
    exists = bool(sequence);
    if (!exists)
      return;
    SmallVector<Value> words(block.getArguments().drop_back(2));
    sequence->beginUnit(words);
    sequence->beginGroup(spec.hasScales ? scales() : Value(),
                         spec.zeroPoint == ZeroPointKind::None ? Value()
                                                               : zeroPoints());
    for (int i = 0; i < spec.operand.bits; ++i)
      registers.push_back(sequence->buildRegister(i));
  }

  Value scales() { return block.getArguments().drop_back().back(); }
  Value zeroPoints() { return block.getArguments().back(); }

  /// The fragment's values, by register and element, for codes [16 rows, 64].
  std::vector<uint32_t> run(ArrayRef<uint32_t> words, uint32_t scaleWord,
                            uint32_t zeroWord) {
    Evaluator evaluator;
    for (auto [argument, w] :
         llvm::zip(block.getArguments().drop_back(2), words))
      evaluator.set(argument, {w});
    evaluator.set(scales(), {scaleWord});
    evaluator.set(zeroPoints(), {zeroWord});
    evaluator.run(block);
    std::vector<uint32_t> lanes;
    for (Value r : registers)
      for (int bit = 0; bit < 32; bit += spec.operand.bits)
        lanes.push_back(evaluator.get(r)[0] >> bit &
                        ((1u << spec.operand.bits) - 1));
    return lanes;
  }

  DequantSpec spec;
  MLIRContext context;
  Block block;
  SmallVector<Value> registers;
  bool exists;
};

constexpr unsigned kLane = 13; // g = 3, t = 1

/// A lane's words of unit 0 for codes [64, 64].
std::vector<uint32_t> laneWords(ArrayRef<uint8_t> codes, unsigned a,
                                unsigned bits) {
  std::vector<uint8_t> packed(packedWeightBytes(64, 64, a, bits));
  llvm::cantFail(packWeights(codes, 64, 64, 64, a, bits, packed, 1));
  std::vector<uint32_t> words;
  unsigned offset = 0;
  for (const PackedPlane &plane : packedPlanes(bits)) {
    for (unsigned w = 0; w < plane.width; ++w) {
      unsigned at = plane.width == 8
                        ? offset + (w / 4) * 512 + kLane * 16 + (w % 4) * 4
                        : offset + kLane * 4 * plane.width + 4 * w;
      uint32_t value;
      memcpy(&value, packed.data() + at, 4);
      words.push_back(value);
    }
    offset += 128 * plane.width;
  }
  return words;
}

/// Row and column of element i of register R (the layout's formula).
std::pair<int, int> placeOf(int a, int r, int i) {
  int step = r / 4, t = kLane % 4, g = kLane / 4;
  return {g + 8 * (r & 1),
          256 / a * step + 128 / a * ((r % 4) >> 1) + 32 / a * t + i};
}

QuantType typeOf(const DequantSpec &spec) {
  QuantType type;
  type.weight = spec.weight;
  type.scale = spec.scale;
  type.zeroPoint = spec.zeroPoint;
  type.table = spec.table;
  return type;
}

/// Every code at every place; zero points of rows g and g + 8.
void checkAll(Sequence &sequence, uint32_t zeroLow = 0, uint32_t zeroHigh = 0,
              uint32_t scaleWord = 0) {
  const DequantSpec &spec = sequence.spec;
  int a = spec.operand.bits, bits = spec.weight.bits, count = 1 << bits;
  std::vector<double> values = codeValues(typeOf(spec));
  bool byteZeros = spec.zeroPoint == ZeroPointKind::Integer;
  uint32_t zeroWord = zeroLow | zeroHigh << (byteZeros ? 8 : 16);
  double factor = std::ldexp(1.0, dequantExponent(typeOf(spec), spec.operand));
  auto roundTo = [&](double v) {
    return spec.operand.isF16() ? double(f16ToFloat(doubleToF16(v)))
                                : double(bf16ToFloat(doubleToBF16(v)));
  };
  for (int c = 0; c < count; ++c) {
    std::vector<uint8_t> codes(64 * 64);
    Random random(c + 1);
    for (int row = 0; row < 64; ++row)
      for (int k = 0; k < 64; ++k)
        codes[row * 64 + k] =
            uint8_t((c + 5 * row + 11 * k + (c & 1 ? 3 * k * row : 0)) % count);
    std::vector<uint32_t> got =
        sequence.run(laneWords(codes, a, bits), scaleWord, zeroWord);
    for (int r = 0; r < a; ++r)
      for (int i = 0; i < 32 / a; ++i) {
        auto [row, k] = placeOf(a, r, i);
        uint8_t code = codes[row * 64 + k];
        double expected = values[code];
        uint32_t z = r & 1 ? zeroHigh : zeroLow;
        if (byteZeros)
          expected -= z;
        else if (spec.zeroPoint == ZeroPointKind::Float)
          expected = roundTo(expected - spec.scale.decode(z));
        if (spec.table)
          expected = roundTo(expected);
        if (spec.hasScales)
          expected = roundTo(
              expected *
              spec.scale.decode(scaleWord >> (r & 1 ? spec.scale.bits : 0) &
                                ((1u << spec.scale.bits) - 1)));
        double value = spec.operand.decode(got[r * (32 / a) + i]) * factor;
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(value))
              << spec.weight.str() << " to " << spec.operand.str() << " code "
              << int(code);
          continue;
        }
        ASSERT_EQ(value, expected)
            << spec.weight.str() << " to " << spec.operand.str() << " code "
            << int(code) << " register " << r << " element " << i << " zero "
            << z;
      }
  }
}

std::vector<NumberFormat> allWeights() {
  std::vector<NumberFormat> formats;
  for (unsigned b = 1; b <= 8; ++b)
    formats.push_back(NumberFormat::unsignedInt(b));
  for (unsigned b = 2; b <= 8; ++b)
    formats.push_back(NumberFormat::signedInt(b));
  for (unsigned e = 1; e <= 7; ++e)
    for (unsigned m = 0; 1 + e + m <= 8; ++m)
      formats.push_back(NumberFormat::smallFloat(e, m));
  return formats;
}

const NumberFormat operands[] = {NumberFormat::f16(),
                                 NumberFormat::bf16(),
                                 NumberFormat::smallFloat(4, 3),
                                 NumberFormat::smallFloat(5, 2),
                                 NumberFormat::signedInt(8),
                                 NumberFormat::signedInt(4)};

bool legal(const DequantSpec &spec) {
  llvm::Error error = checkDequant(typeOf(spec), spec.operand);
  bool ok = !error;
  llvm::consumeError(std::move(error));
  // The packed layout holds codes at most as wide as the operand.
  return ok && spec.weight.bits <= spec.operand.bits;
}

DequantSpec makeSpec(NumberFormat weight, NumberFormat operand) {
  DequantSpec spec;
  spec.weight = weight;
  spec.operand = operand;
  spec.scale = operand.bits == 16 ? operand : NumberFormat::f16();
  return spec;
}

TEST(DequantSequences, EveryCodeOfEveryPair) {
  int pairs = 0;
  for (NumberFormat operand : operands)
    for (NumberFormat weight : allWeights())
      for (bool native : {false, true}) {
        DequantSpec spec = makeSpec(weight, operand);
        spec.nativeConvert = native;
        if (!legal(spec))
          continue;
        Sequence sequence(spec);
        ASSERT_TRUE(sequence.exists) << weight.str() << " " << operand.str();
        checkAll(sequence);
        ++pairs;
      }
  // 15 integers and 24 (f16: exponents of 1 to 4, and e5m2) or 28 floats.
  EXPECT_GE(pairs, 2 * (15 + 23 + 15 + 28));
}

TEST(DequantSequences, IntegerZeroPoints) {
  for (NumberFormat operand : operands)
    for (unsigned b = 1; b <= 8; ++b) {
      DequantSpec spec = makeSpec(NumberFormat::unsignedInt(b), operand);
      spec.zeroPoint = ZeroPointKind::Integer;
      if (!legal(spec))
        continue;
      Sequence sequence(spec);
      ASSERT_TRUE(sequence.exists);
      uint32_t most = (1u << b) - 1;
      for (uint32_t z = 0; z <= most; z += b < 6 ? 1 : 5)
        checkAll(sequence, z, most - z);
      checkAll(sequence, most, 0);
    }
}

TEST(DequantSequences, FloatZeroPointsAndScales) {
  for (NumberFormat operand : {NumberFormat::f16(), NumberFormat::bf16()})
    for (NumberFormat scale : {NumberFormat::f16(), NumberFormat::bf16()})
      for (unsigned b = 1; b <= 8; ++b) {
        DequantSpec spec = makeSpec(NumberFormat::unsignedInt(b), operand);
        spec.scale = scale;
        spec.zeroPoint = ZeroPointKind::Float;
        spec.hasScales = scale == operand;
        Sequence sequence(spec);
        ASSERT_TRUE(sequence.exists);
        uint32_t scales = scale.encode(0.37) | scale.encode(-1.75) << 16;
        checkAll(sequence, scale.encode(1.3), scale.encode(-2.6), scales);
        checkAll(sequence, scale.encode(0), scale.encode(7.03), scales);
      }
}

TEST(DequantSequences, ScalesOnTheOperand) {
  for (NumberFormat operand : {NumberFormat::f16(), NumberFormat::bf16()})
    for (NumberFormat weight : allWeights()) {
      DequantSpec spec = makeSpec(weight, operand);
      spec.hasScales = true;
      if (!legal(spec))
        continue;
      Sequence sequence(spec);
      checkAll(sequence, 0, 0,
               operand.encode(0.1) | operand.encode(-0x1p-9) << 16);
      // A scale of zero gives zero, and NaN stays NaN.
      checkAll(sequence, 0, 0, operand.encode(3.3) << 16);
    }
}

/// Every scale of 8 bits; products are exact (scalesFitOperand), up to bf16's
/// own infinity.
TEST(DequantSequences, ConvertedScalesOnTheOperand) {
  int pairs = 0;
  for (NumberFormat operand : {NumberFormat::f16(), NumberFormat::bf16()})
    for (NumberFormat scale :
         {NumberFormat::e8m0(), NumberFormat::smallFloat(4, 3)})
      for (NumberFormat weight :
           {NumberFormat::smallFloat(2, 1), NumberFormat::smallFloat(3, 2),
            NumberFormat::smallFloat(4, 3), NumberFormat::unsignedInt(4),
            NumberFormat::unsignedInt(8)}) {
        DequantSpec spec = makeSpec(weight, operand);
        spec.scale = scale;
        spec.hasScales = true;
        spec.nativeConvert = true;
        if (!legal(spec) || !scalesFitOperand(typeOf(spec), operand, true))
          continue;
        ++pairs;
        Sequence sequence(spec);
        ASSERT_TRUE(sequence.exists);
        for (uint32_t byte = 0; byte < 256; byte += weight.bits < 6 ? 2 : 14)
          checkAll(sequence, 0, 0, byte | (byte + 1) << 8);
      }
  // bf16: e8m0 with all, e4m3 with all but u8, whose products have 11 bits;
  // f16: e4m3 with all but e4m3, whose products leave its range.
  EXPECT_EQ(pairs, 5 + 4 + 4);
}

TEST(DequantSequences, Tables) {
  CodeTable odd;
  for (int i = 0; i < 16; ++i)
    odd.values[i] = float(std::pow(-1.3, i) - 2);
  for (NumberFormat operand : {NumberFormat::f16(), NumberFormat::bf16()})
    for (const CodeTable &table : {CodeTable::nf4(), CodeTable::fp4(), odd})
      for (unsigned b = 1; b <= 4; ++b) {
        DequantSpec spec = makeSpec(NumberFormat::unsignedInt(b), operand);
        spec.table = table;
        Sequence sequence(spec);
        ASSERT_TRUE(sequence.exists);
        checkAll(sequence);
      }
}

TEST(DequantSequences, CostTable) {
  for (NumberFormat operand : operands)
    for (NumberFormat weight : allWeights())
      for (ZeroPointKind zero :
           {ZeroPointKind::None, ZeroPointKind::Integer, ZeroPointKind::Float})
        for (int variant = 0; variant < 3; ++variant) {
          DequantSpec spec = makeSpec(weight, operand);
          spec.zeroPoint = zero;
          spec.nativeConvert = variant == 1;
          if (zero != ZeroPointKind::None &&
              weight.kind != NumberFormat::Kind::Unsigned)
            continue;
          if (variant == 2) {
            if (weight.kind != NumberFormat::Kind::Unsigned ||
                weight.bits > 4 || zero != ZeroPointKind::None)
              continue;
            spec.table = CodeTable::nf4();
          }
          if (!legal(spec))
            continue;
          Sequence sequence(spec);
          DequantCost cost =
              dequantCost(typeOf(spec), operand, spec.nativeConvert);
          EXPECT_NEAR(countInstructions(sequence.block),
                      4 * cost.perWeights8 + cost.perGroup, 0.01)
              << weight.str() << " to " << operand.str() << " zero "
              << int(zero) << " variant " << variant;
        }
}

TEST(DequantSequences, WidelyUsedCounts) {
  auto count = [](StringRef weight, NumberFormat operand, bool native = false) {
    QuantType type;
    type.weight = llvm::cantFail(NumberFormat::parse(weight));
    return dequantCost(type, operand, native).perWeights8;
  };
  NumberFormat f16 = NumberFormat::f16(), bf16 = NumberFormat::bf16();
  EXPECT_EQ(count("u4", f16), 9);
  EXPECT_EQ(count("u4", bf16), 11);
  EXPECT_EQ(count("u8", f16), 8);
  EXPECT_EQ(count("e5m2", f16), 4);
  EXPECT_EQ(count("e4m3", f16, true), 8);
  // Odd widths against the next even one, with the multiplication by the scale
  // that follows (4 more for 8 weights): at most 1.5 times. Seven bits to f16
  // are the exception, since eight need two instructions a register and no
  // logic: docs/Formats.md has the count that no sequence can go below.
  for (NumberFormat operand : {f16, bf16})
    for (int b : {1, 3, 5, 7})
      EXPECT_LE(count("u" + std::to_string(b), operand) + 4,
                (b == 7 && operand == f16 ? 1.86 : 1.5) *
                    (count("u" + std::to_string(b + 1), operand) + 4))
          << b << " to " << operand.str();
  EXPECT_EQ(count("u4", NumberFormat::signedInt(8)), 3);
  EXPECT_EQ(count("u3", NumberFormat::signedInt(8)), 6.25);
  EXPECT_EQ(count("u5", NumberFormat::signedInt(8)), 7);
  EXPECT_EQ(count("u7", NumberFormat::signedInt(8)), 8);
  EXPECT_EQ(count("u3", NumberFormat::signedInt(4)), 3.25);
  EXPECT_EQ(count("u3", f16), 15.25);
  EXPECT_EQ(count("u7", f16), 18.25);
  EXPECT_EQ(count("u7", bf16), 18.25);
  EXPECT_EQ(count("e2m1", NumberFormat::signedInt(8)), 15);
}

} // namespace
