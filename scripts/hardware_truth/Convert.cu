//===- Convert.cu ---------------------- Conversions on the GPU -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.cuh"

using truth::Kind;

#define X(NAME, PTX, OUT, IN, ARITY, ...) SCALAR_KERNEL(NAME, PTX, OUT, IN)
#include "ConvertCases.def"

static const ScalarCase table[] = {
#define X(NAME, PTX, OUT, IN, ARITY, ...)                                      \
  {#NAME, k_##NAME, Kind::OUT, Kind::IN, ARITY, false},
#include "ConvertCases.def"
};

std::vector<truth::Case> runConvert() {
  std::vector<truth::Case> cases;
  for (const ScalarCase &c : table)
    cases.push_back(runScalar(c));
  return cases;
}
