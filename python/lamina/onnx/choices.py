"""Rules for operators whose results are places: which element is the largest, and which elements are infinite."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy

from lamina.onnx.node import Node, Unfit

_LARGEST_F32_INTEGER = 1 << 24


def _numbers_along(node: Node, extent: int, axis: int, rank: int) -> Any:
    """Returns 0, 1, ... along the axis, as f32."""
    if extent > _LARGEST_F32_INTEGER:
        raise Unfit(f"{extent} elements along the axis, allowed is {_LARGEST_F32_INTEGER}")
    return node.array(numpy.arange(extent).reshape([-1 if i == axis else 1 for i in range(rank)]), "f32")


def _place(node: Node, x: Any, kind: str, axis: int, last: bool) -> Any:
    """Returns the first or last place of the extreme along the axis, as f32 with the axis kept. A NaN is the extreme, as in
    NumPy."""
    shape = node.shape(x)
    if shape[axis] == 0:
        raise Unfit("no elements along the axis")
    numbers = _numbers_along(node, shape[axis], axis, len(shape))
    extreme = node.op(kind, [x], axes=[axis], keep_dims=True)
    is_extreme = node.op("LogicalOr", [node.op("Equal", [x, extreme]), node.op("NotEqual", [x, x])])
    beyond = node.array(numpy.full([1] * len(shape), -1 if last else shape[axis]), "f32")
    return node.op("ReduceMax" if last else "ReduceMin", [node.op("Select", [is_extreme, node.expand(numbers, shape), beyond])], axes=[axis], keep_dims=True)


def place_of(kind: str) -> Callable:
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        node.floating(x)
        axis = node.axis(x)
        found = node.cast(_place(node, x, kind, axis, bool(node.attribute("select_last_index", 0))), "s64")
        shape = node.shape(x)
        return found if node.attribute("keepdims", 1) else node.reshape(found, shape[:axis] + shape[axis + 1:])

    return rule


def hardmax(node: Node) -> Any:
    x = node.tensor(0)
    node.floating(x)
    axis, shape = node.axis(x, default=-1), node.shape(x)
    numbers = node.expand(_numbers_along(node, shape[axis], axis, len(shape)), shape)
    return node.cast(node.op("Equal", [numbers, _place(node, x, "ReduceMax", axis, last=False)]), x.dtype)


def is_infinite(node: Node) -> Any:
    x = node.tensor(0)
    node.floating(x)
    positive, negative = (bool(node.attribute(f"detect_{sign}", 1)) for sign in ("positive", "negative"))
    if positive and negative:
        return node.op("Equal", [node.op("Abs", [x]), node.scalar(math.inf, x)])
    if not positive and not negative:
        return numpy.zeros(node.shape(x), bool)
    return node.op("Equal", [x, node.scalar(math.inf if positive else -math.inf, x)])


RULES = {"ArgMax": place_of("ReduceMax"), "ArgMin": place_of("ReduceMin"), "Hardmax": hardmax, "IsInf": is_infinite}
