// RUN: humming-opt %s --hquant-lower-dequant --split-input-file --verify-diagnostics

func.func @eight_bits(%w: vector<1x8xi32>) -> vector<1x4x4xi32> {
  // expected-error @+1 {{has no sequence from u8 to bf16; expected unsigned codes of at most 7 bits}}
  %a = hquant.dequant %w {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u8>, scale = #hquant.format<bf16>}
      : vector<1x8xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// -----

func.func @signed(%w: vector<1x4xi32>) -> vector<1x4x4xi32> {
  // expected-error @+1 {{has no sequence from s4 to f16; expected unsigned codes of at most 8 bits}}
  %a = hquant.dequant %w {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<s4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// -----

// The ones that have a sequence are still lowered, and each that has none is named.
func.func @float(%w: vector<1x4xi32>, %v: vector<1x8xi32>) {
  // expected-error @+1 {{has no sequence from e2m1 to f16}}
  %a = hquant.dequant %w {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<e2m1>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  // expected-error @+1 {{has no sequence from e4m3 to f16}}
  %b = hquant.dequant %v {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<e4m3>, scale = #hquant.format<f16>}
      : vector<1x8xi32> -> vector<1x4x4xi32>
  %c = hquant.dequant %w {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return
}
