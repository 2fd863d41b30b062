"""Rules for reductions and products."""

from __future__ import annotations

import itertools
import math
from typing import Any, Callable

import numpy

from lamina.onnx.node import Node, Unfit
from lamina.onnx.types import FLOATS, of_numpy

# The results of reductions over no elements.
_OF_NOTHING = {"ReduceSum": 0.0, "ReduceL1": 0.0, "ReduceL2": 0.0, "ReduceProd": 1.0, "ReduceMax": -math.inf, "ReduceMin": math.inf}

_LARGEST_MATRIX = 6  # of a determinant: the number of products doubles with each row

# Reductions of integers, and the floats in which they are exact. A reduction of fewer than 2^21 integers of 32 bits has fewer
# than 53 bits.
_EXACT_KINDS = ("ReduceSum", "ReduceMax", "ReduceMin")
_LONG_TYPES = ("s64", "u64")
_WIDE_TYPES = {"s8": "f64", "u8": "f64", "s16": "f64", "u16": "f64", "s32": "f64", "u32": "f64", "boolean": "f32"}


def reduce(kind: str) -> Callable:
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        is_long = kind in _EXACT_KINDS and x.dtype in _LONG_TYPES
        if x.dtype not in FLOATS and 0 in node.shape(x):
            raise Unfit("a reduction of integers without elements")
        if kind in _EXACT_KINDS and x.dtype in _WIDE_TYPES:
            return node.cast(rule(Replaced(node, node.cast(x, _WIDE_TYPES[x.dtype]))), x.dtype)
        if not is_long:
            node.floating(x)
        axes = node.attribute("axes", None)
        given = node.known(1) if axes is None else numpy.array(axes)
        if given is None or given.size == 0:
            if node.attribute("noop_with_empty_axes", 0):
                return _of_one(node, kind, x)
            given = numpy.arange(node.rank(x))
        shape, keep = node.shape(x), bool(node.attribute("keepdims", 1))
        reduced = {int(axis) % max(len(shape), 1) for axis in given}
        if not reduced:
            return _of_one(node, kind, x)
        if any(shape[axis] == 0 for axis in reduced):
            return _of_nothing(kind, x.dtype, [1 if i in reduced else e for i, e in enumerate(shape) if keep or i not in reduced])
        if is_long:
            return _of_long_integers(node, kind, x, reduced, keep)
        return node.op(kind, [x], axes=sorted(reduced), keep_dims=keep)

    return rule


def _of_long_integers(node: Node, kind: str, x: Any, axes: set, keep: bool) -> Any:
    """Integers of 64 bits, which no float has exactly: the last running sum, or the first element in order."""
    shape = node.shape(x)
    for axis in axes:
        if kind == "ReduceSum":
            x = node.op("Slice", [node.op("CumSum", [x], axis=axis)], starts=[shape[axis] - 1], ends=[shape[axis]], axes=[axis])
        else:
            x, _ = node.op("TopK", [x], axis=axis, k=1, largest=kind == "ReduceMax", outputs=(True, False))
    return x if keep else node.reshape(x, [e for i, e in enumerate(shape) if i not in axes])


def _of_one(node: Node, kind: str, x: Any) -> Any:
    """A reduction over no axes, hence of one element each."""
    return node.op("Abs", [x]) if kind in ("ReduceL1", "ReduceL2") else node.copy(x)


def _of_nothing(kind: str, dtype: str, shape: list) -> numpy.ndarray:
    if kind not in _OF_NOTHING:
        raise Unfit("a mean without elements")
    return numpy.full(shape, _OF_NOTHING[kind], of_numpy(dtype))


def composed(before: str, kind: str, after: str = "") -> Callable:
    """A reduction with an elementwise op before it and optionally an op after it."""
    inner = reduce(kind)

    def rule(node: Node) -> Any:
        if 0 in node.shape(node.tensor(0)):
            raise Unfit("a reduction without elements")
        x = node.tensor(0)
        made = inner(Replaced(node, node.op(before, [x]) if before else x))
        return node.op(after, [made]) if after else made

    return rule


class Replaced:
    """The node with another tensor as its first input."""

    def __init__(self, node: Node, first: Any) -> None:
        self._node, self._first = node, first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def tensor(self, position: int) -> Any:
        return self._first if position == 0 else self._node.tensor(position)


def lp_normalization(node: Node) -> Any:
    x, p = node.tensor(0), node.attribute("p", 2)
    node.floating(x)
    if p not in (1, 2):
        raise Unfit(f"p is {p}, allowed is 1 or 2")
    norm = node.op("ReduceL1" if p == 1 else "ReduceL2", [x], axes=[node.axis(x, default=-1)], keep_dims=True)
    is_zero = node.op("Equal", [norm, node.scalar(0, norm)])  # avoids 0 / 0: the result for zeros is zeros
    return node.op("Divide", [x, node.op("Add", [norm, node.cast(is_zero, norm.dtype)])])


def running(kind: str) -> Callable:
    def rule(node: Node) -> Any:
        x, axis = node.tensor(0), int(node.known(1).flat[0])
        return node.op(kind, [x], axis=axis, exclusive=bool(node.attribute("exclusive", 0)), reverse=bool(node.attribute("reverse", 0)))

    return rule


def top_k(node: Node) -> list:
    """The k largest or smallest elements, in order even if the model does not ask for it."""
    x, count = node.tensor(0), int(node.known(1).flat[0])
    wanted = (node.wants(0), node.wants(1))
    return list(node.op("TopK", [x], axis=node.axis(x, default=-1), k=count, largest=bool(node.attribute("largest", 1)), outputs=wanted))


def matmul(node: Node) -> Any:
    left, right = node.tensor(0), node.tensor(1)
    node.floating(left, right)
    return node.op("MatMul", [left, right])


def gemm(node: Node) -> Any:
    left, right = node.tensor(0), node.tensor(1)
    node.floating(left, right)
    made = node.op("MatMul", [left, right], transpose_a=bool(node.attribute("transA", 0)), transpose_b=bool(node.attribute("transB", 0)))
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    if alpha != 1:
        made = node.op("Multiply", [made, node.scalar(alpha, made)])
    if not node.has(2) or beta == 0:
        return made
    bias = node.tensor(2)
    bias = bias if beta == 1 else node.op("Multiply", [bias, node.scalar(beta, made)])
    return node.op("Add", [made, bias])


def determinant(node: Node) -> Any:
    """By the rows from the last to the first: the minors of some columns are sums of minors of one row and column less."""
    x = node.tensor(0)
    node.floating(x)
    *batch, rows, columns = node.shape(x)
    if rows != columns or not 1 <= rows <= _LARGEST_MATRIX:
        raise Unfit(f"matrices [{rows}, {columns}], allowed is square ones of up to {_LARGEST_MATRIX} rows")
    flat = node.reshape(x, [math.prod(batch), rows * columns])
    entry = lambda row, column: node.op("Slice", [flat], starts=[row * columns + column], ends=[row * columns + column + 1], axes=[1])
    minors = {(column,): entry(rows - 1, column) for column in range(columns)}
    for row in reversed(range(rows - 1)):
        larger = {}
        for chosen in itertools.combinations(range(columns), rows - row):
            made = None
            for place, column in enumerate(chosen):
                term = node.op("Multiply", [entry(row, column), minors[chosen[:place] + chosen[place + 1:]]])
                made = term if made is None else node.op("Subtract" if place % 2 else "Add", [made, term])
            larger[chosen] = made
        minors = larger
    return node.reshape(minors[tuple(range(columns))], batch)


RULES = {
    **{kind: reduce(kind) for kind in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2")},
    "ReduceSumSquare": composed("Square", "ReduceSum"), "ReduceLogSum": composed("", "ReduceSum", "Log"),
    "LpNormalization": lp_normalization, "CumSum": running("CumSum"), "CumProd": running("CumProd"), "TopK": top_k,
    "Det": determinant, "MatMul": matmul, "Gemm": gemm,
}
