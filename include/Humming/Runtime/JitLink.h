//===- JitLink.h - From PTX to a cubin --------------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three assemblers, tried in this order, none needed at build time:
//   nvjitlink  libnvJitLink, found and opened at run time; works without a GPU
//   ptxas      the program, as a subprocess
//   driver     the linker inside the CUDA driver; needs a current context
// HUMMING_ASSEMBLER=nvjitlink|ptxas|driver forces one.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_RUNTIME_JITLINK_H
#define HUMMING_RUNTIME_JITLINK_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace humming {

class CudaDriver;

enum class AssemblerKind : uint8_t { NvJitLink, Ptxas, Driver };
llvm::StringRef stringify(AssemblerKind kind);
/// Error: "assembler: expected nvjitlink, ptxas or driver, got ...".
llvm::Expected<AssemblerKind> parseAssemblerKind(llvm::StringRef text);

/// Where assemblers are looked for. Plain data, so that a test can point it at
/// an empty folder.
struct AssemblerSearch {
  /// Folders that may hold libnvJitLink.so{,.12,.13}, first match wins.
  std::vector<std::string> libraryFolders;
  /// Folders that may hold ptxas.
  std::vector<std::string> programFolders;
  /// Also ask the system's loader for libnvJitLink by its bare name, after the
  /// folders.
  bool useSystemLoader = true;
  /// The only assembler that may be used; nothing: the first that is found.
  std::optional<AssemblerKind> forced;

  /// LD_LIBRARY_PATH; lib64, lib and targets/x86_64-linux/lib of $CUDA_HOME and
  /// $CUDA_PATH, then of /usr/local/cuda*; nvidia/cu13/lib and
  /// nvidia/nvjitlink/lib in the site-packages of $VIRTUAL_ENV,
  /// $CONDA_PREFIX, $PYTHONPATH and the system's Python; the system's library
  /// folders. Programs: PATH, then the bin folders of the same toolkits.
  /// Error: HUMMING_ASSEMBLER has an unknown value.
  static llvm::Expected<AssemblerSearch> fromEnvironment();
};

/// An assembler that was found but not yet opened: cheap (a few file-system
/// queries), so a process that only reads the cache can afford it.
struct Assembler {
  AssemblerKind kind = AssemblerKind::Driver;
  /// The library or program; empty for the driver and for the system's loader.
  std::string path;
  /// Names the assembler by its content (build ID, or a hash of the ELF tables
  /// and the size), never by path or time: `nvjitlink-157d67e6...`. Part of the
  /// cache key.
  std::string identity;
};

/// The assembler that assemble() will use. `driver` may be null.
/// Error: none was found; lists what was looked for and how to provide it.
llvm::Expected<Assembler> findAssembler(const AssemblerSearch &search,
                                        const CudaDriver *driver = nullptr);

/// What the assembler said about the kernel (the last entry function).
struct ResourceUsage {
  int32_t registers = -1; ///< per thread; -1: not reported
  int32_t spillStoreBytes = -1;
  int32_t spillLoadBytes = -1;
  int32_t stackBytes = -1;
  int32_t barriers = -1;
  int32_t staticSharedBytes = 0;
};

struct AssembledKernel {
  llvm::SmallVector<char, 0> cubin;
  /// Which one ran, with its version: `nvjitlink 13.0`, `ptxas 13.0.88`,
  /// `driver 13.0`.
  std::string assembler;
  /// Everything the assembler printed.
  std::string log;
  ResourceUsage usage;
  /// Warnings and notices of lost performance: lines with a (C....) code, such
  /// as C7508 (setmaxnreg ignored) or C7510 (wgmma serialised).
  std::vector<std::string> warnings;
  double openMilliseconds = 0; ///< opening the library (0 once it is open)
  double milliseconds = 0;     ///< assembling alone
};

/// Assembles `ptx` for `chip` (`sm_90`) at -O3. Thread safe.
/// Error: names the assembler, what failed and its log.
llvm::Expected<AssembledKernel> assemble(const Assembler &assembler,
                                         llvm::StringRef ptx,
                                         llvm::StringRef chip,
                                         const CudaDriver *driver = nullptr);

/// Reads registers, spills and so on from a log of ptxas or nvJitLink.
ResourceUsage parseResourceUsage(llvm::StringRef log);
/// The lines of a log that warn or speak of lost performance.
std::vector<std::string> parseAssemblerWarnings(llvm::StringRef log);

/// The SM number in the ELF header of a cubin (90 for sm_90 and sm_90a).
/// Error: not a CUDA ELF file, or truncated.
llvm::Expected<unsigned> cubinChipNumber(llvm::StringRef cubin);

/// `.version` of PTX text, 83 = 8.3, and its `.target` line's chip.
struct PtxHeader {
  int32_t version = 0;
  llvm::StringRef target;
};
/// Error: the directives are missing or malformed.
llvm::Expected<PtxHeader> parsePtxHeader(llvm::StringRef ptx);

/// The newest PTX version that a driver or toolkit of CUDA version `cuda`
/// (12040 = 12.4) understands.
int32_t maxPtxVersion(int32_t cuda);
/// The oldest CUDA version whose driver understands PTX `version`.
int32_t minCudaVersion(int32_t version);

} // namespace humming

#endif // HUMMING_RUNTIME_JITLINK_H
