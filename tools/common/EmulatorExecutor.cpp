//===- EmulatorExecutor.cpp - Run kernels without a GPU -------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The emulator checks bounds, races and barriers by itself: it is given the
// data alone, so that a read of a guard, which a GPU would let pass, is a
// fault. Nothing of c and of the partial sums counts as written before a
// launch: reading it is a fault, and so is an element of c that a launch leaves
// unwritten. Every launch has another seed, that is, another schedule.
//
//===----------------------------------------------------------------------===//

#include "Executor.h"
#include "Humming/Emulator/Emulator.h"
#include "Humming/Emulator/TensorMap.h"
#include "llvm/ADT/StringSwitch.h"
#include <array>
#include <optional>
#include <thread>

using namespace llvm;

namespace humming {

namespace {
class EmulatorExecutor : public Executor {
public:
  std::string device() const override { return "emulator"; }
  std::string loadedFrom() const override { return program ? "PTX" : ""; }

  Error load(const KernelArtifacts &artifacts) override {
    if (artifacts.ptx.empty())
      return createStringError(inconvertibleErrorCode(),
                               "the emulator runs PTX: expected PTX for " +
                                   artifacts.name + ", got a cubin alone");
    Expected<Program> parsed = Program::parse(artifacts.ptx);
    if (!parsed)
      return parsed.takeError();
    program.emplace(std::move(*parsed));
    launchDescription = artifacts.launch;
    report.reset();
    launches = 0;
    return Error::success();
  }

  Error upload(BufferSlot slot, ArrayRef<uint8_t> image) override {
    images[unsigned(slot)] = image.vec();
    return Error::success();
  }

  Error download(BufferSlot slot, MutableArrayRef<uint8_t> image) override {
    const std::vector<uint8_t> &from = images[unsigned(slot)];
    std::copy_n(from.begin(), std::min(from.size(), image.size()),
                image.begin());
    return Error::success();
  }

  Error launch(const LaunchSizes &sizes) override {
    if (sizes.m == 0)
      return Error::success();
    Memory memory;
    ArgumentPacker arguments;
    for (StringRef name : launchDescription.arguments()) {
      if (name.ends_with("_map")) {
        const LaunchDescription::TensorMap &map =
            launchDescription.tensorMaps[name == "w_map"];
        BufferSlot of = map.of == "w" ? BufferSlot::Weights : BufferSlot::X;
        Expected<ptx::TensorMapBytes> bytes =
            encode(launchDescription.shapeOf(map, sizes.m, sizes.n, sizes.k,
                                             sizes.ldx),
                   addresses[unsigned(of)]);
        if (!bytes)
          return bytes.takeError();
        arguments.raw(bytes->data(), bytes->size(), 64);
      } else if (std::optional<BufferSlot> slot = slotOf(name))
        arguments.pointer(map(*slot, memory));
      else
        arguments.i32(sizeOf(name, sizes));
    }

    // Few processors, so that a persistent block has several tiles.
    LaunchDescription::Grid grid = launchDescription.grid(
        launchDescription.isPack() ? sizes.k : sizes.m,
        launchDescription.isQuantize() ? sizes.k : sizes.n,
        /*processors=*/2);
    LaunchConfig config;
    config.grid = {grid.x, grid.y, grid.z};
    config.block = {launchDescription.blockThreads, 1, 1};
    config.dynamicSharedBytes = launchDescription.sharedBytes;
    config.threads = std::max(1u, std::thread::hardware_concurrency());
    config.seed = launches++;
    uint64_t weights = addresses[unsigned(BufferSlot::Weights)];
    memory.countReads(weights);
    uint64_t output = addresses[unsigned(BufferSlot::Output)];
    uint64_t workspace = addresses[unsigned(BufferSlot::Workspace)];
    if (output && launchDescription.isMatmul())
      memory.setUninitialized(output, 0, memory.bytes(output).size());
    if (workspace) {
      uint64_t counters =
          uint64_t(launchDescription.counterBytes(sizes.m, sizes.n));
      memory.setUninitialized(workspace, counters,
                              memory.bytes(workspace).size());
    }
    Expected<Report> done = program->launch(launchDescription.kernelName,
                                            config, arguments.bytes(), memory);
    if (!done)
      return createStringError(inconvertibleErrorCode(),
                               "schedule " + Twine(config.seed) + ": " +
                                   toString(done.takeError()));
    report.emplace(std::move(*done));
    weightReads = memory.readCounts(weights);
    return launchDescription.isMatmul() ? checkWritten(memory, output, sizes)
                                        : Error::success();
  }

  std::optional<json::Object> counters() const override {
    if (!report)
      return std::nullopt;
    json::Object object = report->toJSON();
    if (const LoopReport *main = report->mainLoop())
      object["main_loop"] = main->counters.toJSON();
    // How often the kernel read a word of the packed weights.
    object["weight_reads"] = json::Object{{"least", weightReads.first},
                                          {"most", weightReads.second}};
    return object;
  }

private:
  static std::optional<BufferSlot> slotOf(StringRef name) {
    if (name == "codes" || name == "packed" || name == "gathered")
      return BufferSlot::Output;
    if (name == "source")
      return BufferSlot::X;
    for (unsigned i = 0; i < kNumBufferSlots; ++i)
      if (stringify(BufferSlot(i)) == name)
        return BufferSlot(i);
    return std::nullopt;
  }
  /// What the driver's encoder does.
  static Expected<ptx::TensorMapBytes>
  encode(const LaunchDescription::TensorMapShape &shape, uint64_t address) {
    ptx::TensorMap map;
    map.base = address;
    map.rank = 2;
    map.element = shape.elementBytes == 1 ? ptx::TensorElement::U8
                                          : ptx::TensorElement::U16;
    map.swizzle = ptx::TensorSwizzle::B128;
    map.dims = {shape.columns, shape.rows};
    map.strides = {shape.elementBytes, shape.stride};
    map.box = {shape.boxColumns, shape.boxRows};
    return ptx::encodeTensorMap(map);
  }
  static int32_t sizeOf(StringRef name, const LaunchSizes &sizes) {
    return StringSwitch<int32_t>(name)
        .Case("m", sizes.m)
        .Cases({"n", "columns"}, sizes.n)
        .Case("k", sizes.k)
        .Cases({"ldx", "lds"}, sizes.ldx)
        .Cases({"ldc", "ldq", "ldg"}, sizes.ldc)
        .Default(0);
  }
  /// Error: names the first element of c that the launch left as it was.
  Error checkWritten(const Memory &memory, uint64_t output,
                     const LaunchSizes &sizes) const {
    Expected<NumberFormat> format =
        NumberFormat::parse(launchDescription.output);
    if (!format)
      return format.takeError();
    uint64_t element = format->bits / 8;
    for (int64_t row = 0; output && row < sizes.m; ++row) {
      uint64_t begin = uint64_t(row) * uint64_t(sizes.ldc) * element;
      uint64_t end = begin + uint64_t(sizes.n) * element;
      uint64_t at = memory.firstUninitialized(output, begin, end);
      if (at != end)
        return createStringError(inconvertibleErrorCode(),
                                 "c was not written: row " + Twine(row) +
                                     ", feature " +
                                     Twine((at - begin) / element));
    }
    return Error::success();
  }
  /// The device address of a buffer's data; 0 if the kernel gets none.
  uint64_t map(BufferSlot slot, Memory &memory) {
    MutableArrayRef<uint8_t> image = images[unsigned(slot)];
    addresses[unsigned(slot)] = 0;
    if (image.empty())
      return 0;
    uint64_t address = memory.addExternal(
        stringify(slot), image.drop_front(kGuardBytes).drop_back(kGuardBytes));
    bool isResult = slot == BufferSlot::Output || slot == BufferSlot::Workspace;
    if (launchDescription.isQuantize() &&
        launchDescription.activationScale == "token")
      isResult |= slot == BufferSlot::Scales || slot == BufferSlot::ZeroPoints;
    if (!isResult)
      memory.setReadOnly(address);
    addresses[unsigned(slot)] = address;
    return address;
  }

  std::optional<Program> program;
  std::optional<Report> report;          ///< of the last launch
  uint64_t launches = 0;                 ///< of the loaded kernel
  std::pair<double, double> weightReads; ///< of the last launch
  std::array<uint64_t, kNumBufferSlots> addresses = {}; ///< of the last launch
  LaunchDescription launchDescription;
  std::array<std::vector<uint8_t>, kNumBufferSlots> images;
};
} // namespace

std::unique_ptr<Executor> createEmulatorExecutor() {
  return std::make_unique<EmulatorExecutor>();
}

} // namespace humming
