// RUN: humming-opt %s --split-input-file --humming-configure=chip=sm_80 --verify-diagnostics

func.func @no_mma(%x: tensor<?x4096xbf16>) -> tensor<?x4096xf8E4M3FN> {
  // expected-error @+1 {{rule Q3: expected codes that sm_80 has an MMA for, got e4m3}}
  %q, %s = hquant.quantize %x {scale = "token"} : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN> scales(tensor<?xf32>)
  return %q : tensor<?x4096xf8E4M3FN>
}

// -----

func.func @config(%x: tensor<?x4096xbf16>) -> tensor<?x4096xi8> {
  // expected-error @+1 {{rule Q11: expected 1 to 8 chunks with 256 threads, got 9}}
  %q, %s = hquant.quantize %x quantize_config = <chunks = 9> {scale = "token"} : tensor<?x4096xbf16> -> tensor<?x4096xi8> scales(tensor<?xf32>)
  return %q : tensor<?x4096xi8>
}
