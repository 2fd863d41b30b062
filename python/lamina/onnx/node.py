"""The interface of an ONNX node for its rule, and the exceptions that rules raise."""

from __future__ import annotations

import math
from typing import Any, Iterable, Optional, Sequence

import numpy
import onnx
import onnx.defs
from onnx import helper

from lamina.onnx import types
from lamina.onnx.types import FLOATS, SMALL_FLOATS


class Unfit(Exception):
    """Raised by a rule that cannot convert a node; the text is the reason."""


class NeedsValue(Exception):
    """Raised if the value of a model's input must be known for compilation."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class NotKnown(Unfit):
    """Raised by a rule that cannot convert a node because the value of a tensor, which data determine, is not known."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self.name = name


class DataSized(Exception):
    """Raised for tensors at which the model must be split. outputs: of nodes whose results have a size that depends on data.
    values: tensors whose values must be known behind them. why: a sentence about the node."""

    def __init__(self, outputs: Iterable[str] = (), values: Iterable[str] = (), why: str = "") -> None:
        self.outputs, self.values, self.why = {name for name in outputs if name}, set(values), why
        super().__init__(", ".join(sorted(self.outputs | self.values)))


class NeedsShapes(Exception):
    """Raised if the shapes of the model's inputs must be known for compilation."""


class Node:
    """A node's inputs and attributes, and helpers that add ops to the graph."""

    def __init__(self, importer: Any, node: onnx.NodeProto, where: str, opset: int) -> None:
        self.importer, self.proto, self.where, self.opset, self.graph = importer, node, where, opset, importer.graph
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def __len__(self) -> int:
        return len(self.proto.input)

    def has(self, position: int) -> bool:
        return position < len(self.proto.input) and bool(self.proto.input[position])

    def wants(self, position: int) -> bool:
        """Whether the model uses this output."""
        return position < len(self.proto.output) and bool(self.proto.output[position])

    def tensor(self, position: int, packed: bool = False) -> Any:
        """packed: whether the rule takes constants of s4 and u4, instead of a byte for each element."""
        tensor = self.importer.tensor(self.proto.input[position], self.where, packed)
        number = self.importer.held.get(tensor.id)
        if number is not None and not packed and not self._takes(position, number):
            raise Unfit(f"input {position} is {types.name_of(number)}")
        return tensor

    def _takes(self, position: int, number: int) -> bool:
        port = self.ports("inputs", position)
        return port is not None and f"tensor({types.name_of(number).lower()})" in port.types

    def ports(self, side: str, position: int) -> Any:
        """Returns ONNX's description of an input or output, also for operators of another domain with the name of one of ONNX's;
        None for others."""
        kind, domain = self.proto.op_type, self.proto.domain
        if onnx.defs.has(kind, domain):
            schema = onnx.defs.get_schema(kind, self.opset, domain)
        elif onnx.defs.has(kind):
            schema = onnx.defs.get_schema(kind)
        else:
            return None
        described = getattr(schema, side)
        return described[min(position, len(described) - 1)]

    def tensors(self) -> list:
        return [self.tensor(i) for i in range(len(self)) if self.has(i)]

    def known(self, position: int) -> Any:
        """Returns the known value of an input; None if the node has no such input. An unknown value raises NeedsValue or
        Unfit."""
        if not self.has(position):
            return None
        name = self.proto.input[position]
        if name in self.importer.values:
            return self.importer.values[name]
        if name in self.importer.open:
            raise NeedsValue(name)
        self.importer.needs_integers([name])
        raise NotKnown(f"input {position} {name!r} is not constant", name)

    def value(self, position: int) -> Any:
        """As `known`, but returns None for an unknown value, instead of requesting it."""
        name = self.proto.input[position] if self.has(position) else None
        return self.importer.values.get(name)

    def integers(self, position: int) -> Optional[list]:
        array = self.known(position)
        return None if array is None else [int(v) for v in numpy.atleast_1d(array)]

    def attribute(self, name: str, default: Any) -> Any:
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def only_output(self, *positions: int) -> None:
        for position, name in enumerate(self.proto.output):
            if name and position not in positions:
                raise Unfit(f"output {position} is used")

    def floating(self, *tensors: Any) -> None:
        for tensor in tensors:
            if tensor.dtype not in FLOATS:
                raise Unfit(f"elements of {tensor.dtype}")

    def rank(self, tensor: Any) -> int:
        if tensor.shape is None:
            self._needs_shapes("the rank is not known")
        return len(tensor.shape)

    def shape(self, tensor: Any) -> list:
        if tensor.shape is None or None in tensor.shape:
            self._needs_shapes("a shape is not known")
        return list(tensor.shape)

    def _needs_shapes(self, why: str) -> None:
        raise Unfit(why) if self.importer.has_shapes else NeedsShapes()

    def axis(self, tensor: Any, name: str = "axis", default: int = 0) -> int:
        rank, axis = self.rank(tensor), self.attribute(name, default)
        if not -rank <= axis < max(rank, 1):
            raise Unfit(f"{name} is {axis}, allowed is {-rank}..{rank - 1}")
        return axis % max(rank, 1)

    # ---- building blocks for rules

    def op(self, kind: str, inputs: Sequence[Any], **attributes: Any) -> Any:
        return self.graph.op(kind, inputs, name=self.proto.name, **attributes)

    def scalar(self, value: float, like: Any) -> Any:
        return self.graph.constant(value, like.dtype)

    def array(self, values: Any, dtype: str) -> Any:
        """Returns a constant tensor."""
        return self.importer.constant(numpy.asarray(values), dtype)

    def copy(self, x: Any) -> Any:
        """Returns a copy as a new tensor."""
        return self.op("Reorder", [x])

    def cast(self, x: Any, dtype: str) -> Any:
        if x.dtype == dtype:
            return x
        if x.dtype in SMALL_FLOATS and dtype in SMALL_FLOATS:
            x = self.op("TypeCast", [x], dtype="f32")
        return self.op("TypeCast", [x], dtype=dtype)

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        return self.op("StaticReshape", [x], shape=[int(e) for e in shape], special_zero=False)

    def transpose(self, x: Any, order: Sequence[int]) -> Any:
        return x if list(order) == list(range(len(order))) else self.op("StaticTranspose", [x], order=[int(i) for i in order])

    def take(self, x: Any, indices: Any, axis: int) -> Any:
        """Returns entries of an axis, with constant indices."""
        return self.op("Gather", [x, self.array(numpy.asarray(indices, "int64"), "s64")], axis=axis)

    def take_elements(self, x: Any, positions: Any) -> Any:
        """Returns elements by constant row-major positions; the result has the shape of `positions`."""
        return self.take(self.reshape(x, [math.prod(self.shape(x))]), positions, 0)

    def expand(self, x: Any, shape: Sequence[int]) -> Any:
        return x if list(shape) == self.shape(x) else self.op("Expand", [x], shape=[int(e) for e in shape])


def sum_of(node: Node, *terms: Any) -> Any:
    """Returns the sum of the terms that are not None."""
    made = None
    for term in terms:
        made = term if made is None else made if term is None else node.op("Add", [made, term])
    return made


def given(node: Node, position: int) -> Any:
    """Returns the tensor of an input; None if the node has no such input."""
    return node.tensor(position) if node.has(position) else None
