// RUN: humming-opt %s --hquant-lower-dequant --split-input-file --verify-diagnostics

func.func @exponent(%w: vector<1x8xi32>) -> vector<1x4x4xi32> {
  // expected-error @+1 {{has no sequence from e6m1 to f16; rule P4 of docs/HQuant.md lists the pairs that have one}}
  %a = hquant.dequant %w {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<e6m1>, scale = #hquant.format<f16>}
      : vector<1x8xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// -----

func.func @width(%w: vector<1x8xi32>) -> vector<1x2x4xi32> {
  // expected-error @+1 {{has no sequence from u8 to e4m3}}
  %a = hquant.dequant %w {mma = #hquant.sync_mma<m16n8k32, e4m3>, weight = #hquant.format<u8>, scale = #hquant.format<f16>}
      : vector<1x8xi32> -> vector<1x2x4xi32>
  return %a : vector<1x2x4xi32>
}

// -----

// The ones that have a sequence are still lowered, and each that has none is named.
func.func @float(%w: vector<1x4xi32>, %v: vector<1x7xi32>) {
  // expected-error @+1 {{has no sequence from e5m1 to f16}}
  %a = hquant.dequant %v {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<e5m1>, scale = #hquant.format<f16>}
      : vector<1x7xi32> -> vector<1x4x4xi32>
  // expected-error @+1 {{has no sequence from e1m2 to s8}}
  %b = hquant.dequant %w {mma = #hquant.sync_mma<m16n8k32, s8>, weight = #hquant.format<e1m2>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x2x4xi32>
  %c = hquant.dequant %w {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return
}
