"""Fourier transforms (DFT, STFT) as products with constant matrices. A long transform is one of short ones: with n = a * b,
position b * p + q and frequency r + a * s,

    dst[r + a s] = sum over q of w(n, q r) * (sum over p of src[b p + q] * w(a, p r)) * w(b, q s),   w(n, k) = exp(-2 pi i k / n)
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from lamina.onnx.node import Node, Unfit
from lamina.onnx.types import SMALL_FLOATS

_DIRECT = 512  # transforms up to this length are one product: shorter ones have more passes over memory than arithmetic
_LONGEST_DIRECT = 2048  # maximum length of a product: a transform of a prime length has no parts


def dft(node: Node) -> Any:
    x = node.tensor(0)
    node.floating(x)
    rank, inverse, onesided = node.rank(x), bool(node.attribute("inverse", 0)), bool(node.attribute("onesided", 0))
    axis = node.attribute("axis", 1) if node.opset < 20 else int(node.known(2).flat[0]) if node.has(2) else -2
    if not -rank <= axis < rank or axis % rank == rank - 1:
        raise Unfit(f"axis {axis}, allowed is {-rank}..{rank - 2}, without the last axis")
    axis %= rank
    shape, wide = node.shape(x), node.cast(x, "f32") if x.dtype in SMALL_FLOATS else x
    is_real_result = inverse and onesided
    length = int(node.known(1).flat[0]) if node.has(1) else 2 * (shape[axis] - 1) if is_real_result else shape[axis]
    wide = _of_length(node, wide, axis, length // 2 + 1 if is_real_result else length)
    order = [i for i in range(rank) if i not in (axis, rank - 1)] + [axis, rank - 1]
    moved = node.transpose(wide, order)
    outer = [shape[i] for i in order[:-2]]
    rows = node.reshape(moved, [math.prod(outer), *node.shape(moved)[-2:]])
    if is_real_result:
        rows = _both_sides(node, rows, length)
    made = transformed(node, rows, inverse, length // 2 + 1 if onesided and not inverse else length)
    if inverse:
        made = node.op("Multiply", [made, node.scalar(1 / length, made)])
    if is_real_result:
        made = node.op("Slice", [made], starts=[0], ends=[1], axes=[2])
    made = node.reshape(made, [*outer, *node.shape(made)[1:]])
    return node.cast(node.transpose(made, numpy.argsort(order)), x.dtype)


def _of_length(node: Node, x: Any, axis: int, length: int) -> Any:
    """Appends zeros to an axis, or cuts it."""
    shape = node.shape(x)
    if length < 1:
        raise Unfit(f"a transform of {length} elements")
    if length < shape[axis]:
        return node.op("Slice", [x], starts=[0], ends=[length], axes=[axis])
    if length == shape[axis]:
        return x
    zeros = node.expand(node.array(numpy.zeros([1] * len(shape)), x.dtype), [length - e if i == axis else e for i, e in enumerate(shape)])
    return node.op("Concat", [x, zeros], axis=axis)


def _both_sides(node: Node, x: Any, length: int) -> Any:
    """The frequencies of a real signal, of which x has those up to the middle: the others are conjugates."""
    numbers = numpy.arange(length)
    is_mirrored = numbers > length // 2
    signs = numpy.ones([length, 2])
    signs[is_mirrored, 1] = -1
    return node.op("Multiply", [node.take(x, numpy.where(is_mirrored, length - numbers, numbers), 1), node.array(signs, x.dtype)])


def transformed(node: Node, x: Any, inverse: bool, count: int) -> Any:
    """Returns [rows, count, 2], the first frequencies of x, [rows, n, 1 or 2], without a factor 1 / n."""
    rows, length, parts = node.shape(x)
    first = 1 if length <= _DIRECT else max(a for a in range(1, math.isqrt(length) + 1) if length % a == 0)
    if first == 1:
        return _product(node, x, inverse, count)
    second = length // first
    split = node.transpose(node.reshape(x, [rows, first, second, parts]), [0, 2, 1, 3])
    inner = _product(node, node.reshape(split, [rows * second, first, parts]), inverse, first)
    turned = _turned(node, node.reshape(inner, [rows, second, first, 2]), length, inverse)
    turned = node.reshape(node.transpose(turned, [0, 2, 1, 3]), [rows * first, second, 2])
    of_second = -(-count // first)
    outer = node.reshape(transformed(node, turned, inverse, of_second), [rows, first, of_second, 2])
    made = node.reshape(node.transpose(outer, [0, 2, 1, 3]), [rows, first * of_second, 2])
    return made if first * of_second == count else node.op("Slice", [made], starts=[0], ends=[count], axes=[1])


def _angles(left: int, right: int, length: int, inverse: bool) -> numpy.ndarray:
    """Returns 2 pi k m / length for k < left and m < right, with the sign of the transform."""
    turns = numpy.outer(numpy.arange(left), numpy.arange(right)) % length
    return turns * (2 if inverse else -2) * math.pi / length


def _product(node: Node, x: Any, inverse: bool, count: int) -> Any:
    rows, length, parts = node.shape(x)
    if length > _LONGEST_DIRECT:
        raise Unfit(f"a transform with the prime factor {length}, allowed is {_LONGEST_DIRECT}")
    angles = _angles(length, count, length, inverse)
    cosine, sine = numpy.cos(angles), numpy.sin(angles)
    # Rows: position, and real or imaginary part of the input; columns: frequency, and part of the result.
    factors = numpy.stack([numpy.stack([cosine, sine], -1), numpy.stack([-sine, cosine], -1)], 1)[:, :parts]
    matrix = node.array(factors.reshape(length * parts, 2 * count), x.dtype)
    return node.reshape(node.op("MatMul", [node.reshape(x, [rows, length * parts]), matrix]), [rows, count, 2])


def _turned(node: Node, x: Any, length: int, inverse: bool) -> Any:
    """x [rows, q, r, 2] times w(length, q r)."""
    _, left, right, _ = node.shape(x)
    angles = _angles(left, right, length, inverse)
    swapped = node.take(x, [1, 0], 3)
    kept = node.op("Multiply", [x, node.array(numpy.cos(angles)[..., None], x.dtype)])
    return node.op("Add", [kept, node.op("Multiply", [swapped, node.array(numpy.stack([-numpy.sin(angles), numpy.sin(angles)], -1), x.dtype)])])


def stft(node: Node) -> Any:
    """Transforms of frames of the signal, which overlap."""
    x, step = node.tensor(0), int(node.known(1).flat[0])
    node.floating(x)
    batch, extent, parts = node.shape(x)
    window = node.tensor(2) if node.has(2) else None
    length = int(node.known(3).flat[0]) if node.has(3) else extent if window is None else node.shape(window)[0]
    if not 0 < length <= extent or step < 1:
        raise Unfit(f"frames of {length} elements in steps of {step}, allowed is 1..{extent}, and steps of 1 or more")
    places = numpy.arange(1 + (extent - length) // step)[:, None] * step + numpy.arange(length)
    frames = node.take(node.cast(x, "f32") if x.dtype in SMALL_FLOATS else x, places, 1)
    if window is not None:
        frames = node.op("Multiply", [frames, node.reshape(node.cast(window, frames.dtype), [length, 1])])
    count = length // 2 + 1 if node.attribute("onesided", 1) else length
    made = transformed(node, node.reshape(frames, [batch * len(places), length, parts]), False, count)
    return node.cast(node.reshape(made, [batch, len(places), *node.shape(made)[1:]]), x.dtype)


RULES = {"DFT": dft, "STFT": stft}
