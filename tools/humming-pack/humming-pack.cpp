//===- humming-pack.cpp - Pack a checkpoint for the kernels ---------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a quantized checkpoint layer by layer and writes a packed model
// (PackedModel.h): shards of about --shard-mb of input each, and an index. At
// most one shard and one layer are in memory.
//
// Which layer goes to which shard depends on the input and the options alone,
// and a shard appears under its name only when complete. So a run that was
// interrupted is taken up by running it again: shards whose plan (a hash of
// options, names and sizes, kept in their metadata) is the same are kept.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/ModelSource.h"
#include "Humming/Quant/PackedModel.h"
#include "Humming/Quant/Packing.h"
#include "Humming/Quant/Reference.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <map>

using namespace llvm;
using namespace humming;

static cl::OptionCategory category("humming-pack options");
static cl::opt<std::string> input(cl::Positional, cl::Required,
                                  cl::desc("<checkpoint file or folder>"),
                                  cl::cat(category));
static cl::opt<std::string> output("o", cl::Required,
                                   cl::desc("Folder of the packed model"),
                                   cl::value_desc("folder"), cl::cat(category));
static cl::opt<unsigned>
    activationBits("a", cl::desc("Activation width: 16, 8 or 4 bits"),
                   cl::init(16), cl::cat(category));
static cl::opt<std::string>
    scaleName("scale",
              cl::desc("Convert scales to f16, bf16 or f32; keep: as stored"),
              cl::init("keep"), cl::cat(category));
static cl::opt<bool>
    report("report",
           cl::desc("Print a line for each layer: format, error against the "
                    "stored weights, anything suspicious"),
           cl::cat(category));
static cl::opt<unsigned> shardMegabytes("shard-mb",
                                        cl::desc("Input bytes of a shard"),
                                        cl::init(512), cl::cat(category));
static cl::opt<unsigned> jobs("jobs", cl::desc("Threads, 0: all"), cl::init(0),
                              cl::cat(category));
static cl::opt<bool> layersOnly("layers-only",
                                cl::desc("Leave unquantized tensors out"),
                                cl::cat(category));
static cl::opt<std::string> gptqZeros("gptq-zeros",
                                      cl::desc("Zero points of GPTQ: v1 or v2"),
                                      cl::value_desc("v1|v2"),
                                      cl::cat(category));

namespace {
struct Shard {
  std::vector<const ModelSource::Layer *> layers;
  std::vector<const TensorView *> plain;
  int64_t inputBytes = 0;
  std::string file, plan;
};

/// A bar on a terminal, nothing elsewhere.
class Progress {
public:
  explicit Progress(int64_t total)
      : total(std::max<int64_t>(total, 1)),
        shown(sys::Process::StandardErrIsDisplayed() && !report) {}
  ~Progress() {
    if (shown)
      errs() << "\r\x1b[K";
  }
  void advance(int64_t bytes, StringRef what) {
    done += bytes;
    if (!shown)
      return;
    int filled = int(30 * done / total);
    errs() << "\r\x1b[K[" << std::string(filled, '#')
           << std::string(30 - filled, '.') << "] " << 100 * done / total
           << "% " << what.take_back(40);
    errs().flush();
  }

private:
  int64_t total, done = 0;
  bool shown;
};
} // namespace

static std::vector<Shard> planShards(const ModelSource &source,
                                     ArrayRef<TensorView> plain) {
  std::vector<Shard> shards;
  int64_t limit = int64_t(std::max(1u, unsigned(shardMegabytes))) << 20;
  auto shardFor = [&](int64_t bytes) -> Shard & {
    if (shards.empty() || (shards.back().inputBytes > 0 &&
                           shards.back().inputBytes + bytes > limit))
      shards.emplace_back();
    shards.back().inputBytes += bytes;
    return shards.back();
  };
  for (const ModelSource::Layer &layer : source.layers())
    shardFor(layer.bytes).layers.push_back(&layer);
  for (const TensorView &tensor : plain)
    shardFor(int64_t(tensor.data.size())).plain.push_back(&tensor);
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].file = formatv("packed-{0}-of-{1}.safetensors",
                             right_justify(utostr(i + 1), 5),
                             right_justify(utostr(shards.size()), 5));
    std::replace(shards[i].file.begin(), shards[i].file.end(), ' ', '0');
    SHA256 hash;
    auto feed = [&](StringRef text) {
      hash.update(text);
      hash.update(StringRef("\0", 1));
    };
    feed("humming-packed-1");
    feed(utostr(activationBits));
    feed(scaleName);
    feed(gptqZeros);
    for (const ModelSource::Layer *layer : shards[i].layers) {
      feed(layer->name);
      feed(layer->format);
      feed(itostr(layer->bytes));
    }
    for (const TensorView *tensor : shards[i].plain) {
      feed(tensor->name);
      feed(tensor->describe());
    }
    shards[i].plan = toHex(hash.final(), /*LowerCase=*/true);
  }
  return shards;
}

/// Largest difference between what was stored and what the packed layer means,
/// relative to the largest stored weight.
static Expected<double> measureError(const QuantizedWeights &stored,
                                     const PackedLayer &packed,
                                     StringRef name) {
  // Through the very bytes that are written.
  std::string header;
  std::string data;
  raw_string_ostream os(header);
  json::OStream json(os);
  json.object([&] {
    json.attributeObject("__metadata__", [&] {
      json.attribute(("humming:" + name).str(), packed.description);
    });
    for (const PackedLayer::Tensor &tensor : packed.tensors)
      json.attributeObject(tensor.name, [&] {
        json.attribute("dtype", stringify(tensor.dtype));
        json.attributeArray("shape", [&] {
          for (int64_t extent : tensor.shape)
            json.value(extent);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(int64_t(data.size()));
          data.append(tensor.bytes.begin(), tensor.bytes.end());
          json.value(int64_t(data.size()));
        });
      });
  });
  std::string bytes(8, '\0');
  support::endian::write64le(bytes.data(), header.size());
  bytes += header;
  bytes += data;
  Expected<SafetensorsFile> file =
      SafetensorsFile::parse(MemoryBuffer::getMemBuffer(
          bytes, name, /*RequiresNullTerminator=*/false));
  if (!file)
    return file.takeError();
  Expected<QuantizedWeights> back = unpackModelLayer(*file, name);
  if (!back)
    return back.takeError();
  constexpr int64_t rows = 64;
  std::vector<double> a(size_t(rows * stored.inputs())), b(a.size());
  double largest = 0, error = 0;
  for (int64_t row = 0; row < stored.n; row += rows) {
    int64_t end = std::min(row + rows, stored.n);
    dequantizeRows(stored, row, end, a);
    dequantizeRows(*back, row, end, b);
    for (int64_t i = 0; i < (end - row) * stored.inputs(); ++i) {
      if (std::isnan(a[i]) && std::isnan(b[i]))
        continue;
      largest = std::max(largest, std::fabs(a[i]));
      if (!(a[i] == b[i]))
        error =
            std::max(error, std::isfinite(a[i] - b[i]) ? std::fabs(a[i] - b[i])
                                                       : INFINITY);
    }
  }
  return largest > 0 ? error / largest : error;
}

static Error packShard(const ModelSource &source, const Shard &shard,
                       const ReadOptions &options,
                       std::optional<NumberFormat> scale, StringRef path,
                       Progress &progress) {
  SafetensorsWriter writer(path);
  writer.setMetadata("humming_plan", shard.plan);
  std::vector<PackedLayer> packed;
  for (const ModelSource::Layer *layer : shard.layers) {
    Expected<QuantizedWeights> stored = source.read(*layer, options);
    if (!stored)
      return stored.takeError();
    QuantizedWeights weights = *stored;
    if (scale) {
      Expected<QuantizedWeights> converted =
          convertScales(std::move(weights), *scale);
      if (!converted)
        return createStringError("layer '" + layer->name +
                                 "': " + toString(converted.takeError()));
      weights = std::move(*converted);
    }
    Expected<PackedLayer> result =
        packModelLayer(layer->name, weights, activationBits, jobs);
    if (!result)
      return createStringError("layer '" + layer->name +
                               "': " + toString(result.takeError()));
    if (report) {
      Expected<double> error = measureError(*stored, *result, layer->name);
      if (!error)
        return error.takeError();
      outs() << formatv("{0}: {1}, {2}, {3} x {4}, error {5:e}", layer->name,
                        layer->format, weights.type.str(), weights.n, weights.k,
                        *error);
      for (const WeightFinding &finding : inspectWeights(*stored))
        outs() << formatv(", {0} x {1} (first at row {2}, block {3})",
                          finding.count, finding.what, finding.row,
                          finding.block);
      outs() << '\n';
    }
    writer.setMetadata("humming:" + layer->name, result->description);
    for (const PackedLayer::Tensor &tensor : result->tensors)
      writer.declare(tensor.name, tensor.dtype, tensor.shape);
    packed.push_back(std::move(*result));
    progress.advance(layer->bytes, layer->name);
  }
  for (const TensorView *tensor : shard.plain)
    writer.declare(tensor->name, tensor->dtype, tensor->shape);
  bool resumed;
  if (Error error = writer.open(/*resume=*/false, resumed))
    return error;
  for (const PackedLayer &layer : packed)
    for (const PackedLayer::Tensor &tensor : layer.tensors)
      if (Error error = writer.write(tensor.name, tensor.bytes))
        return error;
  for (const TensorView *tensor : shard.plain) {
    if (Error error = writer.write(tensor->name, tensor->data))
      return error;
    progress.advance(int64_t(tensor->data.size()), tensor->name);
  }
  return writer.finish();
}

/// Whether a complete shard of the same plan is there already.
static bool isDone(const Shard &shard, StringRef path) {
  if (!sys::fs::exists(path))
    return false;
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file) {
    consumeError(file.takeError());
    return false;
  }
  return file->metadata().lookup("humming_plan") == shard.plan;
}

static Error writeIndex(ArrayRef<Shard> shards, StringRef folder) {
  std::map<std::string, std::string> map;
  for (const Shard &shard : shards) {
    SmallString<256> path(folder);
    sys::path::append(path, shard.file);
    Expected<SafetensorsFile> file = SafetensorsFile::open(path);
    if (!file)
      return file.takeError();
    for (const TensorView &tensor : file->tensors())
      map[tensor.name] = shard.file;
  }
  SmallString<256> path(folder);
  sys::path::append(path, "model.safetensors.index.json");
  std::string partial = (path + ".partial").str();
  {
    std::error_code code;
    raw_fd_ostream os(partial, code);
    if (code)
      return createStringError("can't write '" + partial +
                               "': " + code.message());
    json::OStream json(os, 1);
    json.object([&] {
      json.attributeObject("metadata", [&] {
        json.attribute("format", "humming-packed-1");
        json.attribute("activation_bits", unsigned(activationBits));
      });
      json.attributeObject("weight_map", [&] {
        for (const auto &[tensor, file] : map)
          json.attribute(tensor, file);
      });
    });
    os << '\n';
    os.close();
    if (os.has_error()) {
      std::string message = os.error().message();
      os.clear_error();
      return createStringError("can't write '" + partial + "': " + message);
    }
  }
  if (std::error_code code = sys::fs::rename(partial, path))
    return createStringError("can't rename '" + partial +
                             "': " + code.message());
  return Error::success();
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Packs a quantized checkpoint for the kernels\n");
  ExitOnError exitOnError("humming-pack: error: ");
  ReadOptions options;
  if (!gptqZeros.empty())
    options.zeros = exitOnError(parseGptqZeros(gptqZeros));
  exitOnError(checkPackedWidths(activationBits, 1));
  std::optional<NumberFormat> scale;
  if (scaleName != "keep")
    scale = exitOnError(NumberFormat::parse(scaleName));
  ModelSource source = exitOnError(ModelSource::open(input));
  if (!source.layers().empty() && source.layers()[0].format == "packed")
    exitOnError(createStringError("'" + input + "' is packed already"));
  if (source.layers().empty())
    exitOnError(createStringError("'" + input +
                                  "' holds no quantized layer; see "
                                  "humming-inspect --tensors"));
  std::vector<TensorView> plain;
  if (!layersOnly)
    plain = source.plainTensors();
  if (std::error_code code = sys::fs::create_directories(
          output, /*IgnoreExisting=*/true, sys::fs::all_all))
    exitOnError(createStringError("can't make the folder '" + output +
                                  "': " + code.message()));
  std::vector<Shard> shards = planShards(source, plain);
  int64_t total = 0, kept = 0;
  for (const Shard &shard : shards)
    total += shard.inputBytes;
  {
    Progress progress(total);
    for (const Shard &shard : shards) {
      SmallString<256> path{StringRef(output)};
      sys::path::append(path, shard.file);
      if (isDone(shard, path)) {
        ++kept;
        progress.advance(shard.inputBytes, shard.file);
        continue;
      }
      exitOnError(packShard(source, shard, options, scale, path, progress));
    }
  }
  exitOnError(writeIndex(shards, output));
  outs() << formatv("packed {0} layers into {1} shards", source.layers().size(),
                    shards.size());
  if (kept)
    outs() << formatv(" ({0} were already there)", kept);
  outs() << '\n';
  return 0;
}
