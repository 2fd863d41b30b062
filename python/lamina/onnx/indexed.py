"""Rules for operators that read or write elements by index. Indices that are known when the model is read become constants of a
Gather. Others are data: their places in the tensor are computed in the graph, and the Gather reports those out of range."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import numpy

from lamina.onnx.folding import elements_of
from lamina.onnx.node import Node, Unfit

_BEYOND_ALL_COUNTS = 1 << 40  # of updates


def gather(node: Node) -> Any:
    x, axis = node.tensor(0), node.attribute("axis", 0)
    return node.op("Gather", [x, node.tensor(1)], axis=axis)


def places(shape: list) -> numpy.ndarray:
    """Returns the row-major position of each element."""
    return numpy.arange(math.prod(shape)).reshape(shape)


class Places:
    """Row-major positions in a tensor of `shape`, computed from an index per axis. Indices that are data may be negative."""

    def __init__(self, node: Node, shape: Sequence[int]) -> None:
        self._node, self._shape, self._made, self._fits = node, list(shape), None, None
        self._next = 0

    def along(self, index: Any) -> "Places":
        """Adds the index of the next axis: an array, or a tensor of s32 or s64."""
        node, extent = self._node, self._shape[self._next]
        self._next += 1
        if isinstance(index, numpy.ndarray):
            index = node.array(index, "s64")
        else:
            index = node.cast(index, "s64")
            index = node.op("Select", [node.op("Less", [index, node.scalar(0, index)]), node.op("Add", [index, node.scalar(extent, index)]), index])
            fits = node.op("LogicalAnd", [node.op("GreaterEqual", [index, node.scalar(0, index)]), node.op("Less", [index, node.scalar(extent, index)])])
            self._fits = fits if self._fits is None else node.op("LogicalAnd", [self._fits, fits])
        self._made = index if self._made is None else node.op("Add", [node.op("Multiply", [self._made, node.scalar(extent, index)]), index])
        return self

    def value(self) -> Any:
        """Returns the positions; one after the last of the tensor where an index is out of range."""
        if self._fits is None:
            return self._made
        return self._node.op("Select", [self._fits, self._made, self._node.scalar(math.prod(self._shape), self._made)])


def _numbers(rank: int, axis: int, extent: int) -> numpy.ndarray:
    """Returns 0, 1, ... along the axis."""
    return numpy.arange(extent).reshape([-1 if i == axis else 1 for i in range(rank)])


def _places_of_elements(node: Node, shape: list, indices: Any, axis: int) -> Any:
    """The places that GatherElements and ScatterElements mean: `indices` along the axis, their own places along the others."""
    of_indices, made = node.shape(indices), Places(node, shape)
    for i in range(len(shape)):
        made.along(indices if i == axis else _numbers(len(shape), i, of_indices[i]))
    return made.value()


def _places_of_slices(node: Node, shape: list, indices: Any, batch: int) -> Any:
    """The places of slices that GatherND and ScatterND mean: the last axis of `indices` has an index per axis, after `batch`
    axes that both tensors have."""
    *outer, count = node.shape(indices)
    made = Places(node, shape[:batch + count])
    for i in range(batch):
        made.along(_numbers(len(outer), i, outer[i]))
    for i in range(count):
        made.along(node.reshape(node.op("Slice", [indices], starts=[i], ends=[i + 1], axes=[len(outer)]), outer))
    return made.value()


# ---- reading

def gather_elements(node: Node) -> Any:
    x, axis, indices = node.tensor(0), node.axis(node.tensor(0)), node.value(1)
    if indices is not None:
        return node.take_elements(x, elements_of(places(node.shape(x)), indices, axis))
    shape = node.shape(x)
    flat = node.reshape(x, [math.prod(shape)])
    return node.op("Gather", [flat, _places_of_elements(node, shape, node.tensor(1), axis)], axis=0)


def gather_nd(node: Node) -> Any:
    x, batch = node.tensor(0), node.attribute("batch_dims", 0)
    indices, shape = node.tensor(1), node.shape(node.tensor(0))
    count = node.shape(indices)[-1]
    if batch + count == 0:
        raise Unfit("indices without elements")
    rows = node.reshape(x, [math.prod(shape[:batch + count]), *shape[batch + count:]])
    return node.op("Gather", [rows, _places_of_slices(node, shape, indices, batch)], axis=0)


def one_hot(node: Node) -> Any:
    indices, depth, values = node.tensor(0), int(node.known(1).flat[0]), node.tensor(2)
    shape = node.shape(indices)
    axis = node.attribute("axis", -1) % (len(shape) + 1)
    wide = node.reshape(indices, shape[:axis] + [1] + shape[axis:])
    negative = node.op("Less", [wide, node.scalar(0, wide)])
    wide = node.op("Select", [negative, node.op("Add", [wide, node.scalar(depth, wide)]), wide])
    hot = node.op("Equal", [wide, node.array(_numbers(len(shape) + 1, axis, depth), wide.dtype)])
    off, on = (node.reshape(node.op("Slice", [values], starts=[i], ends=[i + 1], axes=[0]), [1] * (len(shape) + 1)) for i in range(2))
    return node.op("Select", [hot, node.expand(on, node.shape(hot)), off])


# ---- writing

_OF_DATA = ("none", "add")  # reductions by indices that are data
# reduction: the op and its neutral element.
_REDUCTIONS = {"add": ("Add", 0.0), "mul": ("Multiply", 1.0), "max": ("Maximum", -math.inf), "min": ("Minimum", math.inf)}


def _with_known(node: Node, x: Any, targets: numpy.ndarray, updates: Any, reduction: str) -> Any:
    """targets: the place of each update, in order."""
    shape, number = node.shape(x), numpy.arange(targets.size)
    count = math.prod(shape)
    flat = node.reshape(updates, [number.size])
    if reduction == "none":  # a gather from data and updates: the last update of an element wins
        source = numpy.arange(count)
        source[targets] = count + number
        return node.take(node.op("Concat", [node.reshape(x, [count]), flat], axis=0), source.reshape(shape), 0)
    kind, nothing = _REDUCTIONS[reduction]
    with_nothing = node.op("Concat", [flat, node.array(numpy.full([1], nothing), x.dtype)], axis=0)
    made, seen = x, _nth_of_its_kind(targets)
    for turn in range(seen.max(initial=-1) + 1):  # updates of one element are applied in sequence
        source = numpy.full(count, number.size)
        source[targets[seen == turn]] = number[seen == turn]
        made = node.op(kind, [made, node.take(with_nothing, source.reshape(shape), 0)])
    return node.copy(x) if made is x else made


def _nth_of_its_kind(values: numpy.ndarray) -> numpy.ndarray:
    """Returns for each entry the number of equal entries before it."""
    order = numpy.argsort(values, kind="stable")
    kinds = values[order]
    begins = numpy.flatnonzero(numpy.concatenate([[True], kinds[1:] != kinds[:-1]])) if kinds.size else numpy.zeros(0, int)
    lengths = numpy.diff(numpy.append(begins, kinds.size))
    result = numpy.empty(values.size, int)
    result[order] = numpy.arange(values.size) - numpy.repeat(begins, lengths)
    return result


def scattered(reads_slices: bool) -> Callable:
    """ScatterND, or ScatterElements."""
    def rule(node: Node) -> Any:
        x, updates, reduction = node.tensor(0), node.tensor(2), node.attribute("reduction", "none")
        shape, indices = node.shape(x), node.value(1) if reduction in _OF_DATA else node.known(1)
        if indices is not None:
            data = places(shape)
            targets = data[tuple(numpy.moveaxis(indices, -1, 0))] if reads_slices else elements_of(data, indices, node.axis(x))
            return _with_known(node, x, targets.reshape(-1), updates, reduction)
        given = node.tensor(1)
        count = node.shape(given)[-1] if reads_slices else len(shape)
        found = _places_of_slices(node, shape, given, 0) if reads_slices else _places_of_elements(node, shape, given, node.axis(x))
        rows = [math.prod(shape[:count]), math.prod(shape[count:])]
        number = math.prod(node.shape(found))
        made = _with_data(node, node.reshape(x, rows), node.reshape(found, [number]), node.reshape(updates, [number, rows[1]]), reduction)
        return node.reshape(made, shape)

    return rule


def _with_data(node: Node, x: Any, targets: Any, updates: Any, reduction: str) -> Any:
    """x [rows, n] with the updates [m, n] of the rows `targets` [m]."""
    rows, _ = node.shape(x)
    if reduction == "none":
        return _written(node, x, targets, updates)
    node.floating(x)
    return node.op("Add", [x, node.op("ScatterAdd", [updates, targets], axis=0, extent=rows)])


def _written(node: Node, x: Any, targets: Any, updates: Any) -> Any:
    """x [rows, n] with the rows `targets` [m], which are different, replaced by `updates` [m, n]: each row reads the number of
    its update from a table. Two updates of a row give a number that no update has."""
    rows, count = node.shape(x)[0], node.shape(targets)[0]
    if not count:
        return node.copy(x)
    number = node.op("ScatterAdd", [node.array(numpy.arange(count) + _BEYOND_ALL_COUNTS, "f64"), targets], axis=0, extent=rows)
    source = node.op("Maximum", [node.op("Subtract", [number, node.scalar(_BEYOND_ALL_COUNTS, number)]), node.scalar(0, number)])
    new = node.op("Gather", [updates, node.cast(source, "s64")], axis=0)
    is_new = node.reshape(node.op("Greater", [number, node.scalar(0, number)]), [rows, 1])
    return node.op("Select", [is_new, new, x])


def tensor_scatter(node: Node) -> Any:
    """Rows of a cache from an index per batch entry. Each row of the result reads the update or the cache."""
    cache, update = node.tensor(0), node.tensor(1)
    shape, axis = node.shape(cache), node.axis(cache, default=-2)
    extent, length, outer = shape[axis], node.shape(update)[axis], math.prod(shape[1:axis])
    start = node.cast(node.tensor(2), "s64") if node.has(2) else node.array(numpy.zeros(shape[0]), "s64")
    start = node.reshape(start, [shape[0], 1, 1])
    zero, last = (node.scalar(number, start) for number in (0, length - 1))
    rows, is_legal = node.array(numpy.arange(extent).reshape(1, 1, -1), "s64"), node.op("GreaterEqual", [start, zero])
    if node.attribute("mode", "linear") == "circular":
        turns = node.op("Multiply", [node.op("Divide", [start, node.scalar(extent, start)]), node.scalar(extent, start)])
        place = node.op("Subtract", [rows, node.op("Subtract", [start, turns])])
        place = node.op("Select", [node.op("Less", [place, zero]), node.op("Add", [place, node.scalar(extent, place)]), place])
    else:
        place = node.op("Subtract", [rows, start])
        is_legal = node.op("LogicalAnd", [is_legal, node.op("LessEqual", [start, node.scalar(extent - length, start)])])
    is_new = node.op("LogicalAnd", [node.op("GreaterEqual", [place, zero]), node.op("LessEqual", [place, last])])
    within = node.op("Minimum", [node.op("Maximum", [place, zero]), last])
    base = node.array(numpy.arange(shape[0] * outer).reshape(shape[0], outer, 1) * length, "s64")
    source = node.op("Select", [is_legal, node.op("Add", [base, within]), node.scalar(shape[0] * outer * length, base)])
    inner = math.prod(shape[axis + 1:])
    new = node.op("Gather", [node.reshape(update, [shape[0] * outer * length, inner]), source], axis=0)
    old = node.reshape(cache, [shape[0], outer, extent, inner])
    return node.reshape(node.op("Select", [node.reshape(is_new, [shape[0], 1, extent, 1]), new, old]), shape)


def max_unpool(node: Node) -> Any:
    """The elements at their places in zeros. The places are those in a tensor of the size that the window implies; a larger
    output_shape adds zeros behind it."""
    x, indices, kernel = node.tensor(0), node.tensor(1), list(node.attribute("kernel_shape", []))
    node.floating(x)
    shape, spatial = node.shape(x), len(kernel)
    strides, pads = list(node.attribute("strides", None) or [1] * spatial), list(node.attribute("pads", None) or [0] * (2 * spatial))
    implied = shape[:2] + [(e - 1) * s - pads[i] - pads[spatial + i] + k for i, (e, s, k) in enumerate(zip(shape[2:], strides, kernel))]
    wanted, count = node.integers(2) or implied, math.prod(implied)
    if any(w < e for w, e in zip(wanted, implied)):
        raise Unfit(f"output_shape {wanted}, allowed is {implied} or more")
    targets, updates = node.reshape(indices, [math.prod(shape)]), node.reshape(x, [math.prod(shape)])
    made = node.op("ScatterAdd", [updates, targets], axis=0, extent=count)
    if any(k > s for k, s in zip(kernel, strides)):  # windows overlap, hence may have the same largest element
        times = node.op("ScatterAdd", [node.array(numpy.ones(math.prod(shape)), x.dtype), targets], axis=0, extent=count)
        made = node.op("Divide", [made, node.op("Maximum", [times, node.scalar(1, times)])])
    made = node.reshape(made, implied)
    for axis, (more, extent) in enumerate(zip(wanted, implied)):
        if more > extent:
            beside = [more - extent if i == axis else e for i, e in enumerate(node.shape(made))]
            made = node.op("Concat", [made, node.expand(node.array(numpy.zeros([1] * len(beside)), x.dtype), beside)], axis=axis)
    return made


RULES = {
    "Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd, "OneHot": one_hot, "TensorScatter": tensor_scatter, "MaxUnpool": max_unpool,
    "ScatterElements": scattered(reads_slices=False), "Scatter": scattered(reads_slices=False), "ScatterND": scattered(reads_slices=True),
}
