//===- Runtime.cpp - Devices, kernels and launches ------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Runtime/Runtime.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace llvm;

namespace humming {

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

std::string DeviceInfo::chip() const {
  return "sm_" + std::to_string(chipNumber());
}

Expected<std::shared_ptr<const Device>> Device::open(const CudaDriver &driver,
                                                     int ordinal) {
  Expected<int> count = driver.deviceCount();
  if (!count)
    return count.takeError();
  if (*count <= 0)
    return makeError("no CUDA device: the driver reports none");
  if (ordinal < 0 || ordinal >= *count)
    return makeError("device: expected an ordinal from 0 to " +
                     Twine(*count - 1) + ", got " + Twine(ordinal));

  std::shared_ptr<Device> device(new Device(driver));
  DeviceInfo &facts = device->facts;
  facts.driverVersion = driver.version();
  cu::Device &handle = device->handle;
  if (Error error = driver.check(driver.table().deviceGet(&handle, ordinal),
                                 "cannot get device " + Twine(ordinal)))
    return std::move(error);
  facts.ordinal = ordinal;
  Expected<std::string> name = driver.deviceName(handle);
  if (!name)
    return name.takeError();
  facts.name = std::move(*name);
  std::pair<cu::DeviceAttribute, int *> needed[] = {
      {cu::kComputeMajor, &facts.computeMajor},
      {cu::kComputeMinor, &facts.computeMinor},
      {cu::kMultiprocessorCount, &facts.multiprocessors},
      {cu::kMaxThreadsPerBlock, &facts.maxThreadsPerBlock},
      {cu::kMaxSharedPerBlockOptin, &facts.maxSharedPerBlock},
      {cu::kMaxGridX, &facts.maxGridX},
      {cu::kMaxGridY, &facts.maxGridY},
      {cu::kMaxGridZ, &facts.maxGridZ}};
  for (auto [attribute, slot] : needed) {
    Expected<int> value = driver.deviceAttribute(attribute, handle);
    if (!value)
      return value.takeError();
    *slot = *value;
  }

  // Not reported by every device (unified memory has no memory clock of its
  // own): zero, not an error.
  auto optional = [&](cu::DeviceAttribute attribute) {
    Expected<int> value = driver.deviceAttribute(attribute, handle);
    if (value)
      return std::max(*value, 0);
    consumeError(value.takeError());
    return 0;
  };
  facts.l2Bytes = optional(cu::kL2CacheBytes);
  double clockHz = 1e3 * optional(cu::kMemoryClockKHz);
  double busBytes = optional(cu::kMemoryBusWidthBits) / 8.0;
  facts.memoryBandwidth = 2 * clockHz * busBytes; // double data rate
  if (facts.memoryBandwidth <= 0) {
    facts.memoryBandwidth = 200e9;
    facts.bandwidthAssumed = true;
  }

  Expected<cu::Context> context = driver.retainPrimaryContext(handle);
  if (!context)
    return context.takeError();
  device->context = *context;
  return std::shared_ptr<const Device>(std::move(device));
}

Device::~Device() {
  if (context)
    (void)api.table().primaryContextRelease(handle);
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// A cubin runs on devices of its own major version whose minor version is not
/// smaller (CUDA C++ programming guide, binary compatibility).
static bool canRunCubin(unsigned cubinChip, const DeviceInfo &device) {
  return cubinChip / 10 == unsigned(device.computeMajor) &&
         cubinChip % 10 <= unsigned(device.computeMinor);
}

static std::string cudaVersion(int version) {
  return formatv("{0}.{1}", version / 1000, version % 1000 / 10).str();
}

static std::string ptxVersionName(int version) {
  return formatv("{0}.{1}", version / 10, version % 10).str();
}

Error Kernel::loadPtx(StringRef ptx, const LoadOptions &options) {
  const DeviceInfo &info = owner->info();
  const CudaDriver &driver = owner->driver();
  Expected<PtxHeader> header = parsePtxHeader(ptx);
  if (!header)
    return header.takeError();
  Expected<unsigned> target = parseChipNumber(header->target);
  if (!target)
    return target.takeError();
  // PTX with an architecture suffix runs on that architecture alone.
  bool isSpecific = header->target.ends_with("a");
  if (*target > info.chipNumber() ||
      (isSpecific && *target != info.chipNumber()))
    return makeError("PTX for " + header->target + " cannot run on " +
                     info.name + " (" + info.chip() + ")");

  if (options.assembler && options.assembler->kind != AssemblerKind::Driver) {
    std::string chip = isSpecific ? header->target.str() : info.chip();
    Expected<AssembledKernel> assembled =
        assemble(*options.assembler, ptx, chip, &driver);
    if (!assembled)
      return assembled.takeError();
    cu::Result code;
    Expected<cu::Module> loaded =
        driver.loadModule(assembled->cubin.data(),
                          "the cubin made by " + assembled->assembler, code);
    if (loaded) {
      module = *loaded;
      origin = "PTX by " + assembled->assembler;
      return Error::success();
    }
    // A cubin from a newer toolkit than the driver's: the driver may still
    // manage the PTX itself.
    consumeError(loaded.takeError());
  }

  std::string text = ptx.str();
  cu::Result code;
  Expected<cu::Module> loaded = driver.loadModule(
      text.c_str(), "the PTX of " + launchDescription.kernelName, code);
  int known = maxPtxVersion(driver.version());
  if (loaded) {
    origin = "PTX by the driver";
  } else if (code == cu::kUnsupportedPtxVersion && header->version > known) {
    // The version line states what the generator knows, which may be more than
    // what the code uses: try the newest that the driver knows.
    consumeError(loaded.takeError());
    size_t at = text.find(".version");
    size_t end = text.find('\n', at);
    text.replace(at, end - at, ".version " + ptxVersionName(known));
    loaded = driver.loadModule(
        text.c_str(),
        "the PTX of " + launchDescription.kernelName + ", whose version " +
            ptxVersionName(header->version) + " was lowered to " +
            ptxVersionName(known) + " for the driver of CUDA " +
            cudaVersion(driver.version()) + " (it needs one of CUDA " +
            cudaVersion(minCudaVersion(header->version)) + " or newer)",
        code);
    origin = "PTX by the driver, version lowered from " +
             ptxVersionName(header->version) + " to " + ptxVersionName(known);
  }
  if (!loaded)
    return loaded.takeError();
  module = *loaded;
  return Error::success();
}

Error Kernel::loadModule(StringRef ptx, StringRef cubin,
                         const LoadOptions &options) {
  std::string whyNotCubin;
  if (!cubin.empty()) {
    Expected<unsigned> chip = cubinChipNumber(cubin);
    if (!chip) {
      whyNotCubin = toString(chip.takeError());
    } else if (!canRunCubin(*chip, owner->info())) {
      whyNotCubin = formatv("cubin for sm_{0} cannot run on {1} ({2})", *chip,
                            owner->info().name, owner->info().chip())
                        .str();
    } else {
      cu::Result code;
      Expected<cu::Module> loaded = owner->driver().loadModule(
          cubin.data(), "the cubin of " + launchDescription.kernelName, code);
      if (loaded) {
        module = *loaded;
        origin = formatv("cubin (sm_{0})", *chip).str();
        return Error::success();
      }
      whyNotCubin = toString(loaded.takeError());
    }
  }
  if (ptx.empty())
    return makeError(
        whyNotCubin.empty()
            ? "cannot load " + Twine(launchDescription.kernelName) +
                  ": neither a cubin nor PTX was given"
            : Twine(whyNotCubin) + "; there is no PTX to fall back to");
  if (Error error = loadPtx(ptx, options)) {
    if (whyNotCubin.empty())
      return error;
    return makeError(toString(std::move(error)) + "\n(and " + whyNotCubin +
                     ")");
  }
  return Error::success();
}

Error Kernel::configure() {
  const CudaDriver &driver = owner->driver();
  const DriverTable &table = driver.table();
  const DeviceInfo &info = owner->info();
  const LaunchDescription &d = launchDescription;

  if (!d.tensorMaps.empty() && !table.tensorMapEncodeTiled)
    return makeError(d.kernelName +
                     ": expected a driver with cuTensorMapEncodeTiled (CUDA "
                     "12.0 or newer), which encodes its tensor maps, got one "
                     "of CUDA " +
                     cudaVersion(driver.version()));
  Expected<cu::Function> found = driver.getFunction(module, d.kernelName);
  if (!found)
    return found.takeError();
  function = *found;
  int staticShared = 0;
  std::pair<int, int *> queries[] = {
      {cu::kFunctionRegisters, &numRegisters},
      {cu::kFunctionLocalBytes, &numLocalBytes},
      {cu::kFunctionStaticShared, &staticShared}};
  for (auto [attribute, slot] : queries)
    if (Error error =
            driver.check(table.functionGetAttribute(slot, attribute, function),
                         "cannot read attribute " + Twine(attribute) + " of " +
                             d.kernelName))
      return error;

  if (int64_t(d.blockThreads) > info.maxThreadsPerBlock)
    return makeError(d.kernelName + ": expected at most " +
                     Twine(info.maxThreadsPerBlock) + " threads a block on " +
                     info.name + ", got " + Twine(d.blockThreads));
  // Static shared memory is left to the driver's own check: from sm_90 on it
  // counts a kilobyte that the system keeps, which the opt-in maximum excludes.
  if (int64_t(d.sharedBytes) > info.maxSharedPerBlock)
    return makeError(d.kernelName + ": expected at most " +
                     Twine(info.maxSharedPerBlock) +
                     " bytes of shared memory a block on " + info.name +
                     ", got " + Twine(d.sharedBytes) +
                     "; choose a config with fewer stages or a smaller tile");
  // More than 48 KiB needs an opt-in.
  if (d.sharedBytes + unsigned(staticShared) > 48 * 1024)
    if (Error error = driver.check(
            table.functionSetAttribute(function, cu::kFunctionMaxDynamicShared,
                                       int(d.sharedBytes)),
            "cannot let " + d.kernelName + " use " + Twine(d.sharedBytes) +
                " bytes of dynamic shared memory"))
      return error;
  return Error::success();
}

Expected<std::shared_ptr<const Kernel>>
Kernel::load(std::shared_ptr<const Device> device,
             const LaunchDescription &launch, StringRef ptx, StringRef cubin,
             const LoadOptions &options) {
  if (Error error = launch.verify())
    return std::move(error);
  if (Error error = device->makeCurrent())
    return std::move(error);
  std::shared_ptr<Kernel> kernel(new Kernel(std::move(device), launch));
  // verify() has parsed these.
  kernel->activationBits = cantFail(parseFormatBits(launch.activation));
  kernel->outputBits = cantFail(parseFormatBits(launch.output));
  if (Error error = kernel->loadModule(ptx, cubin, options))
    return std::move(error);
  if (Error error = kernel->configure())
    return std::move(error);
  return std::shared_ptr<const Kernel>(std::move(kernel));
}

Kernel::~Kernel() {
  if (!module)
    return;
  consumeError(owner->makeCurrent());
  (void)owner->driver().table().moduleUnload(module);
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

Error Kernel::checkArguments(const DenseArguments &a) const {
  const LaunchDescription &d = launchDescription;
  // The message is built only on failure: the good path allocates nothing.
  auto fail = [&](StringRef argument, const Twine &expected,
                  const Twine &got) -> Error {
    return makeError("launch of " + d.kernelName + ": " + argument +
                     ": expected " + expected + ", got " + got);
  };
  if (!d.isMatmul())
    return fail("arguments", "those of a " + d.operation + " kernel",
                "those of a matmul");
  if (a.m < 0)
    return fail("m", "0 or more", Twine(a.m));
  if (a.n <= 0)
    return fail("n", "1 or more", Twine(a.n));
  if (a.k <= 0)
    return fail("k", "1 or more", Twine(a.k));
  if (a.m == 0)
    return Error::success();
  if (a.ldx < a.k)
    return fail("ldx", "at least k = " + Twine(a.k), Twine(a.ldx));
  if (a.ldc < a.n)
    return fail("ldc", "at least n = " + Twine(a.n), Twine(a.ldc));

  struct {
    StringLiteral name;
    int32_t value, divisor;
  } const sizes[] = {{"k", a.k, d.kDivisor},
                     {"ldx", a.ldx, d.kDivisor},
                     {"n", a.n, d.nDivisor},
                     {"ldc", a.ldc, d.nDivisor}};
  for (const auto &size : sizes)
    if (size.value % size.divisor != 0)
      return fail(size.name,
                  "a multiple of " + Twine(size.divisor) +
                      ", which the kernel was compiled for",
                  Twine(size.value));

  // x and c are read and written in pieces as wide as the divisibility allows,
  // at most 16 bytes; packed buffers always in pieces of 16.
  unsigned alignX = std::min(16u, activationBits * unsigned(d.kDivisor) / 8);
  unsigned alignC = std::min(16u, outputBits / 8 * unsigned(d.nDivisor));
  bool hasZeroPoints = d.zeroPoint != "none";
  bool needsWorkspace = d.needsWorkspace();
  struct {
    StringLiteral name;
    const void *pointer;
    bool needed;
    unsigned alignment;
  } const pointers[] = {
      {"x", a.x, true, alignX},
      {"w", a.w, true, 16},
      {"scales", a.scales, true, 16},
      {"zero_points", a.zeroPoints, hasZeroPoints, 16},
      {"bias", a.bias, d.hasBias, alignC},
      {"c", a.c, true, alignC},
      {"workspace", a.workspace, needsWorkspace, 16},
      {"global_scales", a.globalScales, d.globalScale != "none", 4},
      {"activation_scales", a.activationScales, d.activationScale != "none",
       d.activationGroup != 0 ? 16u : 4u},
      {"activation_zero_points", a.activationZeroPoints, d.activationZeroPoint,
       4},
      {"weight_sums", a.weightSums, d.activationZeroPoint, 4}};
  for (const auto &entry : pointers) {
    if (entry.needed && !entry.pointer)
      return fail(entry.name, "a device pointer", "null");
    if (!entry.needed) {
      // A workspace may be passed to kernels that need none; a bias or zero
      // points that would be ignored are a mistake.
      if (entry.pointer && entry.name != "workspace")
        return fail(entry.name, "null (the kernel was compiled without it)",
                    "a pointer");
      continue;
    }
    if (reinterpret_cast<uintptr_t>(entry.pointer) % entry.alignment != 0)
      return fail(
          entry.name,
          "an address that is a multiple of " + Twine(entry.alignment),
          "0x" + Twine::utohexstr(reinterpret_cast<uintptr_t>(entry.pointer)));
  }
  if (needsWorkspace) {
    int64_t bytes = d.workspaceBytes(a.m, a.n);
    if (a.workspaceBytes < bytes)
      return fail("workspace",
                  "at least " + Twine(bytes) + " bytes for m = " + Twine(a.m) +
                      " and n = " + Twine(a.n),
                  Twine(a.workspaceBytes));
  }
  const DeviceInfo &info = owner->info();
  LaunchDescription::Grid grid = d.grid(a.m, a.n, info.multiprocessors);
  if (grid.y > unsigned(info.maxGridY))
    return fail("m",
                "at most " + Twine(int64_t(info.maxGridY) * d.blockM) +
                    " (the grid's limit at block_m = " + Twine(d.blockM) + ")",
                Twine(a.m));
  if (grid.x > unsigned(info.maxGridX))
    return fail("n",
                "at most " + Twine(int64_t(info.maxGridX) * d.blockN) +
                    " (the grid's limit at block_n = " + Twine(d.blockN) + ")",
                Twine(a.n));
  return Error::success();
}

/// As many layers as share a kernel in a model of several matrices a block; a
/// look at all takes less than an encoding.
static constexpr size_t kRememberedMaps = 64;

Expected<Kernel::TensorMap>
Kernel::encode(const void *pointer,
               const LaunchDescription::TensorMapShape &shape) const {
  std::lock_guard<std::mutex> lock(mapsMutex);
  for (const EncodedMap &known : maps)
    if (known.pointer == pointer && known.shape == shape)
      return known.map;

  // Values of cuda.h: CUtensorMapDataType, CUtensorMapInterleave,
  // CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill.
  constexpr int kUint8 = 0, kUint16 = 1, kNoInterleave = 0, kSwizzle128 = 3,
                kPromote256 = 3, kFillZeros = 0;
  EncodedMap entry;
  entry.pointer = pointer;
  entry.shape = shape;
  const uint64_t extents[] = {shape.columns, shape.rows};
  const uint64_t strides[] = {shape.stride};
  const unsigned box[] = {shape.boxColumns, shape.boxRows};
  const unsigned steps[] = {1, 1};
  const CudaDriver &driver = owner->driver();
  auto call = [&] {
    return driver.table().tensorMapEncodeTiled(
        entry.map.bytes, shape.elementBytes == 1 ? kUint8 : kUint16, 2,
        const_cast<void *>(pointer), extents, strides, box, steps,
        kNoInterleave, kSwizzle128, kPromote256, kFillZeros);
  };
  cu::Result result = call();
  if (result == cu::kInvalidContext) {
    if (Error error = owner->makeCurrent())
      return std::move(error);
    result = call();
  }
  if (result != cu::kSuccess)
    return driver.check(
        result,
        formatv("cannot encode the tensor map of {0} x {1} elements of {2} "
                "bytes, {3} bytes a row, for {4}",
                shape.rows, shape.columns, shape.elementBytes, shape.stride,
                launchDescription.kernelName)
            .str());
  if (maps.size() < kRememberedMaps) {
    maps.push_back(entry);
  } else {
    maps[oldestMap] = entry;
    oldestMap = (oldestMap + 1) % kRememberedMaps;
  }
  return entry.map;
}

Error Kernel::launch(cu::Stream stream, const DenseArguments &a) const {
  if (Error error = checkArguments(a))
    return error;
  if (a.m == 0)
    return Error::success();
  const LaunchDescription &d = launchDescription;
  LaunchDescription::Grid grid =
      d.grid(a.m, a.n, owner->info().multiprocessors);
  DenseArguments copy = a;
  // The driver copies parameters, maps too, before the launch returns.
  TensorMap maps[2];
  for (auto [i, map] : llvm::enumerate(d.tensorMaps)) {
    Expected<TensorMap> encoded =
        encode(map.of == "w" ? a.w : a.x, d.shapeOf(map, a.m, a.n, a.k, a.ldx));
    if (!encoded)
      return encoded.takeError();
    maps[i] = *encoded;
  }
  void *parameters[] = {&copy.x,
                        &copy.w,
                        &copy.scales,
                        &copy.zeroPoints,
                        &copy.bias,
                        &copy.c,
                        &copy.workspace,
                        &copy.m,
                        &copy.n,
                        &copy.k,
                        &copy.ldx,
                        &copy.ldc,
                        &copy.globalScales,
                        &copy.activationScales,
                        &copy.activationZeroPoints,
                        &copy.weightSums,
                        &maps[0],
                        &maps[1]};
  return launchGrid(stream, grid, parameters, [&] {
    return formatv("m = {0}, n = {1}, k = {2}", a.m, a.n, a.k).str();
  });
}

Error Kernel::launch(cu::Stream stream, const QuantizeArguments &a) const {
  if (Error error = checkArguments(a))
    return error;
  if (a.m == 0)
    return Error::success();
  QuantizeArguments copy = a;
  void *parameters[] = {&copy.x, &copy.codes, &copy.scales, &copy.zeroPoints,
                        &copy.m, &copy.k,     &copy.ldx,    &copy.ldq};
  return launchGrid(stream, launchDescription.grid(a.m, a.k), parameters, [&] {
    return formatv("m = {0}, k = {1}", a.m, a.k).str();
  });
}

Error Kernel::checkArguments(const QuantizeArguments &a) const {
  const LaunchDescription &d = launchDescription;
  auto fail = [&](StringRef argument, const Twine &expected,
                  const Twine &got) -> Error {
    return makeError("launch of " + d.kernelName + ": " + argument +
                     ": expected " + expected + ", got " + got);
  };
  if (!d.isQuantize())
    return fail("arguments", "those of a matmul", "those of a quantize kernel");
  if (a.m < 0)
    return fail("m", "0 or more", Twine(a.m));
  if (a.k <= 0)
    return fail("k", "1 or more", Twine(a.k));
  if (a.m == 0)
    return Error::success();
  int64_t columns = int64_t(a.k) * (d.gate == "none" ? 1 : 2);
  if (a.ldx < columns)
    return fail("ldx", "at least " + Twine(columns), Twine(a.ldx));
  if (a.ldq < a.k)
    return fail("ldq", "at least k = " + Twine(a.k), Twine(a.ldq));
  // Pairs of 4-bit codes share a byte.
  int32_t codesDivisor = std::max<int32_t>(d.kDivisor, outputBits == 4 ? 2 : 1);
  struct {
    StringLiteral name;
    int32_t value, divisor;
  } const sizes[] = {{"k", a.k, d.kDivisor},
                     {"ldx", a.ldx, d.kDivisor},
                     {"ldq", a.ldq, codesDivisor}};
  for (const auto &size : sizes)
    if (size.value % size.divisor != 0)
      return fail(size.name,
                  "a multiple of " + Twine(size.divisor) +
                      ", which the kernel was compiled for",
                  Twine(size.value));
  struct {
    StringLiteral name;
    const void *pointer;
    bool needed;
    unsigned alignment;
  } const pointers[] = {
      {"x", a.x, true, 2u * unsigned(d.kDivisor)},
      {"codes", a.codes, true,
       std::max(1u, unsigned(d.kDivisor) * outputBits / 8)},
      {"scales", a.scales, true, d.activationScaleFormat == "e8m0" ? 1u : 4u},
      {"zero_points", a.zeroPoints, d.activationZeroPoint, 4}};
  for (const auto &entry : pointers) {
    if (entry.needed != (entry.pointer != nullptr))
      return fail(entry.name,
                  entry.needed ? "a device pointer"
                               : "null (the kernel was compiled without it)",
                  entry.needed ? "null" : "a pointer");
    if (reinterpret_cast<uintptr_t>(entry.pointer) % entry.alignment != 0)
      return fail(
          entry.name,
          "an address that is a multiple of " + Twine(entry.alignment),
          "0x" + Twine::utohexstr(reinterpret_cast<uintptr_t>(entry.pointer)));
  }
  LaunchDescription::Grid grid = d.grid(a.m, a.k);
  const DeviceInfo &info = owner->info();
  if (grid.x > unsigned(info.maxGridX))
    return fail("m",
                "at most " + Twine(int64_t(info.maxGridX) * d.blockM) +
                    " (the grid's limit at block_m = " + Twine(d.blockM) + ")",
                Twine(a.m));
  if (grid.y > unsigned(info.maxGridY))
    return fail("k",
                "at most " + Twine(int64_t(info.maxGridY) * d.blockN) +
                    " (the grid's limit at block_n = " + Twine(d.blockN) + ")",
                Twine(a.k));
  return Error::success();
}

Error Kernel::launchGrid(cu::Stream stream, LaunchDescription::Grid grid,
                         MutableArrayRef<void *> arguments,
                         function_ref<std::string()> sizes) const {
  const LaunchDescription &d = launchDescription;
  void **parameters = arguments.data();
  const CudaDriver &driver = owner->driver();
  const DriverTable &table = driver.table();
  auto call = [&]() -> cu::Result {
    if (table.launchKernelEx) {
      cu::LaunchAttribute early = {};
      early.id = cu::kProgrammaticStreamSerialization;
      early.value = 1;
      cu::LaunchConfig config = {
          grid.x,        grid.y, grid.z, d.blockThreads,         1, 1,
          d.sharedBytes, stream, &early, d.earlyLaunch ? 1u : 0u};
      return table.launchKernelEx(&config, function, parameters, nullptr);
    }
    return table.launchKernel(function, grid.x, grid.y, grid.z, d.blockThreads,
                              1, 1, d.sharedBytes, stream, parameters, nullptr);
  };
  cu::Result result = call();
  // A thread that never used CUDA has no current context. Asking first would
  // cost every launch a call; so ask when the launch is refused.
  if (LLVM_UNLIKELY(result == cu::kInvalidContext)) {
    if (Error error = owner->makeCurrent())
      return error;
    result = call();
  }
  if (LLVM_LIKELY(result == cu::kSuccess))
    return Error::success();
  return driver.check(
      result, formatv("cannot launch {0} (grid {1}x{2}x{3}, block {4}, {5} "
                      "bytes of shared memory, {6})",
                      d.kernelName, grid.x, grid.y, grid.z, d.blockThreads,
                      d.sharedBytes, sizes())
                  .str());
}

Error Kernel::checkPointers(const DenseArguments &a) const {
  constexpr int kMemoryType = 2; // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
  constexpr unsigned kHost = 1;  // CU_MEMORYTYPE_HOST
  if (Error error = owner->makeCurrent())
    return error;
  ArrayRef<StringLiteral> names = LaunchDescription::argumentNames();
  const std::pair<StringRef, const void *> pointers[] = {
      {names[0], a.x},
      {names[1], a.w},
      {names[2], a.scales},
      {names[3], a.zeroPoints},
      {names[4], a.bias},
      {names[5], a.c},
      {names[6], a.workspace},
      {names[12], a.globalScales},
      {names[13], a.activationScales},
      {names[14], a.activationZeroPoints},
      {names[15], a.weightSums}};
  for (auto [name, pointer] : pointers) {
    if (!pointer)
      continue;
    unsigned type = 0;
    cu::Result result = owner->driver().table().pointerGetAttribute(
        &type, kMemoryType, reinterpret_cast<cu::DevicePtr>(pointer));
    if (result != cu::kSuccess || type == kHost)
      return makeError("launch of " + launchDescription.kernelName + ": " +
                       name + ": expected a device pointer, got " +
                       (result == cu::kSuccess
                            ? "host memory"
                            : "an address that the driver does not know "
                              "(host memory, or freed)"));
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// KernelSet
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<const Kernel>>
KernelSet::prepare(const CudaDriver &driver, StringRef name, cu::Stream stream,
                   Loader load) {
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<Slot> &entry = slots[name];
    if (!entry)
      entry = std::make_shared<Slot>();
    if (entry->kernel)
      return entry->kernel;
    slot = entry;
  }
  Expected<bool> capturing = driver.isCapturing(stream);
  if (!capturing)
    return capturing.takeError();
  if (*capturing)
    return makeError("kernel '" + name +
                     "' is not prepared and the stream is being captured: call "
                     "prepare() for it before the capture begins");
  std::lock_guard<std::mutex> loadLock(slot->loading);
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (slot->kernel)
      return slot->kernel;
  }
  Expected<std::shared_ptr<const Kernel>> kernel = load();
  if (!kernel)
    return kernel.takeError();
  std::lock_guard<std::mutex> lock(mutex);
  slot->kernel = *kernel;
  return slot->kernel;
}

std::shared_ptr<const Kernel> KernelSet::find(StringRef name) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = slots.find(name);
  return it == slots.end() ? nullptr : it->second->kernel;
}

Error KernelSet::launch(StringRef name, cu::Stream stream,
                        const DenseArguments &arguments) const {
  std::shared_ptr<const Kernel> kernel = find(name);
  if (!kernel)
    return makeError("kernel '" + name +
                     "' is not prepared: call prepare() for it first, outside "
                     "of a stream capture");
  return kernel->launch(stream, arguments);
}

size_t KernelSet::size() const {
  std::lock_guard<std::mutex> lock(mutex);
  size_t count = 0;
  for (const auto &entry : slots)
    count += entry.second->kernel != nullptr;
  return count;
}

} // namespace humming
