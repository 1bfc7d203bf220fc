//===- ExecBlackwell.cpp - The place of the sm_100 and sm_120 families -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The opcodes that only Blackwell chips have come here from the table of
// Decode.cpp: tcgen05 (tensor memory, its copies, its MMA) and
// clusterlaunchcontrol. None is emulated; each is parsed, so that a module may
// hold kernels for other chips, and executing one is an error that names it and
// the chip. Where the families belong: tensor memory is a second memory of a
// Block (128 lanes x 512 columns of 32 bits) with cells as SharedMemory has
// them; tcgen05.mma is an AsyncEvent that a tcgen05.commit turns into an
// arrival at an mbarrier, as bulk copies are; the product is Wgmma.cpp's with
// another place for D and block scales. Block-scaled mma.sync (sm_120) belongs
// to decodeMma in ExecMatrix.cpp.
//
//===----------------------------------------------------------------------===//

#include "Decode.h"

using namespace llvm;

namespace humming {
namespace emulator {

void decodeBlackwell(Decoder &d) {
  d.classify(InstClass::Other, Flow::Sync);
  d.inst.numDst = 0;
  std::string name = d.opcode.str();
  if (StringRef what = d.take(); !what.empty())
    name += ("." + what).str();
  d.unsupported("'" + name + "' of sm_100 (Blackwell)");
}

} // namespace emulator
} // namespace humming
