//===- humming-inspect.cpp - What a checkpoint holds ----------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lists the quantized layers of a checkpoint (safetensors or GGUF) with their
// types and shapes, as a table or as JSON, one layer in memory at a time. Exits
// with 1 if a layer can't be read, or, with --check, looks wrong.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/ModelSource.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace humming;

static cl::OptionCategory category("humming-inspect options");
static cl::opt<std::string> input(cl::Positional, cl::Required,
                                  cl::desc("<file or folder>"),
                                  cl::cat(category));
static cl::opt<bool> asJson("json", cl::desc("Print JSON, one object"),
                            cl::cat(category));
static cl::opt<bool> check("check",
                           cl::desc("Look for NaN, zero and infinite scales"),
                           cl::cat(category));
static cl::opt<bool> listTensors("tensors",
                                 cl::desc("List unquantized tensors as well"),
                                 cl::cat(category));
static cl::opt<std::string> gptqZeros("gptq-zeros",
                                      cl::desc("Zero points of GPTQ: v1 or v2"),
                                      cl::value_desc("v1|v2"),
                                      cl::cat(category));

namespace {
struct Row {
  const ModelSource::Layer *layer;
  std::string type, error;
  int64_t n = 0, k = 0;
  bool ordered = false, bias = false;
  std::vector<WeightFinding> findings;
  double bitsPerWeight() const {
    return n * k ? 8.0 * double(layer->bytes) / (double(n) * double(k)) : 0;
  }
};
} // namespace

static void printJson(ArrayRef<Row> rows, ArrayRef<TensorView> plain) {
  json::OStream json(outs(), 2);
  json.object([&] {
    json.attributeArray("layers", [&] {
      for (const Row &row : rows)
        json.object([&] {
          json.attribute("name", row.layer->name);
          json.attribute("format", row.layer->format);
          json.attribute("bytes", row.layer->bytes);
          if (!row.error.empty()) {
            json.attribute("error", row.error);
            return;
          }
          json.attribute("type", row.type);
          json.attribute("n", row.n);
          json.attribute("k", row.k);
          json.attribute("bits_per_weight", row.bitsPerWeight());
          json.attribute("activation_order", row.ordered);
          json.attribute("bias", row.bias);
          if (check)
            json.attributeArray("findings", [&] {
              for (const WeightFinding &finding : row.findings)
                json.object([&] {
                  json.attribute("what", finding.what);
                  json.attribute("count", finding.count);
                  json.attribute("row", finding.row);
                  json.attribute("block", finding.block);
                });
            });
        });
    });
    if (listTensors)
      json.attributeArray("tensors", [&] {
        for (const TensorView &tensor : plain)
          json.object([&] {
            json.attribute("name", tensor.name);
            json.attribute("dtype", stringify(tensor.dtype));
            json.attributeArray("shape", [&] {
              for (int64_t extent : tensor.shape)
                json.value(extent);
            });
          });
      });
  });
  outs() << '\n';
}

static void printTable(ArrayRef<Row> rows, ArrayRef<TensorView> plain) {
  size_t nameWidth = 5, typeWidth = 4, formatWidth = 6;
  for (const Row &row : rows) {
    nameWidth = std::max(nameWidth, row.layer->name.size());
    typeWidth = std::max(typeWidth, row.type.size());
    formatWidth = std::max(formatWidth, row.layer->format.size());
  }
  auto line = [&](StringRef name, StringRef format, StringRef type, StringRef n,
                  StringRef k, StringRef bits, StringRef notes) {
    outs() << left_justify(name, nameWidth) << "  "
           << left_justify(format, formatWidth) << "  "
           << left_justify(type, typeWidth) << "  " << right_justify(n, 7)
           << right_justify(k, 8) << right_justify(bits, 8)
           << (notes.empty() ? "" : "  ") << notes << '\n';
  };
  if (!rows.empty())
    line("layer", "format", "type", "N", "K", "bits", "");
  int64_t weights = 0, bytes = 0, bad = 0;
  for (const Row &row : rows) {
    bytes += row.layer->bytes;
    if (!row.error.empty()) {
      ++bad;
      line(row.layer->name, row.layer->format, "-", "-", "-", "-", row.error);
      continue;
    }
    weights += row.n * row.k;
    SmallVector<std::string, 4> notes;
    if (row.ordered)
      notes.push_back("activation order");
    if (row.bias)
      notes.push_back("bias");
    for (const WeightFinding &finding : row.findings)
      notes.push_back(formatv("{0} x {1} (row {2}, block {3})", finding.count,
                              finding.what, finding.row, finding.block));
    line(row.layer->name, row.layer->format, row.type, itostr(row.n),
         itostr(row.k), formatv("{0:f3}", row.bitsPerWeight()).str(),
         join(notes, ", "));
  }
  outs() << formatv("{0} quantized layers, {1} weights, {2} bytes", rows.size(),
                    weights, bytes);
  if (bad)
    outs() << ", " << bad << " unreadable";
  outs() << '\n';
  if (!listTensors)
    return;
  for (const TensorView &tensor : plain)
    outs() << tensor.name << "  " << tensor.describe() << '\n';
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Shows what a quantized checkpoint holds\n");
  ExitOnError exitOnError("humming-inspect: error: ");
  ReadOptions options;
  if (!gptqZeros.empty())
    options.zeros = exitOnError(parseGptqZeros(gptqZeros));
  ModelSource source = exitOnError(ModelSource::open(input));
  std::vector<Row> rows;
  bool failed = false;
  for (const ModelSource::Layer &layer : source.layers()) {
    Row row;
    row.layer = &layer;
    Expected<QuantizedWeights> weights = source.read(layer, options);
    if (!weights) {
      row.error = toString(weights.takeError());
      failed = true;
    } else {
      row.type = weights->type.str();
      row.n = weights->n;
      row.k = weights->k;
      row.ordered = !weights->kOrder.empty();
      row.bias = !weights->bias.empty();
      if (check)
        row.findings = inspectWeights(*weights);
      failed |= !row.findings.empty();
    }
    rows.push_back(std::move(row));
  }
  std::vector<TensorView> plain;
  if (listTensors)
    plain = source.plainTensors();
  if (asJson)
    printJson(rows, plain);
  else
    printTable(rows, plain);
  return failed;
}
