func.func @layer(%x: tensor<?x4096xbf16>, %w: tensor<4096x4096xi4>,
                 %s: tensor<4096x32xbf16>) -> tensor<?x4096xbf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xbf16>)
         quant_type = <u4, scale = bf16, group = 128>
         : tensor<?x4096xbf16>, tensor<4096x4096xi4> -> tensor<?x4096xbf16>
  return %c : tensor<?x4096xbf16>
}
