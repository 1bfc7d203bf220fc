//===- LoweringPatterns.h - Pattern groups of the last lowering -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_CONVERSION_LOWERINGPATTERNS_H
#define HUMMING_LIB_CONVERSION_LOWERINGPATTERNS_H

#include "mlir/Transforms/DialectConversion.h"

namespace humming {

/// copy_tile, fetch_tile, put_tile, commit_copies, wait_copies.
void populateCopyLoweringPatterns(const mlir::TypeConverter &converter,
                                  mlir::RewritePatternSet &patterns);
/// load_weights, load_activations, load_scales, load_token_scales,
/// scale_accumulate, multiply_scales, accumulate, and the vector ops that take
/// fragments apart.
void populateFragmentLoweringPatterns(const mlir::TypeConverter &converter,
                                      mlir::RewritePatternSet &patterns);
/// ring_init, ring_acquire, ring_commit, ring_wait, ring_release.
void populateRingLoweringPatterns(const mlir::TypeConverter &converter,
                                  mlir::RewritePatternSet &patterns);
/// pack_unit, gather_row.
void populateLayoutLoweringPatterns(const mlir::TypeConverter &converter,
                                    mlir::RewritePatternSet &patterns);
/// warpgroup_mma, warpgroup_mma_tiles, warpgroup_wait, fence_async.
void populateWarpgroupLoweringPatterns(const mlir::TypeConverter &converter,
                                       mlir::RewritePatternSet &patterns);
/// reduce_warps, reduce_blocks, reduce_cluster, scale_rows, scale_output,
/// subtract_offsets, add_rows.
void populateEpilogueLoweringPatterns(const mlir::TypeConverter &converter,
                                      mlir::RewritePatternSet &patterns);
/// store_tile.
void populateStoreLoweringPatterns(const mlir::TypeConverter &converter,
                                   mlir::RewritePatternSet &patterns);
/// load_segment, segment_range, segment_scale, static_scale, store_segment,
/// store_scale.
void populateSegmentLoweringPatterns(const mlir::TypeConverter &converter,
                                     mlir::RewritePatternSet &patterns);

} // namespace humming

#endif // HUMMING_LIB_CONVERSION_LOWERINGPATTERNS_H
