//===- Artifacts.cpp - Compiled kernels from files ------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Artifacts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace humming {

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

static Expected<std::string> readFile(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return makeError("cannot read " + path + ": " +
                     buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

Expected<KernelArtifacts> readArtifacts(StringRef ptxFile, StringRef cubinFile,
                                        StringRef launchFile) {
  if (ptxFile.empty() && cubinFile.empty())
    return makeError("expected a PTX or a cubin file beside " + launchFile +
                     ", got neither");
  KernelArtifacts artifacts;
  artifacts.name = sys::path::stem(launchFile).str();
  artifacts.origin = "files";
  Expected<std::string> text = readFile(launchFile);
  if (!text)
    return text.takeError();
  Expected<LaunchDescription> launch = LaunchDescription::parse(*text);
  if (!launch)
    return makeError(launchFile + ": " + toString(launch.takeError()));
  artifacts.launch = std::move(*launch);
  std::pair<StringRef, std::string *> parts[] = {{ptxFile, &artifacts.ptx},
                                                 {cubinFile, &artifacts.cubin}};
  for (auto [path, slot] : parts) {
    if (path.empty())
      continue;
    Expected<std::string> bytes = readFile(path);
    if (!bytes)
      return bytes.takeError();
    if (bytes->empty())
      return makeError(path +
                       ": expected a compiled kernel, got an empty file");
    *slot = std::move(*bytes);
  }
  return artifacts;
}

Expected<std::vector<KernelArtifacts>> readArtifactFolder(StringRef folder) {
  std::vector<std::string> descriptions;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (sys::path::extension(it->path()) == ".json")
      descriptions.push_back(it->path());
  if (error)
    return makeError("cannot read the folder " + folder + ": " +
                     error.message());
  if (descriptions.empty())
    return makeError("expected launch descriptions (*.json) in " + folder +
                     ", found none");
  llvm::sort(descriptions);
  std::vector<KernelArtifacts> all;
  for (const std::string &path : descriptions) {
    auto sibling = [&](StringRef extension) -> std::string {
      SmallString<128> other(path);
      sys::path::replace_extension(other, extension);
      return sys::fs::exists(other) ? std::string(other) : "";
    };
    Expected<KernelArtifacts> one =
        readArtifacts(sibling("ptx"), sibling("cubin"), path);
    if (!one)
      return one.takeError();
    all.push_back(std::move(*one));
  }
  return all;
}

Error writeArtifacts(StringRef folder, const KernelArtifacts &artifacts) {
  if (std::error_code error = sys::fs::create_directories(folder))
    return makeError("cannot create " + folder + ": " + error.message());
  std::string launch = artifacts.launch.str();
  std::pair<StringRef, StringRef> files[] = {
      {"json", launch}, {"ptx", artifacts.ptx}, {"cubin", artifacts.cubin}};
  for (auto [extension, bytes] : files) {
    if (bytes.empty())
      continue;
    SmallString<128> path(folder);
    sys::path::append(path, artifacts.name + "." + extension);
    std::error_code error;
    raw_fd_ostream stream(path, error);
    if (!error) {
      stream << bytes;
      stream.close();
      error = stream.error();
      stream.clear_error();
    }
    if (error)
      return makeError("cannot write " + path + ": " + error.message());
  }
  return Error::success();
}

Expected<MatmulProblem> problemOf(const LaunchDescription &launch, int64_t m,
                                  int64_t n, int64_t k) {
  MatmulProblem problem;
  std::pair<StringRef, NumberFormat *> formats[] = {
      {launch.activation, &problem.activation},
      {launch.weight, &problem.weight.weight},
      {launch.scale, &problem.weight.scale},
      {launch.output, &problem.output}};
  for (auto [text, slot] : formats) {
    Expected<NumberFormat> format = NumberFormat::parse(text);
    if (!format)
      return format.takeError();
    *slot = *format;
  }
  Expected<Granularity> granularity = Granularity::parse(launch.granularity);
  if (!granularity)
    return granularity.takeError();
  problem.weight.granularity = *granularity;
  problem.weight.columnPhase = launch.columnPhase;
  Expected<WeightLayout> layout = parseWeightLayout(launch.weightLayout);
  if (!layout)
    return layout.takeError();
  problem.weightLayout = *layout;
  Expected<ZeroPointKind> kind = parseZeroPointKind(launch.zeroPoint);
  if (!kind)
    return kind.takeError();
  problem.weight.zeroPoint = *kind;
  if (launch.globalScale != "none")
    problem.weight.globalScale = launch.globalScale == "tensor"
                                     ? GlobalScaleKind::Tensor
                                     : GlobalScaleKind::Channel;
  if (!launch.table.empty()) {
    problem.weight.table.emplace();
    for (size_t i = 0; i < 16; ++i)
      problem.weight.table->values[i] = float(launch.table[i]);
  }
  Expected<ActivationScaleKind> activationScale =
      parseActivationScaleKind(launch.activationScale);
  if (!activationScale)
    return activationScale.takeError();
  problem.activationScale = *activationScale;
  problem.activationGroup = launch.activationGroup;
  if (launch.activationScaleFormat == "e8m0")
    problem.activationScaleFormat = NumberFormat::e8m0();
  problem.activationZeroPoint = launch.activationZeroPoint;
  if (launch.accumulator == "f16")
    problem.accumulator = NumberFormat::f16();
  problem.hasBias = launch.hasBias;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.kDivisor = launch.kDivisor;
  problem.nDivisor = launch.nDivisor;
  return problem;
}

Expected<QuantizeProblem> quantizeProblemOf(const LaunchDescription &launch,
                                            int64_t m, int64_t k) {
  QuantizeProblem problem;
  std::pair<StringRef, NumberFormat *> formats[] = {
      {launch.activation, &problem.input},
      {launch.output, &problem.codes.format},
      {launch.activationScaleFormat, &problem.codes.scaleFormat}};
  for (auto [text, slot] : formats) {
    Expected<NumberFormat> format = NumberFormat::parse(text);
    if (!format)
      return format.takeError();
    *slot = *format;
  }
  Expected<ActivationScaleKind> scale =
      parseActivationScaleKind(launch.activationScale);
  if (!scale)
    return scale.takeError();
  problem.scale = *scale;
  Expected<GateKind> gate = parseGateKind(launch.gate);
  if (!gate)
    return gate.takeError();
  problem.gate = *gate;
  problem.codes.group = launch.activationGroup;
  problem.codes.zeroPoint = launch.activationZeroPoint;
  problem.m = m;
  problem.k = k;
  problem.kDivisor = launch.kDivisor;
  return problem;
}

/// Error: the kernel does something else.
static Error expectOperation(const LaunchDescription &launch,
                             StringRef operation) {
  if (launch.operation == operation)
    return Error::success();
  return makeError(launch.kernelName + ": expected a " + operation +
                   " kernel, got " + launch.operation);
}

Expected<PackProblem> packProblemOf(const LaunchDescription &launch, int64_t n,
                                    int64_t k) {
  if (Error error = expectOperation(launch, "pack"))
    return std::move(error);
  Expected<unsigned> activation = parseFormatBits(launch.activation);
  if (!activation)
    return activation.takeError();
  Expected<unsigned> weight = parseFormatBits(launch.weight);
  if (!weight)
    return weight.takeError();
  PackProblem problem;
  problem.activationBits = *activation;
  problem.weightBits = *weight;
  problem.n = n;
  problem.k = k;
  problem.kDivisor = launch.kDivisor;
  return problem;
}

Expected<GatherProblem> gatherProblemOf(const LaunchDescription &launch,
                                        int64_t m, int64_t columns) {
  if (Error error = expectOperation(launch, "gather"))
    return std::move(error);
  Expected<unsigned> bits = parseFormatBits(launch.activation);
  if (!bits)
    return bits.takeError();
  GatherProblem problem;
  problem.elementBits = *bits;
  problem.m = m;
  problem.columns = columns;
  problem.divisor = launch.kDivisor;
  return problem;
}

Expected<KernelConfig> configOf(const LaunchDescription &launch) {
  Expected<KernelConfig> config =
      KernelConfig::parse(launch.config, KernelConfig());
  if (!config)
    return makeError("config of " + launch.kernelName + ": " +
                     toString(config.takeError()));
  return config;
}

bool admitsShape(const LaunchDescription &launch, int64_t n, int64_t k,
                 std::string &why) {
  if (n % launch.nDivisor != 0)
    why = ("n = " + Twine(n) + " is not a multiple of the declared " +
           Twine(launch.nDivisor))
              .str();
  else if (k % launch.kDivisor != 0)
    why = ("k = " + Twine(k) + " is not a multiple of the declared " +
           Twine(launch.kDivisor))
              .str();
  else
    return true;
  return false;
}

} // namespace humming
