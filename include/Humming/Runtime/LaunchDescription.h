//===- LaunchDescription.h - How a compiled kernel is launched --*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The launch description travels beside the PTX and the cubin, as JSON. It is
// all that a process without a compiler needs to launch the kernel: the rule
// that gives the grid from M and N, the block, the shared memory, the
// workspace, the order of the arguments, and which formats the buffers hold.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_RUNTIME_LAUNCHDESCRIPTION_H
#define HUMMING_RUNTIME_LAUNCHDESCRIPTION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace humming {

/// Bits of a format name (`u4`, `s8`, `e4m3`, `e8m0`, `f16`, `bf16`, `f32`).
/// Error: names the text and the accepted spellings.
llvm::Expected<unsigned> parseFormatBits(llvm::StringRef format);

/// The number of a chip name: `sm_90` and `sm_90a` give 90. Error: names it.
llvm::Expected<unsigned> parseChipNumber(llvm::StringRef chip);

/// One dense matmul or quantize kernel. Every field is required in the JSON
/// form unless noted. Of a quantize kernel, `activation` is the input, `output`
/// the codes, and the fields of weights and scales are empty.
struct LaunchDescription {
  /// Version of the JSON form and of the argument order.
  static constexpr int64_t kFormatVersion = 4;
  /// Bytes that the counters of split-K are padded to in the workspace.
  static constexpr int64_t kWorkspaceAlignment = 256;

  struct Grid {
    uint32_t x = 0, y = 0, z = 0;
    bool empty() const { return x == 0 || y == 0 || z == 0; }
    bool operator==(const Grid &o) const {
      return x == o.x && y == o.y && z == o.z;
    }
  };

  /// A tensor map that the kernel takes: of `x`, [m, k] with rows of ldx, or of
  /// plain `w`, [n, k]. The launch encodes it, with 128-byte swizzle; out of
  /// bounds it reads as zero.
  struct TensorMap {
    std::string of;      ///< `x` or `w`
    int32_t boxRows = 0; ///< of a copy, which has 128 bytes of each
    bool operator==(const TensorMap &o) const {
      return of == o.of && boxRows == o.boxRows;
    }
    bool operator<(const TensorMap &o) const {
      return std::tie(of, boxRows) < std::tie(o.of, o.boxRows);
    }
  };
  /// What the driver's encoder needs beside the address.
  struct TensorMapShape {
    uint32_t elementBytes = 0;
    uint64_t columns = 0, rows = 0; ///< of the matrix, in elements
    uint64_t stride = 0;            ///< of its rows, in bytes
    uint32_t boxColumns = 0, boxRows = 0;
    bool operator==(const TensorMapShape &o) const {
      return elementBytes == o.elementBytes && columns == o.columns &&
             rows == o.rows && stride == o.stride &&
             boxColumns == o.boxColumns && boxRows == o.boxRows;
    }
  };

  std::string kernelName;    ///< entry point in the PTX and the cubin
  std::string chip;          ///< `sm_90`: what the code was generated for
  int32_t ptxVersion = 0;    ///< `.version` of the PTX, 63 = 6.3
  std::string assembler;     ///< what made the cubin; empty: no cubin was made
  uint32_t blockThreads = 0; ///< threads of a block, multiple of 32, <= 1024
  uint32_t sharedBytes = 0;  ///< dynamic shared memory of a block
  std::string operation = "matmul"; ///< or `quantize`, `pack`, `gather`
  /// Output features of a block; of quantize the columns, 0: whole rows; of
  /// gather the columns.
  int32_t blockN = 0;
  int32_t blockM = 0; ///< tokens of a block; of pack the columns
  int32_t splitK = 1; ///< blocks along K
  /// The kernel waits for its predecessor by itself (griddepcontrol), so it may
  /// be launched with programmatic stream serialization.
  bool earlyLaunch = false;
  /// A block computes tile after tile: as many blocks as the card has SMs do.
  bool persistent = false;
  /// The blocks along K are a cluster (the kernel says so itself) and need no
  /// workspace.
  bool cluster = false;
  /// Blocks of a cluster along features and tokens (the kernel says so itself):
  /// 1 or 2. The grid is whole clusters.
  int32_t clusterN = 1;
  int32_t clusterM = 1;
  std::string activation;              ///< format of x, `bf16`
  std::string weight;                  ///< format of w, `u4`
  std::string scale;                   ///< format of the scales
  std::string weightLayout = "packed"; ///< `packed`, or `plain` row-major
  int32_t columnPhase = 0;             ///< columns past the first group's start
  std::string granularity;          ///< `128`, `0` per channel, `-1`, `128x128`
  std::string zeroPoint;            ///< `none`, `int` or `float`
  std::string globalScale = "none"; ///< `none`, `tensor` or `channel`
  std::string activationScale = "none"; ///< `none`, `tensor` or `token`
  int32_t activationGroup = 0; ///< activations that share a scale; 0: a token
  std::string activationScaleFormat = "f32"; ///< or `e8m0`
  bool activationZeroPoint = false;          ///< asymmetric s8
  std::string accumulator = "f32"; ///< of the MMA; `f16` in half precision
  std::string gate = "none";       ///< of quantize: `silu`, `gelu`, `gelu_tanh`
  std::vector<double> table;       ///< 16 values of a code table, or empty
  std::string output;              ///< format of c and of the bias
  bool hasBias = false;
  std::vector<TensorMap> tensorMaps; ///< none, x, or x and w
  int32_t kDivisor = 8; ///< K and ldx are multiples of this (1, 2, ... 32)
  int32_t nDivisor = 8; ///< N and ldc are multiples of this (1, 2, 4 or 8)
  std::string config;   ///< the lowering config, `mma=m16n8k16,...`
  std::vector<std::string> notes; ///< what really runs, where it is a fallback

  bool operator==(const LaunchDescription &o) const;
  bool operator!=(const LaunchDescription &o) const { return !(*this == o); }

  /// Names of a matmul's arguments in order: seven pointers (x, w, scales,
  /// zero_points, bias, c, workspace; null when unused), then i32 m, n, k, ldx,
  /// ldc, then pointers to global_scales, activation_scales,
  /// activation_zero_points (i32) and weight_sums (f32).
  static llvm::ArrayRef<llvm::StringLiteral> argumentNames();
  /// The same, and tensor maps of so many of x and w: 128 bytes by value, at
  /// multiples of 64.
  static llvm::ArrayRef<llvm::StringLiteral> argumentNames(size_t numMaps);
  /// Of a quantize kernel: pointers x, codes, scales, zero_points, then i32 m,
  /// k, ldx, ldq. With static scales the third and fourth are read.
  static llvm::ArrayRef<llvm::StringLiteral> quantizeArgumentNames();
  /// Of a pack kernel: pointers source, packed, then i32 n, k, lds.
  /// `activation` is s4, s8 or f16 for activations of 4, 8 or 16 bits, `weight`
  /// an integer of the weights' width.
  static llvm::ArrayRef<llvm::StringLiteral> packArgumentNames();
  /// Of a gather kernel: pointers x, order, gathered, then i32 m, k, columns,
  /// ldx, ldg. `activation` has the elements' width, kDivisor is that of the
  /// columns.
  static llvm::ArrayRef<llvm::StringLiteral> gatherArgumentNames();
  bool isMatmul() const { return operation == "matmul"; }
  bool isPack() const { return operation == "pack"; }
  bool isGather() const { return operation == "gather"; }
  bool isQuantize() const { return operation == "quantize"; }
  /// Those of this kernel.
  llvm::ArrayRef<llvm::StringLiteral> arguments() const {
    return isQuantize() ? quantizeArgumentNames()
           : isPack()   ? packArgumentNames()
           : isGather() ? gatherArgumentNames()
                        : argumentNames(tensorMaps.size());
  }
  /// Of one of this kernel's tensor maps.
  TensorMapShape shapeOf(const TensorMap &map, int32_t m, int32_t n, int32_t k,
                         int32_t ldx) const;

  /// Of a quantize kernel: ceil(m/blockM) x ceil(k/blockN) x 1, with n = k; of
  /// a gather the same with n the columns; of a pack ceil(n/blockN) x
  /// ceil(k/blockM) x 1, with m = k.
  /// ceil(n/blockN) x ceil(m/blockM) x splitK, the first two rounded up to
  /// whole clusters; for a persistent kernel, on a
  /// card of so many `processors` (SMs), at most that many blocks. Empty (no
  /// launch) for m = 0 or n = 0.
  Grid grid(int64_t m, int64_t n, unsigned processors = 0) const;
  /// Whether the blocks along K meet in global memory.
  bool needsWorkspace() const { return splitK > 1 && !cluster; }
  /// Bytes of the split-K counters at the start of the workspace, padded. The
  /// caller zeroes them once; every launch leaves them zero. 0 without a
  /// workspace.
  int64_t counterBytes(int64_t m, int64_t n) const;
  /// Bytes of workspace: counters, then for every tile and split the f32
  /// partial sums of blockN x blockM results in fragment order. 0 without a
  /// workspace.
  int64_t workspaceBytes(int64_t m, int64_t n) const;

  /// Checks every field alone and together. Error: "launch description: field:
  /// expected ..., got ...".
  llvm::Error verify() const;

  llvm::json::Value toJSON() const;
  /// Indented JSON text that ends in a newline.
  std::string str() const;
  /// Strict: an unknown, missing or mistyped field, another format version or
  /// another argument order is an error.
  static llvm::Expected<LaunchDescription>
  fromJSON(const llvm::json::Value &value);
  static llvm::Expected<LaunchDescription> parse(llvm::StringRef text);
};

} // namespace humming

#endif // HUMMING_RUNTIME_LAUNCHDESCRIPTION_H
