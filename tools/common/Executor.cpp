//===- Executor.cpp - Where a kernel runs ---------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executor.h"
#include "Humming/Runtime/Runtime.h"
#include <array>

using namespace llvm;

namespace humming {

Executor::~Executor() = default;

StringRef stringify(BufferSlot slot) {
  if (slot == BufferSlot::Order) // not a matmul's
    return "order";
  // Five sizes stand between the leading pointers and the others.
  unsigned index = unsigned(slot);
  return LaunchDescription::argumentNames()[index < kNumLeadingSlots
                                                ? index
                                                : index + 5];
}

namespace {
class CudaExecutor : public Executor {
public:
  explicit CudaExecutor(std::shared_ptr<const Device> device)
      : gpu(std::move(device)) {}
  ~CudaExecutor() override {
    for (Buffer &buffer : buffers)
      consumeError(release(buffer));
    if (stream)
      consumeError(gpu->driver().destroyStream(stream));
  }

  Error initialize() {
    if (Error error = gpu->makeCurrent())
      return error;
    Expected<cu::Stream> made = gpu->driver().createStream();
    if (!made)
      return made.takeError();
    stream = *made;
    return Error::success();
  }

  std::string device() const override {
    return gpu->info().name + " (" + gpu->info().chip() + ")";
  }

  Error load(const KernelArtifacts &artifacts) override {
    Expected<std::shared_ptr<const Kernel>> loaded =
        Kernel::load(gpu, artifacts.launch, artifacts.ptx, artifacts.cubin);
    if (!loaded)
      return loaded.takeError();
    kernel = std::move(*loaded);
    return Error::success();
  }

  std::string loadedFrom() const override {
    return kernel ? kernel->loadedFrom() : "";
  }

  Error upload(BufferSlot slot, ArrayRef<uint8_t> image) override {
    Buffer &buffer = buffers[unsigned(slot)];
    if (buffer.bytes != image.size()) {
      if (Error error = release(buffer))
        return error;
      if (image.empty())
        return Error::success();
      Expected<cu::DevicePtr> made = gpu->driver().allocate(image.size());
      if (!made)
        return made.takeError();
      buffer = {*made, image.size()};
    }
    return gpu->driver().copyToDevice(buffer.pointer, image.data(),
                                      image.size());
  }

  Error download(BufferSlot slot, MutableArrayRef<uint8_t> image) override {
    const Buffer &buffer = buffers[unsigned(slot)];
    return gpu->driver().copyToHost(image.data(), buffer.pointer,
                                    std::min(image.size(), buffer.bytes));
  }

  Error launch(const LaunchSizes &sizes) override {
    auto at = [&](BufferSlot slot) -> void * {
      const Buffer &buffer = buffers[unsigned(slot)];
      return buffer.bytes == 0
                 ? nullptr
                 : reinterpret_cast<void *>(buffer.pointer + kGuardBytes);
    };
    if (kernel->description().isQuantize()) {
      QuantizeArguments arguments;
      arguments.x = at(BufferSlot::X);
      arguments.codes = at(BufferSlot::Output);
      arguments.scales = at(BufferSlot::Scales);
      arguments.zeroPoints = at(BufferSlot::ZeroPoints);
      arguments.m = sizes.m;
      arguments.k = sizes.k;
      arguments.ldx = sizes.ldx;
      arguments.ldq = sizes.ldc;
      if (Error error = kernel->launch(stream, arguments))
        return error;
      return gpu->driver().synchronizeStream(stream);
    }
    if (kernel->description().isPack()) {
      PackArguments arguments;
      arguments.source = at(BufferSlot::X);
      arguments.packed = at(BufferSlot::Output);
      arguments.n = sizes.n;
      arguments.k = sizes.k;
      arguments.lds = sizes.ldx;
      if (Error error = kernel->launch(stream, arguments))
        return error;
      return gpu->driver().synchronizeStream(stream);
    }
    if (kernel->description().isGather()) {
      GatherArguments arguments;
      arguments.x = at(BufferSlot::X);
      arguments.order = at(BufferSlot::Order);
      arguments.gathered = at(BufferSlot::Output);
      arguments.m = sizes.m;
      arguments.k = sizes.k;
      arguments.columns = sizes.n;
      arguments.ldx = sizes.ldx;
      arguments.ldg = sizes.ldc;
      if (Error error = kernel->launch(stream, arguments))
        return error;
      return gpu->driver().synchronizeStream(stream);
    }
    DenseArguments arguments;
    arguments.x = at(BufferSlot::X);
    arguments.w = at(BufferSlot::Weights);
    arguments.scales = at(BufferSlot::Scales);
    arguments.zeroPoints = at(BufferSlot::ZeroPoints);
    arguments.bias = at(BufferSlot::Bias);
    arguments.c = at(BufferSlot::Output);
    arguments.workspace = at(BufferSlot::Workspace);
    arguments.globalScales = at(BufferSlot::GlobalScales);
    arguments.activationScales = at(BufferSlot::ActivationScales);
    arguments.activationZeroPoints = at(BufferSlot::ActivationZeroPoints);
    arguments.weightSums = at(BufferSlot::WeightSums);
    size_t workspace = buffers[unsigned(BufferSlot::Workspace)].bytes;
    arguments.workspaceBytes =
        workspace == 0 ? 0 : int64_t(workspace - 2 * kGuardBytes);
    arguments.m = sizes.m;
    arguments.n = sizes.n;
    arguments.k = sizes.k;
    arguments.ldx = sizes.ldx;
    arguments.ldc = sizes.ldc;
    if (Error error = kernel->checkPointers(arguments))
      return error;
    if (Error error = kernel->launch(stream, arguments))
      return error;
    return gpu->driver().synchronizeStream(stream);
  }

private:
  struct Buffer {
    cu::DevicePtr pointer = 0;
    size_t bytes = 0;
  };
  Error release(Buffer &buffer) {
    if (buffer.bytes == 0)
      return Error::success();
    cu::DevicePtr pointer = buffer.pointer;
    buffer = {};
    return gpu->driver().free(pointer);
  }

  std::shared_ptr<const Device> gpu;
  std::shared_ptr<const Kernel> kernel;
  cu::Stream stream = nullptr;
  std::array<Buffer, kNumBufferSlots> buffers;
};
} // namespace

Expected<std::unique_ptr<Executor>> createCudaExecutor(int ordinal) {
  Expected<const CudaDriver *> driver = CudaDriver::get();
  if (!driver)
    return driver.takeError();
  Expected<std::shared_ptr<const Device>> device =
      Device::open(**driver, ordinal);
  if (!device)
    return device.takeError();
  auto executor = std::make_unique<CudaExecutor>(std::move(*device));
  if (Error error = executor->initialize())
    return std::move(error);
  return std::move(executor);
}

Expected<std::unique_ptr<Executor>> createExecutor(StringRef where,
                                                   int ordinal) {
  if (where == "cuda")
    return createCudaExecutor(ordinal);
  if (where == "emulator")
    return createEmulatorExecutor();
  return createStringError(inconvertibleErrorCode(),
                           "--on: expected cuda or emulator, got '" + where +
                               "'");
}

} // namespace humming
