//===- CudaDriver.cpp - The CUDA driver, found at run time ----------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Runtime/CudaDriver.h"
#include "DynamicLibrary.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace llvm;

namespace humming {

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

using GetProcAddress = cu::Result (*)(const char *symbol, void **function,
                                      int cudaVersion, unsigned long long flags,
                                      void *status);

/// The symbol itself, else what cuGetProcAddress (CUDA 11.3 and newer) gives
/// for it. That function takes the plain name and a CUDA version and answers
/// with the newest signature of that version; 11.0 is the version whose
/// signatures DriverEntries.def holds, except for what came later.
static void *findDriverSymbol(void *library, StringRef symbol) {
  if (void *function = dlsym(library, symbol.str().c_str()))
    return function;
  bool isV2 = true;
  void *query = dlsym(library, "cuGetProcAddress_v2");
  if (!query) {
    isV2 = false;
    query = dlsym(library, "cuGetProcAddress");
  }
  if (!query)
    return nullptr;
  StringRef plain = symbol;
  if (plain.ends_with("_v2"))
    plain = plain.drop_back(3);
  for (int version : {11000, 11040, 11080}) {
    void *function = nullptr;
    // The first form of CUDA 11.3 lacks the last parameter.
    cu::Result result =
        isV2 ? reinterpret_cast<GetProcAddress>(query)(
                   plain.str().c_str(), &function, version, 0, nullptr)
             : reinterpret_cast<cu::Result (*)(const char *, void **, int,
                                               unsigned long long)>(query)(
                   plain.str().c_str(), &function, version, 0);
    if (result == cu::kSuccess && function)
      return function;
  }
  return nullptr;
}

Expected<std::unique_ptr<CudaDriver>>
CudaDriver::load(const char *libraryName) {
  std::string reason;
  void *library = openLibrary({libraryName}, reason);
  if (!library)
    return makeError("no CUDA driver: cannot open " + Twine(libraryName) +
                     " (" + reason +
                     "); install the NVIDIA driver, or in a container start "
                     "it with GPU access");
  DriverTable table;
#define HUMMING_DRIVER_ENTRY(MEMBER, SYMBOL, REQUIRED, ...)                    \
  table.MEMBER = reinterpret_cast<decltype(table.MEMBER)>(                     \
      findDriverSymbol(library, SYMBOL));
#include "Humming/Runtime/DriverEntries.def"
  return create(table);
}

Expected<std::unique_ptr<CudaDriver>>
CudaDriver::create(const DriverTable &table) {
#define HUMMING_DRIVER_ENTRY(MEMBER, SYMBOL, REQUIRED, ...)                    \
  if (REQUIRED && !table.MEMBER)                                               \
    return makeError("CUDA driver lacks the entry point " SYMBOL               \
                     ": expected a driver of CUDA 11.0 or newer");
#include "Humming/Runtime/DriverEntries.def"
  if (!table.graphInstantiateWithFlags && !table.graphInstantiate)
    return makeError("CUDA driver lacks cuGraphInstantiate: expected a driver "
                     "of CUDA 11.0 or newer");
  std::unique_ptr<CudaDriver> driver(new CudaDriver(table));
  if (Error error = driver->initialize())
    return std::move(error);
  return std::move(driver);
}

Error CudaDriver::initialize() {
  if (Error error =
          check(entries.init(0), "cannot initialise the CUDA driver (cuInit)"))
    return error;
  return check(entries.driverGetVersion(&driverVersion),
               "cannot read the driver's version");
}

Expected<const CudaDriver *> CudaDriver::get() {
  // Kept for the life of the process: unloading a driver that may have
  // contexts is not possible.
  struct Loaded {
    std::unique_ptr<CudaDriver> driver;
    std::string error;
    Loaded() {
      Expected<std::unique_ptr<CudaDriver>> result = load("libcuda.so.1");
      if (result)
        driver = std::move(*result);
      else
        error = toString(result.takeError());
    }
  };
  static const Loaded *loaded = new Loaded;
  if (!loaded->driver)
    return makeError(loaded->error);
  return loaded->driver.get();
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

std::string CudaDriver::describe(cu::Result result) const {
  const char *name = nullptr;
  const char *text = nullptr;
  if (entries.getErrorName(result, &name) != cu::kSuccess || !name)
    name = "unknown CUDA error";
  if (entries.getErrorString(result, &text) != cu::kSuccess || !text)
    text = "no description";
  return formatv("{0} ({1}): {2}", name, result, text).str();
}

Error CudaDriver::check(cu::Result result, const Twine &what) const {
  if (result == cu::kSuccess)
    return Error::success();
  return makeError(what + ": " + describe(result));
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Expected<int> CudaDriver::deviceCount() const {
  int count = 0;
  if (Error error =
          check(entries.deviceGetCount(&count), "cannot count the devices"))
    return std::move(error);
  return count;
}

Expected<std::string> CudaDriver::deviceName(cu::Device device) const {
  char name[256] = {};
  if (Error error = check(entries.deviceGetName(name, sizeof(name) - 1, device),
                          "cannot read the name of device " + Twine(device)))
    return std::move(error);
  return std::string(name);
}

Expected<int> CudaDriver::deviceAttribute(cu::DeviceAttribute attribute,
                                          cu::Device device) const {
  int value = 0;
  if (Error error = check(entries.deviceGetAttribute(&value, attribute, device),
                          "cannot read attribute " + Twine(int(attribute)) +
                              " of device " + Twine(device)))
    return std::move(error);
  return value;
}

Expected<cu::Context>
CudaDriver::retainPrimaryContext(cu::Device device) const {
  cu::Context context = nullptr;
  if (Error error =
          check(entries.primaryContextRetain(&context, device),
                "cannot retain the primary context of device " + Twine(device)))
    return std::move(error);
  return context;
}

Error CudaDriver::setCurrent(cu::Context context) const {
  return check(entries.contextSetCurrent(context),
               "cannot make the context current");
}

Error CudaDriver::synchronize() const {
  return check(entries.contextSynchronize(), "cannot synchronise the device");
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

namespace {
/// Buffers for the driver's JIT logs and the options that point to them.
struct JitLogs {
  char errorLog[8192] = {};
  char infoLog[8192] = {};
  // CU_JIT_INFO_LOG_BUFFER 3, _SIZE_BYTES 4, CU_JIT_ERROR_LOG_BUFFER 5,
  // _SIZE_BYTES 6, CU_JIT_LOG_VERBOSE 12.
  int options[5] = {3, 4, 5, 6, 12};
  void *values[5];

  JitLogs() {
    values[0] = infoLog;
    values[1] = reinterpret_cast<void *>(sizeof(infoLog) - 1);
    values[2] = errorLog;
    values[3] = reinterpret_cast<void *>(sizeof(errorLog) - 1);
    values[4] = reinterpret_cast<void *>(uintptr_t(1));
  }
  std::string errors() const { return StringRef(errorLog).rtrim().str(); }
  std::string info() const { return StringRef(infoLog).rtrim().str(); }
};
} // namespace

Expected<cu::Module> CudaDriver::loadModule(const char *image,
                                            StringRef description,
                                            cu::Result &code) const {
  JitLogs logs;
  cu::Module module = nullptr;
  code = entries.moduleLoadDataEx(&module, image, std::size(logs.options),
                                  logs.options, logs.values);
  if (code == cu::kSuccess)
    return module;
  std::string log = logs.errors();
  return makeError("cannot load " + description + ": " + describe(code) +
                   (log.empty() ? "" : "\n" + log));
}

Expected<cu::Function> CudaDriver::getFunction(cu::Module module,
                                               StringRef name) const {
  cu::Function function = nullptr;
  if (Error error = check(
          entries.moduleGetFunction(&function, module, name.str().c_str()),
          "cannot find the kernel '" + name + "' in the module"))
    return std::move(error);
  return function;
}

Expected<SmallVector<char, 0>> CudaDriver::linkPtx(StringRef ptx,
                                                   std::string &log) const {
  constexpr int kJitInputPtx = 1; // CU_JIT_INPUT_PTX
  JitLogs logs;
  cu::LinkState state = nullptr;
  if (Error error = check(entries.linkCreate(std::size(logs.options),
                                             logs.options, logs.values, &state),
                          "driver: cannot start the linker"))
    return std::move(error);
  llvm::scope_exit destroy([&] { entries.linkDestroy(state); });
  std::string text = ptx.str();
  cu::Result code =
      entries.linkAddData(state, kJitInputPtx, text.data(), text.size() + 1,
                          "kernel.ptx", 0, nullptr, nullptr);
  void *cubin = nullptr;
  size_t size = 0;
  if (code == cu::kSuccess)
    code = entries.linkComplete(state, &cubin, &size);
  log = logs.info();
  if (code != cu::kSuccess || !cubin) {
    std::string errors = logs.errors();
    return makeError("driver: cannot assemble the PTX: " + describe(code) +
                     (errors.empty() ? "" : "\n" + errors));
  }
  // The driver owns the cubin until the link state goes.
  const char *bytes = static_cast<const char *>(cubin);
  return SmallVector<char, 0>(bytes, bytes + size);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Expected<cu::DevicePtr> CudaDriver::allocate(size_t bytes) const {
  cu::DevicePtr pointer = 0;
  // The driver refuses zero bytes; an empty buffer still gets an address.
  if (Error error =
          check(entries.memAlloc(&pointer, bytes ? bytes : 1),
                "cannot allocate " + Twine(bytes) + " bytes of device memory"))
    return std::move(error);
  return pointer;
}

Error CudaDriver::free(cu::DevicePtr pointer) const {
  return check(entries.memFree(pointer), "cannot free device memory");
}

Error CudaDriver::copyToDevice(cu::DevicePtr to, const void *from,
                               size_t bytes) const {
  if (bytes == 0)
    return Error::success();
  if (Error error =
          check(entries.memcpyHtoD(to, from, bytes),
                "cannot copy " + Twine(bytes) + " bytes to the device"))
    return error;
  return finishOnDefaultStream();
}

Error CudaDriver::copyToHost(void *to, cu::DevicePtr from, size_t bytes) const {
  if (bytes == 0)
    return Error::success();
  return check(entries.memcpyDtoH(to, from, bytes),
               "cannot copy " + Twine(bytes) + " bytes to the host");
}

Error CudaDriver::copyOnDevice(cu::DevicePtr to, cu::DevicePtr from,
                               size_t bytes, cu::Stream stream) const {
  return check(entries.memcpyDtoDAsync(to, from, bytes, stream),
               "cannot copy " + Twine(bytes) + " bytes on the device");
}

Error CudaDriver::fill(cu::DevicePtr to, unsigned char value,
                       size_t bytes) const {
  if (bytes == 0)
    return Error::success();
  if (Error error =
          check(entries.memsetD8(to, value, bytes),
                "cannot fill " + Twine(bytes) + " bytes of device memory"))
    return error;
  return finishOnDefaultStream();
}

// A copy from pageable memory returns once its last part is staged, a fill at
// once: what they write may still be on its way, and a non-blocking stream does
// not wait for the default stream that they run on (CUDA driver API, "API
// synchronization behavior").
Error CudaDriver::finishOnDefaultStream() const {
  return check(entries.streamSynchronize(nullptr),
               "cannot synchronise the default stream");
}

//===----------------------------------------------------------------------===//
// Streams, events, graphs
//===----------------------------------------------------------------------===//

Expected<cu::Stream> CudaDriver::createStream() const {
  constexpr unsigned kNonBlocking = 1; // CU_STREAM_NON_BLOCKING
  cu::Stream stream = nullptr;
  if (Error error = check(entries.streamCreate(&stream, kNonBlocking),
                          "cannot create a stream"))
    return std::move(error);
  return stream;
}

Error CudaDriver::destroyStream(cu::Stream stream) const {
  return check(entries.streamDestroy(stream), "cannot destroy the stream");
}

Error CudaDriver::synchronizeStream(cu::Stream stream) const {
  return check(entries.streamSynchronize(stream),
               "cannot synchronise the stream");
}

Expected<bool> CudaDriver::isCapturing(cu::Stream stream) const {
  int status = cu::kCaptureNone;
  if (Error error = check(entries.streamIsCapturing(stream, &status),
                          "cannot query the stream's capture status"))
    return std::move(error);
  return status != cu::kCaptureNone;
}

Expected<cu::Event> CudaDriver::createEvent() const {
  cu::Event event = nullptr;
  if (Error error =
          check(entries.eventCreate(&event, 0), "cannot create an event"))
    return std::move(error);
  return event;
}

Error CudaDriver::destroyEvent(cu::Event event) const {
  return check(entries.eventDestroy(event), "cannot destroy the event");
}

Error CudaDriver::recordEvent(cu::Event event, cu::Stream stream) const {
  return check(entries.eventRecord(event, stream), "cannot record the event");
}

Error CudaDriver::synchronizeEvent(cu::Event event) const {
  return check(entries.eventSynchronize(event), "cannot wait for the event");
}

Expected<float> CudaDriver::elapsedMilliseconds(cu::Event start,
                                                cu::Event end) const {
  float milliseconds = 0;
  if (Error error = check(entries.eventElapsedTime(&milliseconds, start, end),
                          "cannot read the time between two events"))
    return std::move(error);
  return milliseconds;
}

Error CudaDriver::beginCapture(cu::Stream stream) const {
  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may go on allocating.
  constexpr int kThreadLocal = 1;
  return check(entries.streamBeginCapture(stream, kThreadLocal),
               "cannot begin to capture the stream");
}

Expected<cu::Graph> CudaDriver::endCapture(cu::Stream stream) const {
  cu::Graph graph = nullptr;
  if (Error error = check(entries.streamEndCapture(stream, &graph),
                          "cannot end the capture of the stream"))
    return std::move(error);
  if (!graph)
    return makeError("cannot end the capture of the stream: no graph came");
  return graph;
}

Expected<cu::GraphExec> CudaDriver::instantiate(cu::Graph graph) const {
  cu::GraphExec executable = nullptr;
  char log[1024] = {};
  cu::Result result =
      entries.graphInstantiateWithFlags
          ? entries.graphInstantiateWithFlags(&executable, graph, 0)
          : entries.graphInstantiate(&executable, graph, nullptr, log,
                                     sizeof(log) - 1);
  if (Error error = check(result, "cannot instantiate the graph"))
    return std::move(error);
  return executable;
}

Expected<size_t> CudaDriver::graphNodeCount(cu::Graph graph) const {
  size_t count = 0;
  if (Error error = check(entries.graphGetNodes(graph, nullptr, &count),
                          "cannot count the nodes of the graph"))
    return std::move(error);
  return count;
}

Error CudaDriver::launchGraph(cu::GraphExec graph, cu::Stream stream) const {
  return check(entries.graphLaunch(graph, stream), "cannot launch the graph");
}

Error CudaDriver::destroyGraph(cu::Graph graph) const {
  return check(entries.graphDestroy(graph), "cannot destroy the graph");
}

Error CudaDriver::destroyGraphExec(cu::GraphExec graph) const {
  return check(entries.graphExecDestroy(graph),
               "cannot destroy the executable graph");
}

} // namespace humming
