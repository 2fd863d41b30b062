"""Rules for operators that query shapes or move elements. Positions that are known when the model is read become slices,
transposes and gathers with constant indices."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy

from lamina.onnx import types
from lamina.onnx.indexed import places
from lamina.onnx.node import DataSized, Node, Unfit


def shape_of(node: Node) -> numpy.ndarray:
    shape = node.shape(node.tensor(0))
    return numpy.array(shape[slice(node.attribute("start", 0), node.attribute("end", None))], "int64")


def size_of(node: Node) -> numpy.ndarray:
    return numpy.array(math.prod(node.shape(node.tensor(0))), "int64")


# ---- operators that keep the order of elements

def reshape(node: Node) -> Any:
    x, target = node.tensor(0), node.integers(1)
    if not node.attribute("allowzero", 0):
        return node.op("StaticReshape", [x], shape=target, special_zero=True)
    if 0 in target and -1 in target:
        raise Unfit("allowzero with both 0 and -1 in the shape")
    return node.op("StaticReshape", [x], shape=target, special_zero=False)


def same_elements(target: Callable) -> Callable:
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        return node.reshape(x, target(node, node.shape(x)))

    return rule


def _flattened(node: Node, shape: list) -> list:
    axis = node.attribute("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return [math.prod(shape[:axis]), math.prod(shape[axis:])]


def _squeezed(node: Node, shape: list) -> list:
    axes = node.integers(1)
    gone = {i for i, e in enumerate(shape) if e == 1} if axes is None else {a % len(shape) for a in axes}
    return [e for i, e in enumerate(shape) if i not in gone]


def _unsqueezed(node: Node, shape: list) -> list:
    axes = node.integers(1)
    rank = len(shape) + len(axes)
    new, rest = {a % rank for a in axes}, iter(shape)
    return [1 if i in new else next(rest) for i in range(rank)]


# ---- operators that move elements

def transpose(node: Node) -> Any:
    x = node.tensor(0)
    return node.op("StaticTranspose", [x], order=list(node.attribute("perm", list(range(node.rank(x)))[::-1])))


def concat(node: Node) -> Any:
    return node.op("Concat", node.tensors(), axis=node.attribute("axis", 0))


def sliced(node: Node) -> Any:
    x, starts, ends = node.tensor(0), node.integers(1), node.integers(2)
    axes = node.integers(3) or list(range(len(starts)))
    steps = node.integers(4) or [1] * len(starts)
    shape = node.shape(x)
    made = node.copy(x) if not axes else x
    forward = [i for i, step in enumerate(steps) if step > 0]
    if forward:
        made = node.op("Slice", [made], starts=[starts[i] for i in forward], ends=[ends[i] for i in forward],
                       axes=[axes[i] for i in forward], steps=[steps[i] for i in forward])
    for i, step in enumerate(steps):
        if step < 0:  # backwards: a gather with constant indices
            made = node.take(made, numpy.arange(shape[axes[i]])[starts[i]:_end(ends[i], shape[axes[i]]):step], axes[i])
    return made


def _end(end: int, extent: int) -> Any:
    """The end of a Python slice: Python counts -1 from the end, so a position before the first element is None."""
    return None if end < -extent else end


def split(node: Node) -> Any:
    x, axis = node.tensor(0), node.axis(node.tensor(0))
    extent, count = node.shape(x)[axis], len(node.proto.output)
    sizes = node.integers(1)
    if sizes is None:
        part = -(-extent // count)
        sizes = [max(min(part, extent - i * part), 0) for i in range(count)]
    bounds = numpy.cumsum([0, *sizes])
    return [node.op("Slice", [x], starts=[int(a)], ends=[int(b)], axes=[axis]) for a, b in zip(bounds, bounds[1:])]


def of_data_size(node: Node) -> Any:
    raise DataSized(node.proto.output, why=f"{node.where}: the size of its result depends on data")


def compress(node: Node) -> Any:
    x, condition = node.tensor(0), node.value(1)
    if condition is None:
        return of_data_size(node)
    kept = numpy.flatnonzero(condition)
    axis = node.attribute("axis", None)
    return node.take_elements(x, kept) if axis is None else node.take(x, kept, axis)


def expand(node: Node) -> Any:
    return node.op("Expand", [node.tensor(0)], shape=node.integers(1))


def tile(node: Node) -> Any:
    x, repeats = node.tensor(0), node.integers(1)
    shape = node.shape(x)
    pairs = node.reshape(x, [e for extent in shape for e in (1, extent)])
    many = node.op("Expand", [pairs], shape=[e for repeat, extent in zip(repeats, shape) for e in (repeat, extent)])
    return node.reshape(many, [repeat * extent for repeat, extent in zip(repeats, shape)])


def pad(node: Node) -> Any:
    x, pads, mode = node.tensor(0), node.integers(1), node.attribute("mode", "constant")
    shape = node.shape(x)
    axes = [a % len(shape) for a in (node.integers(3) if node.has(3) else range(len(shape)))]
    widths = [(0, 0)] * len(shape)
    for i, axis in enumerate(axes):
        widths[axis] = (pads[i], pads[i + len(axes)])
    cut = [(max(-a, 0), max(-b, 0)) for a, b in widths]  # a negative pad crops
    if any(a or b for a, b in cut):
        x = node.op("Slice", [x], starts=[a for a, _ in cut], ends=[e - b for e, (_, b) in zip(shape, cut)], axes=list(range(len(shape))))
    widths = [(max(a, 0), max(b, 0)) for a, b in widths]
    if mode == "constant":
        return _bordered(node, x, widths)
    made = x
    for axis, (before, behind) in enumerate(widths):
        if before or behind:
            numbers = numpy.pad(numpy.arange(node.shape(made)[axis]), (before, behind), mode=mode)
            made = node.take(made, numbers, axis)
    return node.copy(x) if made is x else made


def _bordered(node: Node, x: Any, widths: list) -> Any:
    fill = node.tensor(2) if node.has(2) else node.array(numpy.zeros(()), x.dtype)
    fill = node.reshape(fill, [1] * node.rank(x))
    made = x
    for axis, pair in enumerate(widths):
        shape = node.shape(made)
        beside = [node.expand(fill, [width if i == axis else e for i, e in enumerate(shape)]) if width else None for width in pair]
        parts = [part for part in (beside[0], made, beside[1]) if part is not None]
        made = node.op("Concat", parts, axis=axis) if len(parts) > 1 else made
    return node.copy(x) if made is x else made


def reverse_sequence(node: Node) -> Any:
    x, lengths = node.tensor(0), node.integers(1)
    time, batch = node.attribute("time_axis", 0), node.attribute("batch_axis", 1)
    source = numpy.moveaxis(places(node.shape(x)), (batch, time), (0, 1)).copy()
    for row, length in enumerate(lengths):
        source[row, :length] = source[row, :length][::-1]
    return node.take_elements(x, numpy.moveaxis(source, (0, 1), (batch, time)))


def depth_to_space(node: Node) -> Any:
    x, block = node.tensor(0), node.attribute("blocksize", 1)
    n, c, h, w = node.shape(x)
    if node.attribute("mode", "DCR") == "DCR":
        made = node.transpose(node.reshape(x, [n, block, block, c // block**2, h, w]), [0, 3, 4, 1, 5, 2])
    else:
        made = node.transpose(node.reshape(x, [n, c // block**2, block, block, h, w]), [0, 1, 4, 2, 5, 3])
    return node.reshape(made, [n, c // block**2, h * block, w * block])


def space_to_depth(node: Node) -> Any:
    x, block = node.tensor(0), node.attribute("blocksize", 1)
    n, c, h, w = node.shape(x)
    parts = node.reshape(x, [n, c, h // block, block, w // block, block])
    order = [0, 3, 5, 1, 2, 4] if node.attribute("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return node.reshape(node.transpose(parts, order), [n, c * block**2, h // block, w // block])


def trilu(node: Node) -> Any:
    """Elements outside the triangle become 0, including NaN and infinities."""
    x, k = node.tensor(0), int(node.known(1).flat[0]) if node.has(1) else 0
    shape = node.shape(x)
    inside = numpy.triu(numpy.ones(shape[-2:], bool), k) if node.attribute("upper", 1) else numpy.tril(numpy.ones(shape[-2:], bool), k)
    return node.op("Select", [node.array(inside, "boolean"), x, node.scalar(0, x)])


def of_known_values(node: Node) -> Any:
    """Range and MelWeightMatrix: requests the values of all inputs, which determine the size of the result, so that it is folded
    when the model is read."""
    for i in range(len(node)):
        node.known(i)
    raise Unfit("its inputs are not numbers")


def identity_matrix(node: Node) -> numpy.ndarray:
    """EyeLike: only the shape and the type of its input are read."""
    x = node.tensor(0)
    number = node.attribute("dtype", 0) or node.importer.number_of(x)
    if node.rank(x) != 2 or types.held_in(number) is None:
        raise Unfit(f"{types.name_of(number)} of rank {node.rank(x)}, allowed is a matrix of numbers")
    return numpy.eye(*node.shape(x), node.attribute("k", 0)).astype(types.numpy_type(number))


RULES = {
    **{name: of_data_size for name in ("NonMaxSuppression", "NonZero", "Unique")},
    "EyeLike": identity_matrix, "Range": of_known_values, "MelWeightMatrix": of_known_values, "Shape": shape_of, "Size": size_of, "Reshape": reshape,
    "Flatten": same_elements(_flattened), "Squeeze": same_elements(_squeezed),
    "Unsqueeze": same_elements(_unsqueezed), "Transpose": transpose, "Concat": concat, "Slice": sliced, "Split": split, "Compress": compress,
    "Expand": expand, "Tile": tile, "Pad": pad,
    "ReverseSequence": reverse_sequence, "DepthToSpace": depth_to_space, "SpaceToDepth": space_to_depth, "Trilu": trilu,
}
