//===- ProblemFlags.cpp - The problem on the command line -----------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProblemFlags.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace humming {

/// N, K and M are 32-bit arguments of the kernel.
static constexpr int64_t kMaxSize = (int64_t(1) << 31) - 1;

static Error flagError(StringRef flag, const Twine &message) {
  return createStringError(inconvertibleErrorCode(),
                           "--" + flag + ": " + message);
}

/// Puts the flag's name before another library's message.
static Error atFlag(StringRef flag, Error error) {
  return flagError(flag, toString(std::move(error)));
}

Expected<int64_t> parseIntegerFlag(StringRef flag, StringRef text,
                                   int64_t least, int64_t most) {
  int64_t value;
  if (text.getAsInteger(10, value) || value < least || value > most)
    return flagError(flag, "expected an integer from " + Twine(least) + " to " +
                               Twine(most) + ", got '" + text + "'");
  return value;
}

Expected<SmallVector<int64_t>> parseIntegerListFlag(StringRef flag,
                                                    StringRef text,
                                                    int64_t least,
                                                    int64_t most) {
  SmallVector<int64_t> values;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    Expected<int64_t> value = parseIntegerFlag(flag, part.trim(), least, most);
    if (!value)
      return value.takeError();
    values.push_back(*value);
  }
  return values;
}

ProblemFlags::ProblemFlags()
    : category("Problem",
               "What is computed: C[M,N] = X[M,K] * dequant(W[N,K])^T + bias"),
      chip("chip", cl::desc("Target: sm_75, sm_80, ..."), cl::init("sm_90"),
           cl::value_desc("sm_XX"), cl::cat(category)),
      operation("op",
                cl::desc("What the kernel does: matmul, quantize (16-bit "
                         "activations of --input to codes of --a), pack (codes "
                         "of a byte to the packed layout of --w and --a) or "
                         "gather (activations in another column order)"),
                cl::init("matmul"), cl::value_desc("name"), cl::cat(category)),
      activation("a", cl::desc("Format of the activations"), cl::init("bf16"),
                 cl::value_desc("format"), cl::cat(category)),
      activationScale(
          "a-scale",
          cl::desc("Scales of the activations: none, tensor or token; token by "
                   "default for 8- and 4-bit activations"),
          cl::value_desc("kind"), cl::cat(category)),
      activationGroup(
          "a-group",
          cl::desc("Activations of a token that share a scale: G along K (a "
                   "power of two), 0 = one scale per token, -1 = one per "
                   "tensor"),
          cl::init("0"), cl::value_desc("G"), cl::cat(category)),
      activationScaleFormat(
          "a-scale-format",
          cl::desc("Format of the activation scales: f32, or e8m0 with groups"),
          cl::init("f32"), cl::value_desc("format"), cl::cat(category)),
      activationZeroPoint(
          "a-zero-point",
          cl::desc("Zero points of s8 activations: none or int (per token or "
                   "tensor)"),
          cl::init("none"), cl::value_desc("kind"), cl::cat(category)),
      gate("gate",
           cl::desc("With --op quantize: none, or quantize f(x[k]) * x[K + k] "
                    "with f silu, gelu or gelu_tanh"),
           cl::init("none"), cl::value_desc("kind"), cl::cat(category)),
      input("input", cl::desc("With --op quantize: format of the input"),
            cl::init("bf16"), cl::value_desc("format"), cl::cat(category)),
      accumulate("accumulate",
                 cl::desc("Format of the MMA's sums: f32, or f16 with f16 "
                          "activations"),
                 cl::init("f32"), cl::value_desc("format"), cl::cat(category)),
      weight("w", cl::desc("Format of the weights: u1..u8, s2..s8, eXmY"),
             cl::init("u4"), cl::value_desc("format"), cl::cat(category)),
      layout("layout",
             cl::desc("How the weights lie in memory: packed, plain (row-major "
                      "8-bit weights of the activations' format) or auto: "
                      "plain where it can be"),
             cl::init("auto"), cl::value_desc("layout"), cl::cat(category)),
      table("table",
            cl::desc("Values that the codes stand for: nf4, fp4 or 16 numbers"),
            cl::value_desc("table"), cl::cat(category)),
      scale("scale", cl::desc("Format of the weight scales"), cl::init("bf16"),
            cl::value_desc("format"), cl::cat(category)),
      group("group",
            cl::desc("Weights that share a scale: G along K, 0 = one scale per "
                     "output channel, -1 = one per tensor, NxK = blocks"),
            cl::init("128"), cl::value_desc("G"), cl::cat(category)),
      phase("phase",
            cl::desc("Columns of the first group that belong to the shard "
                     "before this one"),
            cl::init("0"), cl::value_desc("columns"), cl::cat(category)),
      zeroPoint("zero-point", cl::desc("Zero points: none, int or float"),
                cl::init("none"), cl::value_desc("kind"), cl::cat(category)),
      globalScale("global",
                  cl::desc("A second f32 level of weight scales: none, tensor "
                           "or channel"),
                  cl::init("none"), cl::value_desc("kind"), cl::cat(category)),
      output("c", cl::desc("Format of the output"), cl::init("bf16"),
             cl::value_desc("format"), cl::cat(category)),
      tokensFlag("m", cl::desc("Tokens; tools that run take a list: 1,16,64"),
                 cl::value_desc("M"), cl::cat(category)),
      nFlag("n", cl::desc("Output features"), cl::value_desc("N"),
            cl::cat(category)),
      kFlag("k", cl::desc("Input features"), cl::value_desc("K"),
            cl::cat(category)),
      shapeFlag("shape", cl::desc("In place of --n and --k: a list of shapes"),
                cl::value_desc("NxK,..."), cl::cat(category)),
      configFlag("config",
                 cl::desc("Lowering config in place of the chooser's; keys may "
                          "be left out"),
                 cl::value_desc("key=value,..."), cl::cat(category)),
      bias("bias", cl::desc("Add a bias, in the output's format"),
           cl::cat(category)),
      fallback("fallback",
               cl::desc("Take the next activation format where the chip lacks "
                        "the given one, with a warning"),
               cl::cat(category)),
      batchInvariant(
          "batch-invariant",
          cl::desc("Choose the config without regard to --m: a token's results "
                   "have the same bits in every batch"),
          cl::cat(category)) {}

static Error parseFormat(StringRef flag, StringRef text, NumberFormat &out) {
  Expected<NumberFormat> format = NumberFormat::parse(text);
  if (!format)
    return atFlag(flag, format.takeError());
  out = *format;
  return Error::success();
}

static Error parseTable(StringRef text, std::optional<CodeTable> &out) {
  if (text.empty())
    return Error::success();
  if (text == "nf4" || text == "fp4") {
    out = text == "nf4" ? CodeTable::nf4() : CodeTable::fp4();
    return Error::success();
  }
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  out.emplace();
  bool ok = parts.size() == 16;
  for (size_t i = 0; ok && i < 16; ++i) {
    double value;
    ok = !parts[i].trim().getAsDouble(value);
    out->values[i] = float(value);
  }
  if (ok)
    return Error::success();
  return flagError("table",
                   "expected nf4, fp4 or 16 numbers, got '" + text + "'");
}

Expected<MatmulProblem> ProblemFlags::problem(Shape shape, int64_t m) const {
  MatmulProblem problem;
  if (Error error = parseFormat("a", activation, problem.activation))
    return std::move(error);
  if (Error error = parseFormat("w", weight, problem.weight.weight))
    return std::move(error);
  if (Error error = parseFormat("scale", scale, problem.weight.scale))
    return std::move(error);
  if (Error error = parseFormat("c", output, problem.output))
    return std::move(error);
  Expected<Granularity> granularity = Granularity::parse(group);
  if (!granularity)
    return atFlag("group", granularity.takeError());
  problem.weight.granularity = *granularity;
  Expected<int64_t> columns =
      parseIntegerFlag("phase", phase, 0,
                       granularity->columns > 0 ? granularity->columns - 1 : 0);
  if (!columns)
    return columns.takeError();
  problem.weight.columnPhase = int32_t(*columns);
  Expected<ZeroPointKind> kind = parseZeroPointKind(zeroPoint);
  if (!kind)
    return atFlag("zero-point", kind.takeError());
  problem.weight.zeroPoint = *kind;
  if (globalScale == "tensor")
    problem.weight.globalScale = GlobalScaleKind::Tensor;
  else if (globalScale == "channel")
    problem.weight.globalScale = GlobalScaleKind::Channel;
  else if (globalScale != "none")
    return flagError("global", "expected none, tensor or channel, got '" +
                                   globalScale + "'");
  if (Error error = parseTable(table, problem.weight.table))
    return std::move(error);
  Expected<ActivationScaleKind> scaleKind =
      activationScaleKind(problem.activation);
  if (!scaleKind)
    return scaleKind.takeError();
  problem.activationScale = *scaleKind;
  Expected<ActivationCodes> codes = activationCodes();
  if (!codes)
    return codes.takeError();
  problem.activationGroup = codes->group;
  problem.activationScaleFormat = codes->scaleFormat;
  problem.activationZeroPoint = codes->zeroPoint;
  if (accumulate != "f32" && accumulate != "f16")
    return flagError("accumulate",
                     "expected f32 or f16, got '" + accumulate + "'");
  if (accumulate == "f16")
    problem.accumulator = NumberFormat::f16();
  problem.hasBias = bias;
  problem.n = shape.n;
  problem.k = shape.k;
  // One config for all batches; the order of a token's sums is the config's.
  problem.m = batchInvariant ? 0 : m;
  if (shape.n > 0 && shape.k > 0)
    problem.deriveDivisors();
  if (Error error = setLayout(problem))
    return std::move(error);
  return problem;
}

Error ProblemFlags::setLayout(MatmulProblem &problem) const {
  if (layout == "auto") {
    problem.weightLayout = problem.naturalLayout();
    return Error::success();
  }
  Expected<WeightLayout> parsed = parseWeightLayout(layout);
  if (!parsed)
    return flagError("layout",
                     "expected auto, packed or plain, got '" + layout + "'");
  problem.weightLayout = *parsed;
  return Error::success();
}

Expected<ActivationScaleKind>
ProblemFlags::activationScaleKind(const NumberFormat &format) const {
  StringRef text = activationScale;
  if (!activationScale.getNumOccurrences())
    text = format.bits >= 16         ? "none"
           : activationGroup == "-1" ? "tensor"
                                     : "token";
  Expected<ActivationScaleKind> kind = parseActivationScaleKind(text);
  if (!kind)
    return atFlag("a-scale", kind.takeError());
  if (activationGroup == "-1" && *kind != ActivationScaleKind::Tensor)
    return flagError("a-group",
                     "-1 says one scale per tensor, --a-scale says " + text);
  return kind;
}

Expected<ActivationCodes> ProblemFlags::activationCodes() const {
  ActivationCodes codes;
  if (Error error = parseFormat("a", activation, codes.format))
    return std::move(error);
  if (Error error = parseFormat("a-scale-format", activationScaleFormat,
                                codes.scaleFormat))
    return std::move(error);
  // 1x128 is what some call groups of 128.
  StringRef groupText = activationGroup;
  groupText.consume_front("1x");
  if (groupText != "-1") {
    Expected<int64_t> parsed =
        parseIntegerFlag("a-group", groupText, 0, 1 << 30);
    if (!parsed)
      return parsed.takeError();
    codes.group = int32_t(*parsed);
  }
  if (activationZeroPoint != "none" && activationZeroPoint != "int")
    return flagError("a-zero-point",
                     "expected none or int, got '" + activationZeroPoint + "'");
  codes.zeroPoint = activationZeroPoint == "int";
  return codes;
}

Expected<bool> ProblemFlags::isQuantize() const {
  if (operation != "matmul" && operation != "quantize" && !isPack() &&
      !isGather())
    return flagError("op", "expected matmul, quantize, pack or gather, got '" +
                               operation + "'");
  return operation == "quantize";
}

Expected<PackProblem> ProblemFlags::packProblem(Shape shape) const {
  NumberFormat a, w;
  if (Error error = parseFormat("a", activation, a))
    return std::move(error);
  if (Error error = parseFormat("w", weight, w))
    return std::move(error);
  PackProblem problem;
  problem.activationBits = a.bits;
  problem.weightBits = w.bits;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.deriveDivisors();
  if (Error error = checkPack(problem))
    return atFlag("op pack", std::move(error));
  return problem;
}

Expected<GatherProblem> ProblemFlags::gatherProblem(int64_t m,
                                                    int64_t k) const {
  NumberFormat a;
  if (Error error = parseFormat("a", activation, a))
    return std::move(error);
  GatherProblem problem;
  problem.elementBits = a.bits;
  problem.m = m;
  problem.columns = k;
  problem.deriveDivisors();
  if (Error error = checkGather(problem))
    return atFlag("op gather", std::move(error));
  return problem;
}

Expected<QuantizeProblem> ProblemFlags::quantizeProblem(int64_t m,
                                                        int64_t k) const {
  QuantizeProblem problem;
  if (Error error = parseFormat("input", input, problem.input))
    return std::move(error);
  Expected<ActivationCodes> codes = activationCodes();
  if (!codes)
    return codes.takeError();
  problem.codes = *codes;
  Expected<ActivationScaleKind> kind = activationScaleKind(codes->format);
  if (!kind)
    return kind.takeError();
  problem.scale = *kind;
  Expected<GateKind> gateKind = parseGateKind(gate);
  if (!gateKind)
    return atFlag("gate", gateKind.takeError());
  problem.gate = *gateKind;
  problem.m = m;
  problem.k = k;
  problem.deriveDivisors();
  return problem;
}

Expected<MatmulProblem> ProblemFlags::problem() const {
  Shape shape;
  if (nFlag.getNumOccurrences() || kFlag.getNumOccurrences() ||
      shapeFlag.getNumOccurrences()) {
    Expected<SmallVector<Shape>> given = shapes();
    if (!given)
      return given.takeError();
    shape = given->front();
  }
  Expected<SmallVector<int64_t>> m = tokens();
  if (!m)
    return m.takeError();
  return problem(shape, m->empty() ? 0 : m->front());
}

Expected<const TargetInfo *> ProblemFlags::target() const {
  Expected<const TargetInfo *> info = getTargetInfo(chip);
  if (!info)
    return atFlag("chip", info.takeError());
  return *info;
}

Expected<SmallVector<int64_t>> ProblemFlags::tokens() const {
  StringRef text =
      tokensFlag.getNumOccurrences() ? StringRef(tokensFlag) : defaultTokens;
  if (text.empty() && !tokensFlag.getNumOccurrences())
    return SmallVector<int64_t>();
  return parseIntegerListFlag("m", text, 0, kMaxSize);
}

Expected<SmallVector<Shape>> ProblemFlags::shapes() const {
  SmallVector<Shape> result;
  bool hasPair = nFlag.getNumOccurrences() || kFlag.getNumOccurrences();
  if (shapeFlag.getNumOccurrences()) {
    if (hasPair)
      return flagError("shape", "expected either --shape or --n and --k, got "
                                "both");
    SmallVector<StringRef> parts;
    StringRef(shapeFlag).split(parts, ',');
    for (StringRef part : parts) {
      auto [n, k] = part.trim().split('x');
      Shape shape;
      if (n.getAsInteger(10, shape.n) || k.getAsInteger(10, shape.k) ||
          shape.n < 1 || shape.k < 1 || shape.n > kMaxSize ||
          shape.k > kMaxSize)
        return flagError("shape", "expected NxK with N and K from 1 to " +
                                      Twine(kMaxSize) + ", got '" + part + "'");
      result.push_back(shape);
    }
    return result;
  }
  if (!nFlag.getNumOccurrences())
    return flagError("n", "expected a number of output features, got nothing");
  if (!kFlag.getNumOccurrences())
    return flagError("k", "expected a number of input features, got nothing");
  Expected<int64_t> n = parseIntegerFlag("n", nFlag, 1, kMaxSize);
  if (!n)
    return n.takeError();
  Expected<int64_t> k = parseIntegerFlag("k", kFlag, 1, kMaxSize);
  if (!k)
    return k.takeError();
  result.push_back({*n, *k});
  return result;
}

Expected<SmallVector<int64_t>> ProblemFlags::depths() const {
  if (!kFlag.getNumOccurrences())
    return flagError("k", "expected a number of input features, got nothing");
  return parseIntegerListFlag("k", kFlag, 1, kMaxSize);
}

Expected<std::optional<KernelConfig>>
ProblemFlags::config(const KernelConfig &base) const {
  if (!hasConfig())
    return std::nullopt;
  Expected<KernelConfig> parsed = KernelConfig::parse(configFlag, base);
  if (!parsed)
    return atFlag("config", parsed.takeError());
  return *parsed;
}

void parseCommandLine(int argc, char **argv, StringRef overview,
                      ArrayRef<const cl::OptionCategory *> keep) {
  // The libraries of LLVM register options of their own.
  cl::HideUnrelatedOptions(keep);
  cl::ParseCommandLineOptions(argc, argv, overview);
}

} // namespace humming
