"""The forms of a model's inputs, for which it is compiled: their shapes, and the lengths of sequences. The tensors of sequences
become inputs of the graph, with names such as `x[0]`."""

from __future__ import annotations

from typing import NamedTuple, Optional

import onnx
from onnx import helper

from lamina._errors import Error


class Form(NamedTuple):
    """What a caller has passed: a list of `count` arrays, or one array or None (count None)."""

    count: Optional[int]
    shapes: tuple  # of the arrays

    def tensors(self, value: onnx.ValueInfoProto) -> list:
        """Returns the description of each tensor."""
        kind = _tensor_type(value.type)
        names = [value.name] if self.count is None else [f"{value.name}[{i}]" for i in range(self.count)]
        return [helper.make_tensor_value_info(name, kind, shape) for name, shape in zip(names, self.shapes)]


def _tensor_type(kind: onnx.TypeProto) -> int:
    """Returns ONNX's number of the element type."""
    while kind.HasField("optional_type") or kind.HasField("sequence_type"):
        kind = (kind.optional_type if kind.HasField("optional_type") else kind.sequence_type).elem_type
    return kind.tensor_type.elem_type


def structured_inputs(model: onnx.ModelProto) -> set:
    """Returns the names of the inputs that are not tensors."""
    return {value.name for value in model.graph.input if value.type.HasField("optional_type") or value.type.HasField("sequence_type")}


def split_inputs(model: str, given: dict, structured: set, by_shapes: bool) -> tuple:
    """Returns the arrays by the names of their tensors, and the form of each structured input; with `by_shapes`, of each input."""
    arrays, forms = {}, {}
    for name, value in given.items():
        if name not in structured:
            arrays[name] = value
            if by_shapes:
                forms[name] = Form(None, (tuple(value.shape),))
            continue
        parts = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
        if not all(hasattr(part, "shape") for part in parts):
            raise Error(f"{model}: input {name!r} is {type(value).__name__}, allowed is an array, a list of arrays or None")
        forms[name] = Form(len(parts) if isinstance(value, (list, tuple)) else None, tuple(tuple(part.shape) for part in parts))
        arrays.update(zip([f"{name}[{i}]" for i in range(len(parts))] if isinstance(value, (list, tuple)) else [name], parts))
    return arrays, forms
