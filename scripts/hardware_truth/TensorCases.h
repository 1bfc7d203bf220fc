//===- TensorCases.h - Tensor copies run on hardware ------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Each case is one tensor map (with the numeric values of the driver's enums)
// and one box copy at one coordinate. The `unaligned` ones start at an
// innermost coordinate that is no multiple of 16 bytes, which hardware refuses.

#ifndef HUMMING_SCRIPTS_HARDWARETRUTH_TENSORCASES_H
#define HUMMING_SCRIPTS_HARDWARETRUTH_TENSORCASES_H

#include "Truth.h"

namespace truth {

struct TensorCase {
  const char *name;
  unsigned type; ///< CUtensorMapDataType: U8 0, U16 1, U32 2, S32 3, U64 4,
                 ///< S64 5, F16 6, F32 7, F64 8, BF16 9, F32_FTZ 10, TF32 11,
                 ///< TF32_FTZ 12
  unsigned interleave; ///< CUtensorMapInterleave: none 0, 16B 1, 32B 2
  unsigned swizzle;    ///< CUtensorMapSwizzle: none 0, 32B 1, 64B 2, 128B 3
  bool nanFill;
  unsigned rank;
  uint64_t dims[5];
  uint64_t strides[4]; ///< bytes, of dimensions 1..
  uint32_t box[5];
  uint32_t elementStrides[5];
  int32_t coords[5];
  uint32_t sharedOffset; ///< from a 1024-byte boundary
  bool store;            ///< shared to global instead of global to shared
};

constexpr uint32_t tensorSharedBytes = 32 * 1024;
constexpr uint32_t tensorGlobalBytes = 64 * 1024;

inline uint32_t tensorGlobalWord(uint64_t seed, uint32_t index) {
  return uint32_t(mix(seed ^ mix(index)));
}
inline uint32_t tensorSharedWord(uint64_t seed, uint32_t index) {
  return uint32_t(mix(seed ^ mix(index + (1u << 20))));
}
/// Global words look like moderate floats to the float types, so that the
/// flushing and rounding ones can be told from plain copies: every 8th is a
/// subnormal f32, the rest have random low mantissa bits.
inline uint32_t tensorInput(const TensorCase &c, uint64_t seed,
                            uint32_t index) {
  uint32_t v = tensorGlobalWord(seed, index);
  if (c.type == 7 || c.type >= 10)
    return index % 8 == 3 ? v & 0x807FFFFF : (v & 0x8FFFFFFF) | 0x30000000;
  return v;
}

/// Bytes that a box moves: what the barrier must expect. With interleave the
/// innermost dimension counts slices and the last but one is not traversed.
inline uint32_t tensorBoxBytes(const TensorCase &c) {
  static const unsigned sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  uint32_t bytes = c.interleave ? 16 * c.interleave : sizes[c.type];
  for (unsigned i = 0; i < c.rank; ++i) {
    if (c.interleave && i + 2 == c.rank)
      continue;
    uint32_t stride = i == 0 ? 1 : c.elementStrides[i];
    bytes *= (c.box[i] + stride - 1) / stride;
  }
  return bytes;
}

// clang-format off
static const TensorCase tensorCases[] = {
  {"r1_u8", 0, 0, 0, false, 1, {4096}, {}, {256}, {1}, {128}, 0, false},
  {"r1_u8_oob", 0, 0, 0, false, 1, {4000}, {}, {256}, {1}, {3840}, 0, false},
  {"r1_u8_neg", 0, 0, 0, false, 1, {4000}, {}, {256}, {1}, {-48}, 0, false},
  {"r1_f32_stride2", 7, 0, 0, false, 1, {1024}, {}, {256}, {2}, {16}, 0, false},
  {"r2_f16_none", 6, 0, 0, false, 2, {256, 64}, {512}, {64, 16}, {1, 1}, {64, 8}, 0, false},
  {"r2_f16_32", 6, 0, 1, false, 2, {256, 64}, {512}, {16, 32}, {1, 1}, {64, 8}, 0, false},
  {"r2_f16_64", 6, 0, 2, false, 2, {256, 64}, {512}, {32, 32}, {1, 1}, {64, 8}, 0, false},
  {"r2_f16_128", 6, 0, 3, false, 2, {256, 64}, {512}, {64, 32}, {1, 1}, {64, 8}, 0, false},
  {"r2_f16_128_narrow", 6, 0, 3, false, 2, {256, 64}, {512}, {32, 32}, {1, 1}, {64, 8}, 0, false},
  {"r2_f16_128_16B", 6, 0, 3, false, 2, {256, 64}, {512}, {8, 32}, {1, 1}, {64, 8}, 0, false},
  {"r2_f16_64_16B", 6, 0, 2, false, 2, {256, 64}, {512}, {8, 32}, {1, 1}, {64, 8}, 0, false},
  {"r2_f16_32_16B", 6, 0, 1, false, 2, {256, 64}, {512}, {8, 32}, {1, 1}, {64, 8}, 0, false},
  {"r2_f16_128_48B", 6, 0, 3, false, 2, {256, 64}, {512}, {24, 32}, {1, 1}, {64, 8}, 0, false},
  {"r2_f16_none_48B", 6, 0, 0, false, 2, {256, 64}, {512}, {24, 32}, {1, 1}, {64, 8}, 0, false},
  {"r2_f16_128_at128", 6, 0, 3, false, 2, {256, 64}, {512}, {64, 32}, {1, 1}, {0, 0}, 128, false},
  {"r2_f16_128_at512", 6, 0, 3, false, 2, {256, 64}, {512}, {64, 32}, {1, 1}, {0, 0}, 512, false},
  {"r2_f16_64_at128", 6, 0, 2, false, 2, {256, 64}, {512}, {32, 32}, {1, 1}, {0, 0}, 128, false},
  {"r2_f16_32_at128", 6, 0, 1, false, 2, {256, 64}, {512}, {16, 32}, {1, 1}, {0, 0}, 128, false},
  {"r2_f16_oob_right", 6, 0, 3, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {168, 40}, 0, false},
  {"r2_f16_oob_left", 6, 0, 3, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {-20, -3}, 0, false},
  {"r2_f16_oob_all", 6, 0, 0, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {400, 60}, 0, false},
  {"r2_f16_oob_nan", 6, 0, 3, true, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {168, 40}, 0, false},
  {"r2_bf16_oob_nan", 9, 0, 0, true, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {168, 40}, 0, false},
  {"r2_f32_oob_nan", 7, 0, 2, true, 2, {100, 50}, {512}, {16, 16}, {1, 1}, {92, 40}, 0, false},
  {"r2_f64_oob_nan", 8, 0, 0, true, 2, {50, 50}, {512}, {8, 16}, {1, 1}, {46, 40}, 0, false},
  {"r2_f16_odd_dim", 6, 0, 3, false, 2, {197, 50}, {512}, {64, 16}, {1, 1}, {165, 40}, 0, false},
  {"r2_u8_128", 0, 0, 3, false, 2, {500, 64}, {512}, {128, 32}, {1, 1}, {64, 8}, 0, false},
  {"r2_u8_64", 0, 0, 2, false, 2, {500, 64}, {512}, {64, 32}, {1, 1}, {65, 8}, 0, false},
  {"r2_u16_32", 1, 0, 1, false, 2, {250, 64}, {512}, {16, 32}, {1, 1}, {3, 8}, 0, false},
  {"r2_u32_128", 2, 0, 3, false, 2, {128, 64}, {512}, {32, 32}, {1, 1}, {7, 8}, 0, false},
  {"r2_s32_64", 3, 0, 2, false, 2, {128, 64}, {512}, {16, 32}, {1, 1}, {7, 8}, 0, false},
  {"r2_u64_128", 4, 0, 3, false, 2, {64, 64}, {512}, {16, 32}, {1, 1}, {3, 8}, 0, false},
  {"r2_s64_none", 5, 0, 0, false, 2, {64, 64}, {512}, {16, 32}, {1, 1}, {3, 8}, 0, false},
  {"r2_f32ftz", 10, 0, 3, false, 2, {128, 64}, {512}, {32, 32}, {1, 1}, {0, 0}, 0, false},
  {"r2_tf32", 11, 0, 3, false, 2, {128, 64}, {512}, {32, 32}, {1, 1}, {0, 0}, 0, false},
  {"r2_tf32ftz", 12, 0, 3, false, 2, {128, 64}, {512}, {32, 32}, {1, 1}, {0, 0}, 0, false},
  {"r2_f16_estride", 6, 0, 0, false, 2, {256, 64}, {512}, {64, 32}, {1, 2}, {0, 3}, 0, false},
  {"r2_f16_estride3", 6, 0, 3, false, 2, {256, 64}, {512}, {64, 32}, {1, 3}, {32, 50}, 0, false},
  {"r2_f16_estride_inner", 6, 0, 0, false, 2, {256, 64}, {512}, {64, 16}, {2, 1}, {8, 3}, 0, false},
  {"r3_f16_128", 6, 0, 3, false, 3, {64, 20, 10}, {128, 2560}, {64, 8, 4}, {1, 1, 1}, {0, 16, 8}, 0, false},
  {"r3_u8_none", 0, 0, 0, false, 3, {96, 20, 10}, {112, 2240}, {32, 5, 3}, {1, 1, 1}, {80, 17, -1}, 0, false},
  {"r4_f16_64", 6, 0, 2, false, 4, {32, 6, 7, 8}, {64, 384, 2688}, {32, 4, 4, 4}, {1, 1, 1, 1}, {0, -1, 4, 6}, 0, false},
  {"r5_f16_128", 6, 0, 3, false, 5, {64, 3, 4, 5, 6}, {128, 384, 1536, 7680}, {64, 2, 2, 3, 4}, {1, 1, 1, 1, 1}, {0, 2, -1, 3, 4}, 0, false},
  {"r3_il16", 6, 1, 0, false, 3, {8, 64, 32}, {16, 1024}, {8, 16, 8}, {1, 1, 1}, {0, 4, 2}, 0, false},
  {"r3_il32", 6, 2, 1, false, 3, {16, 64, 32}, {32, 2048}, {16, 16, 8}, {1, 1, 1}, {0, 4, 2}, 0, false},
  {"r4_il16", 0, 1, 0, false, 4, {16, 20, 12, 5}, {16, 320, 3840}, {16, 8, 4, 2}, {1, 1, 1, 1}, {0, -2, 10, 1}, 0, false},
  {"r4_il32", 6, 2, 1, false, 4, {16, 20, 12, 5}, {32, 640, 7680}, {16, 8, 4, 2}, {1, 1, 1, 1}, {0, -2, 10, 1}, 0, false},
  {"r2_f16_oob_left8", 6, 0, 3, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {-24, -3}, 0, false},
  {"r2_f16_oob_left_only", 6, 0, 3, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {-24, 5}, 0, false},
  {"r2_f16_oob_top_only", 6, 0, 3, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {8, -3}, 0, false},
  {"r2_f16_oob_left_none", 6, 0, 0, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {-24, -3}, 0, false},
  {"r2_f16_oob_left_nan", 6, 0, 3, true, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {-24, -3}, 0, false},
  {"r2_f16_odd_dim8", 6, 0, 3, false, 2, {197, 50}, {512}, {64, 16}, {1, 1}, {160, 40}, 0, false},
  {"r2_u8_64_16", 0, 0, 2, false, 2, {500, 64}, {512}, {64, 32}, {1, 1}, {80, 8}, 0, false},
  {"r2_u16_32_8", 1, 0, 1, false, 2, {250, 64}, {512}, {16, 32}, {1, 1}, {24, 8}, 0, false},
  {"r2_u32_128_4", 2, 0, 3, false, 2, {128, 64}, {512}, {32, 32}, {1, 1}, {12, 8}, 0, false},
  {"r2_s32_64_4", 3, 0, 2, false, 2, {128, 64}, {512}, {16, 32}, {1, 1}, {4, 8}, 0, false},
  {"r2_u64_128_2", 4, 0, 3, false, 2, {64, 64}, {512}, {16, 32}, {1, 1}, {6, 8}, 0, false},
  {"r2_s64_none_2", 5, 0, 0, false, 2, {64, 64}, {512}, {16, 32}, {1, 1}, {2, 8}, 0, false},
  {"r2_unaligned_none", 6, 0, 0, false, 2, {256, 64}, {512}, {64, 16}, {1, 1}, {4, 8}, 0, false},
  {"r2_unaligned_128", 6, 0, 3, false, 2, {256, 64}, {512}, {64, 16}, {1, 1}, {4, 8}, 0, false},
  {"r2_unaligned_left", 6, 0, 0, false, 2, {256, 64}, {512}, {64, 16}, {1, 1}, {-4, 8}, 0, false},
  {"r2_unaligned_outside", 6, 0, 0, false, 2, {256, 64}, {512}, {64, 16}, {1, 1}, {300, 8}, 0, false},
  {"r1_unaligned_u8", 0, 0, 0, false, 1, {4000}, {}, {256}, {1}, {33}, 0, false},
  {"r1_unaligned_f32", 7, 0, 0, false, 1, {1024}, {}, {256}, {1}, {2}, 0, false},
  {"r3_unaligned_il16", 6, 1, 0, false, 3, {8, 64, 32}, {16, 1024}, {8, 16, 8}, {1, 1, 1}, {4, 4, 2}, 0, false},
  {"r2_f16_128_at16", 6, 0, 3, false, 2, {256, 64}, {512}, {64, 32}, {1, 1}, {0, 0}, 16, false},
  {"r2_f16_none_at16", 6, 0, 0, false, 2, {256, 64}, {512}, {64, 32}, {1, 1}, {0, 0}, 16, false},
  {"r2_f16_none_at64", 6, 0, 0, false, 2, {256, 64}, {512}, {64, 32}, {1, 1}, {0, 0}, 64, false},
  {"r2_f16_stride_small", 6, 0, 0, false, 2, {64, 64}, {64}, {32, 8}, {1, 1}, {0, 8}, 0, false},
  {"r2_f16_stride_odd", 6, 0, 0, false, 2, {64, 64}, {136}, {32, 8}, {1, 1}, {0, 8}, 0, false},
  {"r2_f16_box_odd", 6, 0, 0, false, 2, {64, 64}, {128}, {12, 8}, {1, 1}, {0, 8}, 0, false},
  {"r2_f16_box_257", 6, 0, 0, false, 2, {64, 300}, {128}, {8, 257}, {1, 1}, {0, 8}, 0, false},
  {"r2_f16_box_over_128", 6, 0, 3, false, 2, {256, 64}, {512}, {72, 8}, {1, 1}, {0, 8}, 0, false},
  {"r2_f16_box_beyond", 6, 0, 0, false, 2, {32, 8}, {64}, {64, 16}, {1, 1}, {0, 0}, 0, false},
  {"st_r1_u8", 0, 0, 0, false, 1, {4000}, {}, {256}, {1}, {3840}, 0, true},
  {"st_r2_f16_none", 6, 0, 0, false, 2, {256, 64}, {512}, {64, 16}, {1, 1}, {64, 8}, 0, true},
  {"st_r2_f16_32", 6, 0, 1, false, 2, {256, 64}, {512}, {16, 32}, {1, 1}, {64, 8}, 0, true},
  {"st_r2_f16_64", 6, 0, 2, false, 2, {256, 64}, {512}, {32, 32}, {1, 1}, {64, 8}, 0, true},
  {"st_r2_f16_128", 6, 0, 3, false, 2, {256, 64}, {512}, {64, 32}, {1, 1}, {64, 8}, 0, true},
  {"st_r2_f16_oob", 6, 0, 3, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {168, 40}, 0, true},
  {"st_r2_f16_neg", 6, 0, 3, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {-20, -3}, 0, true},
  {"st_r3_f32", 7, 0, 0, false, 3, {60, 20, 10}, {256, 5120}, {16, 5, 3}, {1, 1, 1}, {52, 17, -1}, 0, true},
  {"st_r2_f16_estride", 6, 0, 0, false, 2, {256, 64}, {512}, {64, 32}, {1, 2}, {0, 3}, 0, true},
  {"st_r2_f16_neg8", 6, 0, 3, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {-24, -3}, 0, true},
  {"st_r2_f16_neg_outer", 6, 0, 3, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {8, -3}, 0, true},
  {"st_r2_unaligned", 6, 0, 0, false, 2, {200, 50}, {512}, {64, 16}, {1, 1}, {4, 8}, 0, true},
  {"st_r2_tf32", 11, 0, 0, false, 2, {100, 50}, {512}, {32, 16}, {1, 1}, {4, 8}, 0, true},
  {"st_r2_f32ftz", 10, 0, 0, false, 2, {100, 50}, {512}, {32, 16}, {1, 1}, {4, 8}, 0, true},
  {"st_r3_il16", 6, 1, 0, false, 3, {8, 64, 32}, {16, 1024}, {8, 16, 8}, {1, 1, 1}, {0, 60, 2}, 0, true},
  {"st_r3_il32", 6, 2, 1, false, 3, {16, 64, 16}, {32, 2048}, {16, 16, 8}, {1, 1, 1}, {0, 4, 2}, 0, true},
};
// clang-format on

} // namespace truth

#endif // HUMMING_SCRIPTS_HARDWARETRUTH_TENSORCASES_H
