"""lamina: a graph-level library of deep-learning operations with a fusion compiler.

A graph of operations is described, partitioned, compiled for this machine's CPU and called (`lamina.Graph`); common operations
are functions of arrays (`lamina.layer_norm(x)`). Arrays are numpy's, torch's, or anything that shares its memory by DLPack or the
buffer protocol; nothing is copied. `torch.compile(model, backend="lamina")` runs torch's models (`lamina.torch`),
`lamina.from_onnx` ONNX's. What is refused raises `lamina.Error`, with one sentence that says what is allowed.
"""

from __future__ import annotations

import json as _json

from lamina import _core
from lamina._core import CompiledPartition, LogicalTensor, Partition
from lamina._errors import Error
from lamina.functions import (add_layer_norm, attention, gated_mlp, gelu, group_norm, layer_norm, log_softmax, matmul, rms_norm, silu,
                              softmax)
from lamina.graph import CompiledGraph, Graph

__version__ = _core.version()
__all__ = ["CompiledGraph", "CompiledPartition", "Error", "Graph", "LogicalTensor", "Partition", "add_layer_norm", "attention",
           "from_onnx", "gated_mlp", "gelu", "group_norm", "layer_norm", "log_softmax", "matmul", "op_kinds", "op_schema", "rms_norm",
           "silu", "softmax"]


def op_kinds() -> list:
    """The names of all operations."""
    return _core.op_kinds()


def op_schema(kind: str) -> dict:
    """Ports, attributes, types and formula of an operation. Raises lamina.Error for a kind that does not exist."""
    return _json.loads(_core.op_schema_json(kind))


def from_onnx(model, name: str = "model"):
    """An ONNX model as a function of its inputs: see lamina.onnx.from_onnx."""
    from lamina.onnx import from_onnx as convert

    return convert(model, name)
