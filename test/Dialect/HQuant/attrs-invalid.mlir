// RUN: humming-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{u9}}
module attributes {x.test = #hquant.format<u9>} {}

// -----

// expected-error @+1 {{expected a group of at least 1, got 0}}
module attributes {x.test = #hquant.granularity<group = 0>} {}

// -----

// expected-error @+1 {{expected granularity group, channel, tensor or block, got row}}
module attributes {x.test = #hquant.granularity<row>} {}

// -----

// expected-error @+1 {{expected block extents of at least 0 (0 is the whole extent), got [-1, 64]}}
module attributes {x.test = #hquant.granularity<block = [-1, 64]>} {}

// -----

// expected-error @+1 {{maybe}}
module attributes {x.test = #hquant.zero_point<maybe>} {}

// -----

// expected-error @+1 {{expected a weight format of 1 to 8 bits, got f16}}
module attributes {x.test = #hquant.quant_type<f16, scale = f16, channel>} {}

// -----

// expected-error @+1 {{expected a float or e8m0 scale format, got u8}}
module attributes {x.test = #hquant.quant_type<u4, scale = u8, channel>} {}

// -----

// expected-error @+1 {{expected an unsigned weight format with zero points, got s4}}
module attributes {x.test = #hquant.quant_type<s4, scale = f16, channel, zero_point = int>} {}

// -----

// expected-error @+1 {{expected activation_bits of 4, 8 or 16, got 32}}
module attributes {x.test = #hquant.packed_layout<activation_bits = 32, weight_bits = 4, role = weights>} {}

// -----

// expected-error @+1 {{expected weight_bits of 1 to 8, got 0}}
module attributes {x.test = #hquant.packed_layout<activation_bits = 16, weight_bits = 0, role = weights>} {}

// -----

// expected-error @+1 {{expected weight_bits of at most activation_bits (4), got 8}}
module attributes {x.test = #hquant.packed_layout<activation_bits = 4, weight_bits = 8, role = weights>} {}

// -----

// expected-error @+1 {{expected a packed tensor of rank 3, got rank 2}}
func.func private @rank(tensor<2x512xi32, #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>>)

// -----

// expected-error @+1 {{expected an innermost extent of 512 for role weights, got 256}}
func.func private @words(tensor<2x2x256xi32, #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>>)

// -----

// expected-error @+1 {{expected an innermost extent of 64 for role scales, got a dynamic one}}
func.func private @strip(tensor<2x2x?xf16, #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>>)

// -----

// expected-error @+1 {{expected packed weights of i32, got 'i8'}}
func.func private @element(tensor<2x2x512xi8, #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>>)

// -----

// expected-error @+1 {{expected packed zero points of i8 or a float type, got 'i4'}}
func.func private @element(tensor<2x2x64xi4, #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = zero_points>>)

// -----

// expected-error @+1 {{expected each key once, got another stages}}
module attributes {x.test = #hquant.lowering_config<stages = 2, stages = 3>} {}

// -----

// expected-error @+1 {{turbo}}
module attributes {x.test = #hquant.lowering_config<turbo = 2>} {}

// -----

// expected-error @+1 {{m16n8k99}}
module attributes {x.test = #hquant.lowering_config<mma = m16n8k99>} {}

// -----

// expected-error @+1 {{block}}
module attributes {x.test = #hquant.lowering_config<block = [64, 16]>} {}

// -----

// expected-error @+1 {{expected hquant.target to be a #nvvm.target, got "sm_80"}}
module attributes {hquant.target = "sm_80"} {}

// -----

module {
  // expected-error @+1 {{expected hquant.target on a module only}}
  func.func private @f() attributes {hquant.target = #nvvm.target<chip = "sm_80">}
}

// -----

// expected-error @+1 {{expected activation_bits and weight_bits of 8 for role plain_weights, got 16 and 8}}
module attributes {x.test = #hquant.packed_layout<activation_bits = 16, weight_bits = 8, role = plain_weights>} {}

// -----

// expected-error @+1 {{expected plain weights of rank 2 and i8, got rank 2 and 'i32'}}
func.func private @plain(tensor<64x64xi32, #hquant.packed_layout<activation_bits = 8, weight_bits = 8, role = plain_weights>>)
