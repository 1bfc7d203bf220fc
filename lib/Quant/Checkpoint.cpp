//===- Checkpoint.cpp - Files and configuration of a checkpoint -----------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Checkpoint.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace llvm;

namespace humming {

Expected<json::Value> readJsonFile(StringRef path) {
  constexpr size_t maxBytes = 64 << 20;
  constexpr int maxDepth = 64;
  uint64_t size;
  if (std::error_code code = sys::fs::file_size(path, size))
    return createStringError("can't open '" + path + "': " + code.message());
  if (size > maxBytes)
    return createStringError("'" + path + "': expected at most " +
                             Twine(maxBytes) + " bytes of JSON, got " +
                             Twine(size));
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return createStringError("can't open '" + path +
                             "': " + buffer.getError().message());
  // The JSON parser recurses; a hostile file must not exhaust the stack.
  int depth = 0;
  bool inString = false, escaped = false;
  for (char c : (*buffer)->getBuffer()) {
    if (inString) {
      if (escaped)
        escaped = false;
      else if (c == '\\')
        escaped = true;
      else if (c == '"')
        inString = false;
      continue;
    }
    if (c == '"')
      inString = true;
    else if (c == '{' || c == '[')
      ++depth;
    else if (c == '}' || c == ']')
      --depth;
    if (depth > maxDepth)
      return createStringError("'" + path + "': JSON nested deeper than " +
                               Twine(maxDepth));
  }
  Expected<json::Value> value = json::parse((*buffer)->getBuffer());
  if (!value)
    return createStringError("'" + path + "': " + toString(value.takeError()));
  return value;
}

Error Checkpoint::addFile(StringRef path) {
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file)
    return file.takeError();
  files.push_back(std::move(*file));
  return Error::success();
}

Error Checkpoint::readConfig(StringRef folder) {
  auto read = [&](StringRef name, std::optional<json::Value> &into) -> Error {
    SmallString<256> path(folder);
    sys::path::append(path, name);
    if (into || !sys::fs::exists(path))
      return Error::success();
    Expected<json::Value> value = readJsonFile(path);
    if (!value)
      return value.takeError();
    if (!value->getAsObject())
      return createStringError("'" + path.str() +
                               "': expected a JSON object at the top");
    into = std::move(*value);
    return Error::success();
  };
  if (Error error = read("config.json", root))
    return error;
  // Older tools wrote the quantization's configuration to a file of its own.
  for (StringRef name : {"quantize_config.json", "quant_config.json",
                         "quantization_config.json"})
    if (Error error = read(name, quantization))
      return error;
  return Error::success();
}

Expected<Checkpoint> Checkpoint::open(StringRef path) {
  Checkpoint checkpoint;
  checkpoint.location = path.str();
  SmallString<256> folder(path);
  if (sys::fs::is_directory(path)) {
    SmallString<256> indexPath(path);
    sys::path::append(indexPath, "model.safetensors.index.json");
    std::set<std::string> names;
    if (sys::fs::exists(indexPath)) {
      Expected<json::Value> index = readJsonFile(indexPath);
      if (!index)
        return index.takeError();
      const json::Object *object = index->getAsObject();
      const json::Object *map =
          object ? object->getObject("weight_map") : nullptr;
      if (!map)
        return createStringError("'" + indexPath.str() +
                                 "': expected an object 'weight_map'");
      for (const auto &[tensor, file] : *map) {
        std::optional<StringRef> name = file.getAsString();
        // A name, not a path: an index must not reach outside its folder.
        if (!name || name->empty() || name->contains('/') ||
            name->contains('\\') || *name == "..")
          return createStringError("'" + indexPath.str() + "': tensor '" +
                                   StringRef(tensor) +
                                   "': expected the name of a file in the "
                                   "same folder");
        names.insert(name->str());
      }
    } else {
      std::error_code code;
      for (sys::fs::directory_iterator it(path, code), end; it != end && !code;
           it.increment(code)) {
        StringRef name = sys::path::filename(it->path());
        if (name.ends_with(".safetensors"))
          names.insert(name.str());
      }
      if (code)
        return createStringError("can't list '" + path +
                                 "': " + code.message());
    }
    if (names.empty())
      return createStringError("'" + path +
                               "': expected .safetensors files in the folder, "
                               "got none");
    for (const std::string &name : names) {
      SmallString<256> file(path);
      sys::path::append(file, name);
      if (Error error = checkpoint.addFile(file))
        return std::move(error);
    }
  } else {
    if (Error error = checkpoint.addFile(path))
      return std::move(error);
    sys::path::remove_filename(folder);
    if (folder.empty())
      folder = ".";
  }
  for (const SafetensorsFile &file : checkpoint.files)
    for (const TensorView &view : file.tensors())
      checkpoint.sorted.push_back(&view);
  sort(checkpoint.sorted, [](const TensorView *a, const TensorView *b) {
    return a->name < b->name;
  });
  for (size_t i = 1; i < checkpoint.sorted.size(); ++i)
    if (checkpoint.sorted[i]->name == checkpoint.sorted[i - 1]->name)
      return createStringError("'" + path + "': tensor '" +
                               checkpoint.sorted[i]->name +
                               "' is in more than one file");
  if (Error error = checkpoint.readConfig(folder))
    return std::move(error);
  return checkpoint;
}

const TensorView *Checkpoint::find(StringRef name) const {
  auto it = lower_bound(sorted, name, [](const TensorView *view, StringRef n) {
    return StringRef(view->name) < n;
  });
  return it != sorted.end() && (*it)->name == name ? *it : nullptr;
}

const json::Object *Checkpoint::config() const {
  return root ? root->getAsObject() : nullptr;
}

const json::Object *Checkpoint::quantizationConfig() const {
  if (const json::Object *object = config()) {
    if (const json::Object *own = object->getObject("quantization_config"))
      return own;
    if (const json::Object *own = object->getObject("compression_config"))
      return own;
    // Models that join text and other inputs keep it with the text model.
    if (const json::Object *text = object->getObject("text_config"))
      if (const json::Object *own = text->getObject("quantization_config"))
        return own;
  }
  return quantization ? quantization->getAsObject() : nullptr;
}

} // namespace humming
