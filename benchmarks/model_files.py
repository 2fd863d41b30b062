#!/usr/bin/env python3
"""Exports whole models with lamina.export, runs the files by liblamina_runtime, and compares them with PyTorch.

    model_files.py FOLDER [MODEL | FILE.onnx]... [--packed] [--isa avx512,avx2] [--threads N] [--small]

MODEL: one of torch_models.py; default: all 22. Models are torch.export's programs of modules with random weights. A row per model:
  export, MB     seconds of lamina.export, and the size of FOLDER/NAME.lamina
  load, first    milliseconds until the model can be called, and from there to the first result; the file is in the page cache
  apart          the largest difference of an output from PyTorch's, relative to its largest element; for an ONNX model from
                 lamina.from_onnx, which uses oneDNN for convolutions
  outputs        how many the model has
The exit code is 1 if a model cannot be exported, or is apart by more than 1e-4.

The files can be run where nothing but the runtime is installed (build/test/bin has the program that writes the expected digests):
    library_digest --without-onednn FOLDER/*.lamina >FOLDER/expected.txt
    scripts/clean-room --packages --models=FOLDER

Needs the packages lamina, torch and numpy, and transformers, timm and diffusers for their models.
"""
import argparse
import pathlib
import sys
import time
import warnings


def milliseconds(action):
    begin = time.perf_counter()
    result = action()
    return result, 1e3 * (time.perf_counter() - begin)


def tensors_in(result):
    import torch
    from torch.utils import _pytree

    return [leaf for leaf in _pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def torch_model(name, small):
    """Returns what is exported, the inputs by name, and the outputs."""
    import torch
    from torch_model_list import MODELS, model_of

    module, args, kwargs = model_of(MODELS[name], small, False)
    with torch.no_grad():
        expected = tensors_in(module(*args, **kwargs))
        program = torch.export.export(module, args, kwargs)
    users = program.graph_signature.user_inputs
    return program, dict(zip(users, (*args, *kwargs.values()))), expected


def onnx_model(path):
    import lamina
    import numpy
    import onnx

    proto = onnx.load(path)
    weights, random = {tensor.name for tensor in proto.graph.initializer}, numpy.random.default_rng(1)
    inputs = {value.name: random.random([dim.dim_value for dim in value.type.tensor_type.shape.dim], dtype="f")
              for value in proto.graph.input if value.name not in weights}
    expected = lamina.from_onnx(path)(*inputs.values())
    return path, inputs, list(expected) if isinstance(expected, (list, tuple)) else [expected]


def apart(made, expected):
    import numpy

    made, expected = (numpy.asarray(array, dtype="f8") for array in (made, expected))
    if made.shape != expected.shape:
        sys.exit(f"an output is {list(made.shape)}, allowed is {list(expected.shape)}")
    return float(abs(made - expected).max() / max(abs(expected).max(), 1e-30))


def measured(name, chosen):
    """Returns the row of a model, and how far it is apart."""
    import lamina

    is_onnx = name.endswith(".onnx")
    model, inputs, expected = onnx_model(name) if is_onnx else torch_model(name, chosen.small)
    path = chosen.folder / f"{pathlib.Path(name).name}.lamina"
    _, took = milliseconds(lambda: lamina.export(model, path, packed=chosen.packed, isa=chosen.isa and chosen.isa.split(",")))
    path.read_bytes()
    loaded, load = milliseconds(lambda: lamina.load(path))
    results, first = milliseconds(lambda: loaded({port.name: inputs[port.name] for port in loaded.inputs}, threads=chosen.threads))
    results = results if isinstance(results, tuple) else (results,)
    if len(results) != len(expected):
        sys.exit(f"{name}: the file has {len(results)} outputs, allowed are the model's {len(expected)}")
    far = max(map(apart, results, expected))
    return f"{took / 1e3:8.2f}{path.stat().st_size / 1e6:9.1f}{load:9.2f}{first:9.1f}{far:10.1e}{len(results):9}", far


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*", metavar="MODEL | FILE.onnx")
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--isa")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--small", action="store_true")
    chosen = parser.parse_args()
    names = chosen.models
    if not names or not all(name.endswith(".onnx") for name in names):
        from torch_model_list import MODELS

        names = names or list(MODELS)
        unknown = [name for name in names if name not in MODELS and not name.endswith(".onnx")]
        if unknown:
            sys.exit(f"no model {', '.join(unknown)}; allowed are files of ONNX and {', '.join(MODELS)}")
    warnings.filterwarnings("ignore")
    chosen.folder.mkdir(parents=True, exist_ok=True)
    print(f"{'model':32}{'export s':>8}{'MB':>9}{'load ms':>9}{'first ms':>9}{'apart':>10}{'outputs':>9}")
    faults = 0
    for name in names:
        try:
            row, far = measured(name, chosen)
        except Exception as error:  # of the packages, which have no common base
            row, far = f"{type(error).__name__}: {str(error)[:300]}", float("inf")
        faults += far > 1e-4
        print(f"{pathlib.Path(name).stem:32}{row}", flush=True)
    print(f"{len(names) - faults} of {len(names)} models are exported and right")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
