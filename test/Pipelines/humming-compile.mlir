// Stage 1 to 4 for every chip, the contract of the stage checked after each pass. The
// pipeline of that name gives the same, and the kernel is right.
//
// DEFINE: %{chip} =
// DEFINE: %{one} = hquant-verify-stage{stage=operator}
// DEFINE: %{two} = hquant-verify-stage{stage=configured}
// DEFINE: %{three} = hquant-verify-stage{stage=tile}
// DEFINE: %{four} = hquant-verify-stage{stage=thread}
// DEFINE: %{configure} = %{one},canonicalize,%{one},hquant-fuse-epilogue,%{one},hquant-select-lowering-config{chip=%{chip}},hquant-pack-weights,%{two},cse,%{two}
// DEFINE: %{tile} = convert-hquant-to-tiles,%{three},gpu.module(gpu.func(hquant-specialize-warps,hquant-pipeline-copies)),%{three},gpu.module(hquant-check-resources),%{three}
// DEFINE: %{thread} = gpu.module(hquant-lower-dequant),%{three},gpu.module(hquant-map-mma),%{three},gpu.module(convert-hquant-to-nvvm),%{four}
// DEFINE: %{passes} = humming-opt %s -o %t.passes "--pass-pipeline=builtin.module(%{configure},%{tile},%{thread})"
// DEFINE: %{pipeline} = humming-opt %s -o %t.pipeline --humming-compile=chip=%{chip}
// DEFINE: %{split} = humming-opt %s -o %t.split --humming-configure=chip=%{chip} --humming-lower-to-nvvm
//
// REDEFINE: %{chip} = sm_75
// RUN: %{passes} && %{pipeline} && %{split} && diff %t.passes %t.pipeline && diff %t.split %t.pipeline && %execute %s %t.passes && FileCheck %s --check-prefixes=CHECK,TURING --input-file=%t.passes
// REDEFINE: %{chip} = sm_80
// RUN: %{passes} && %{pipeline} && %{split} && diff %t.passes %t.pipeline && diff %t.split %t.pipeline && %execute %s %t.passes && FileCheck %s --check-prefixes=CHECK,AMPERE --input-file=%t.passes
// REDEFINE: %{chip} = sm_86
// RUN: %{passes} && %{pipeline} && %{split} && diff %t.passes %t.pipeline && diff %t.split %t.pipeline && %execute %s %t.passes && FileCheck %s --check-prefixes=CHECK,AMPERE --input-file=%t.passes
// REDEFINE: %{chip} = sm_89
// RUN: %{passes} && %{pipeline} && %{split} && diff %t.passes %t.pipeline && diff %t.split %t.pipeline && %execute %s %t.passes && FileCheck %s --check-prefixes=CHECK,AMPERE --input-file=%t.passes
// REDEFINE: %{chip} = sm_90
// RUN: %{passes} && %{pipeline} && %{split} && diff %t.passes %t.pipeline && diff %t.split %t.pipeline && %execute %s %t.passes && FileCheck %s --check-prefixes=CHECK,HOPPER --input-file=%t.passes

// CHECK: module attributes {hquant.target = #nvvm.target<chip = "[[CHIP:sm_[0-9]+]]">}
// CHECK: gpu.module @kernels [#nvvm.target<chip = "[[CHIP]]">]
// CHECK: llvm.func @layer({{.*}} attributes {{{.*}}hquant.shared_memory = {{[0-9]+}} : i64, {{(nvvm.cluster_dim = array<i32: 1, 1, [0-9]+>, )?}}nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: {{[0-9]+}}, 1, 1>}
// TURING-NOT: nvvm.cp.async
// TURING: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// TURING: nvvm.mma.sync {{.*}} shape = #nvvm.shape<m = 16, n = 8, k = 8>
// AMPERE: nvvm.cp.async.shared.global {{.*}}, 16, cache = {{ *}}cg
// AMPERE: nvvm.cp.async.commit.group
// AMPERE: nvvm.cp.async.wait.group
// AMPERE: nvvm.ldmatrix
// AMPERE: nvvm.mma.sync {{.*}} shape = #nvvm.shape<m = 16, n = 8, k = 16>
// HOPPER: cp.async.bulk.shared::cluster.global.mbarrier
// HOPPER: nvvm.cp.async.shared.global {{.*}}, 16, cache = {{ *}}cg
// HOPPER: nvvm.cp.async.mbarrier.arrive
// HOPPER: mbarrier.try_wait
// HOPPER: nvvm.ldmatrix
// HOPPER: nvvm.mma.sync {{.*}} shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK: llvm.return
func.func @layer(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>, %z: tensor<4096x32xi4>, %b: tensor<4096xf16>, %e: tensor<?x4096xf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>) zero_points(%z : tensor<4096x32xi4>)
         quant_type = <u4, scale = f16, group = 128, zero_point = int>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf32>
  %r = arith.truncf %c : tensor<?x4096xf32> to tensor<?x4096xf16>
  %bb = linalg.broadcast ins(%b : tensor<4096xf16>) outs(%e : tensor<?x4096xf16>) dimensions = [0]
  %d = arith.addf %r, %bb : tensor<?x4096xf16>
  return %d : tensor<?x4096xf16>
}
