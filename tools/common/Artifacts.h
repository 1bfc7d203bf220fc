//===- Artifacts.h - Compiled kernels from files ----------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel travels as up to three files with one stem: NAME.json (the launch
// description), NAME.ptx and NAME.cubin; the last two may not both be missing.
// So a machine without the compiler can run and time what another one made.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TOOLS_COMMON_ARTIFACTS_H
#define HUMMING_TOOLS_COMMON_ARTIFACTS_H

#include "Humming/Runtime/LaunchDescription.h"
#include "Humming/Target/KernelConfig.h"
#include "Humming/Target/Layout.h"
#include "Humming/Target/Quantize.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace humming {

struct KernelArtifacts {
  std::string name; ///< file stem, or the kernel's name
  LaunchDescription launch;
  std::string ptx;    ///< may be empty
  std::string cubin;  ///< may be empty
  std::string origin; ///< `files`, `compiled` or `cache`
};

/// Reads one kernel. `ptxFile` or `cubinFile` may be empty, not both.
/// Error: names the file.
llvm::Expected<KernelArtifacts> readArtifacts(llvm::StringRef ptxFile,
                                              llvm::StringRef cubinFile,
                                              llvm::StringRef launchFile);

/// Reads every NAME.json of a folder with its NAME.ptx and NAME.cubin, sorted
/// by name. Error: none there, or the first unreadable file.
llvm::Expected<std::vector<KernelArtifacts>>
readArtifactFolder(llvm::StringRef folder);

/// Writes NAME.json, NAME.ptx and NAME.cubin (those that are not empty) into
/// `folder`, which is created.
llvm::Error writeArtifacts(llvm::StringRef folder,
                           const KernelArtifacts &artifacts);

/// The problem that a description stands for, with the given sizes.
/// Error: a field that does not parse.
llvm::Expected<MatmulProblem> problemOf(const LaunchDescription &launch,
                                        int64_t m, int64_t n, int64_t k);
/// The same of a quantize kernel.
llvm::Expected<QuantizeProblem>
quantizeProblemOf(const LaunchDescription &launch, int64_t m, int64_t k);
/// The same of pack and gather kernels.
llvm::Expected<PackProblem> packProblemOf(const LaunchDescription &launch,
                                          int64_t n, int64_t k);
llvm::Expected<GatherProblem> gatherProblemOf(const LaunchDescription &launch,
                                              int64_t m, int64_t columns);
/// The config that a description names. Error: it does not parse.
llvm::Expected<KernelConfig> configOf(const LaunchDescription &launch);

/// Whether the declared divisibility admits the sizes; else why not.
bool admitsShape(const LaunchDescription &launch, int64_t n, int64_t k,
                 std::string &why);

} // namespace humming

#endif // HUMMING_TOOLS_COMMON_ARTIFACTS_H
