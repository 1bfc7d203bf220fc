//===- Kernels.cu - Whole kernels on the GPU --------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Runs every kernel of kernels.ptx (make_kernels.py), which the build has
// assembled and embedded with the list of its cases.

#include "Device.cuh"
#include "KernelImage.h"
#include "KernelList.h"

static const std::vector<truth::KernelCase> &kernelCases() {
  static const std::vector<truth::KernelCase> cases = truth::parseKernelCases(
      reinterpret_cast<const char *>(kernelText), sizeof(kernelText));
  return cases;
}

unsigned kernelCount() { return unsigned(kernelCases().size()); }

IsolatedResult runKernelCase(unsigned index) {
  const truth::KernelCase &c = kernelCases()[index];
  IsolatedResult r;
  r.name = c.name;
  static cudaLibrary_t library = nullptr;
  if (!library)
    CHECK_CUDA(cudaLibraryLoadData(&library, kernelImage, nullptr, nullptr, 0,
                                   nullptr, nullptr, 0));
  cudaKernel_t kernel;
  CHECK_CUDA(cudaLibraryGetKernel(&kernel, library, c.name.c_str()));
  Buffer<uint32_t> in(truth::kernelInputWords), out(c.words);
  for (uint32_t i = 0; i < truth::kernelInputWords; ++i)
    in[i] = truth::kernelInput(c, i);
  void *inData = in.data, *outData = out.data;
  void *arguments[] = {&inData, &outData};
  CHECK_CUDA(cudaLaunchKernel(reinterpret_cast<const void *>(kernel),
                              dim3(c.grid), dim3(c.block), arguments, 0,
                              nullptr));
  if (launchWorked(r))
    r.result = truth::makeCase(c.name, out.data, c.words, 4, false);
  return r;
}
