//===- Arithmetic.cu ----- Floating-point arithmetic on the GPU -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.cuh"

using truth::Kind;

#define X(NAME, PTX, OUT, IN, ARITY, ...) SCALAR_KERNEL(NAME, PTX, OUT, IN)
#define Y(NAME, PTX, KIND, OP, TYPE, FTZ) SCALAR_KERNEL(NAME, PTX, KIND, KIND)
#include "ArithmeticCases.def"

static const ScalarCase table[] = {
#define X(NAME, PTX, OUT, IN, ARITY, ...)                                      \
  {#NAME, k_##NAME, Kind::OUT, Kind::IN, ARITY, false},
#define Y(NAME, PTX, KIND, OP, TYPE, FTZ)                                      \
  {#NAME, k_##NAME, Kind::KIND, Kind::KIND, 1, true},
#include "ArithmeticCases.def"
};

std::vector<truth::Case> runArithmetic() {
  std::vector<truth::Case> cases;
  for (const ScalarCase &c : table)
    cases.push_back(runScalar(c));
  return cases;
}

truth::Case runScalar(const ScalarCase &c) {
  uint32_t n = truth::scalarCount(c.in, c.arity, c.full);
  uint64_t seed = truth::nameHash(c.name);
  Buffer<uint64_t> in0(n), in1(n), in2(n), out(n);
  Buffer<uint64_t> *in[3] = {&in0, &in1, &in2};
  for (unsigned operand = 0; operand < c.arity; ++operand)
    for (uint32_t i = 0; i < n; ++i)
      (*in[operand])[i] =
          truth::scalarInput(c.in, c.arity, seed, operand, i, c.full);
  c.kernel<<<(n + 127) / 128, 128>>>(in0.data, in1.data, in2.data, out.data, n);
  checkLaunch(c.name);
  unsigned bytes = truth::kindBytes(c.out);
  std::vector<uint8_t> packed(size_t(n) * bytes);
  for (uint32_t i = 0; i < n; ++i)
    memcpy(&packed[size_t(i) * bytes], &out[i], bytes);
  return truth::makeCase(c.name, packed.data(), n, bytes, c.full);
}
