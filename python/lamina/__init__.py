"""lamina: a graph-level library of deep-learning operations with a fusion compiler.

`lamina.Graph` describes, partitions and compiles a graph of operations for this machine's CPU; the result is called as a
function. Common operations are functions of arrays (`lamina.layer_norm(x)`). Arrays are numpy's, torch's, or anything that
shares its memory by DLPack or the buffer protocol; nothing is copied. `torch.compile(model, backend="lamina")` runs torch
models (`lamina.torch`), `lamina.from_onnx` ONNX models. `lamina.export` writes a model as one file, and `lamina.load` runs
it. Invalid input raises `lamina.Error`, with one sentence that says what is allowed.
"""

from __future__ import annotations

import json as _json
from typing import TYPE_CHECKING

from lamina import _core
from lamina._core import CompiledPartition, LogicalTensor, Partition
from lamina._errors import Error
from lamina._verbose import set_verbose
from lamina.functions import (add_layer_norm, attention, gated_mlp, gelu, group_norm, layer_norm, log_softmax, matmul, rms_norm, silu,
                              softmax)
from lamina.graph import CompiledGraph, Graph
from lamina.profile import profile

if TYPE_CHECKING:
    from lamina.explanation import Explanation
    from lamina.exporting import export
    from lamina.runtime import load

# Modules that import much: they are imported at the first use of a name.
_LATER = {"Explanation": "lamina.explanation", "export": "lamina.exporting", "load": "lamina.runtime"}

__version__ = _core.version()
__all__ = ["CompiledGraph", "CompiledPartition", "Error", "Explanation", "Graph", "LogicalTensor", "Partition", "add_layer_norm", "attention",
           "data_types", "explain", "export", "from_onnx", "gated_mlp", "gelu", "group_norm", "layer_norm", "load", "log_softmax", "matmul", "op_kinds", "op_schema", "profile",
           "rms_norm", "set_verbose", "silu", "softmax"]


def __getattr__(name: str):
    if name not in _LATER:
        raise AttributeError(f"module 'lamina' has no attribute {name!r}")
    import importlib

    globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
    return globals()[name]


def __dir__() -> list:
    return sorted({*globals(), *_LATER})


def data_types() -> list:
    """Returns the names of all element types."""
    return _core.data_types()


def op_kinds() -> list:
    """Returns the names of all operations."""
    return _core.op_kinds()


def op_schema(kind: str) -> dict:
    """Returns the ports, attributes, types and formula of an operation. Raises lamina.Error for a kind that does not exist.
    """
    return _json.loads(_core.op_schema_json(kind))


def explain(what, title: str = "") -> Explanation:
    """Explains why the ops of a graph are in their partitions, and which code runs: as data, as a page (`show()`), or as a
    picture in a notebook.

    what: a Graph, a CompiledGraph, or partitions of one graph in an order in which they can run. For torch models use
    lamina.torch.explain. title: the heading of the page. Raises lamina.Error for any other object."""
    if hasattr(what, "explain"):
        return what.explain(title)
    if isinstance(what, (list, tuple)) and what and all(isinstance(each, Partition) for each in what):
        from lamina.explanation import Explanation

        return Explanation(what, title=title)
    raise Error(f"explain: a {type(what).__name__} is given, allowed is a Graph, a CompiledGraph or a list of partitions")


def from_onnx(model, name: str = "model"):
    """Returns an ONNX model as a function of its inputs; see lamina.onnx.from_onnx."""
    from lamina.onnx import from_onnx as convert

    return convert(model, name)
