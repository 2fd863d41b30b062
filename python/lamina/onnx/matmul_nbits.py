"""The rule for com.microsoft.MatMulNBits: a product with weights of 4 or 8 bits, in blocks along k that share a scale.

The weights stay integers: DynamicDequantize and MatMul are one step of lamina (docs/decisions/0029-weights-of-few-bits.md)."""

from __future__ import annotations

from typing import Any, Optional

import numpy

from lamina.onnx.node import Node, Unfit

_BITS = (4, 8)


def matmul_nbits(node: Node) -> Any:
    """x [.., k] times the dequantised weights, [n, k], transposed; plus a bias [n]. accuracy_level only allows less accurate
    arithmetic."""
    bits, size = node.attribute("bits", 4), node.attribute("block_size", 0)
    if bits not in _BITS:
        raise Unfit(f"bits {bits}, allowed is 4 or 8")
    n, k = node.attribute("N", 0), node.attribute("K", 0)
    x = node.tensor(0)
    node.floating(x)
    blocks = -(-k // size)
    _check_order(node, k, size)
    weights = _constant(node, 1).reshape(n, -1)
    if weights.shape[1] * 8 != blocks * size * bits:
        raise Unfit(f"weights of {weights.shape[1]} bytes per column, allowed is {blocks * size * bits // 8} for {blocks} blocks of {size}")
    scales = node.reshape(node.tensor(2), [n, blocks])
    zeros = _zero_points(node, n, blocks, bits)
    integers, shifts = zeros if zeros is not None else (None, None)
    x = _padded(node, x, blocks * size)
    inputs = [_integers(node, weights, bits, integers is None), scales]
    if integers is not None:
        inputs.append(node.array(integers, "u8"))
    dequantized = node.op("DynamicDequantize", inputs, qtype="per_group", group_shape=[1, size])
    bias = [node.tensor(5)] if node.has(5) else []
    made = node.op("MatMul", [x, dequantized, *bias], transpose_b=True)
    return made if shifts is None else _shifted(node, made, x, scales, shifts, size)


def _constant(node: Node, position: int) -> numpy.ndarray:
    value = node.value(position)
    if value is None:
        raise Unfit(f"input {position} is not constant")
    return numpy.asarray(value)


def _check_order(node: Node, k: int, size: int) -> None:
    """g_idx is the block of each row of the weights; allowed is the order in which they are stored."""
    if node.has(4) and not numpy.array_equal(_constant(node, 4).reshape(-1)[:k], numpy.arange(k) // size):
        raise Unfit("g_idx that reorders the rows of the weights, allowed is block k // block_size for row k")


def _integers(node: Node, weights: numpy.ndarray, bits: int, is_signed: bool) -> Any:
    """Returns the weights; without zero points as signed integers, which are the unsigned ones minus half of their range."""
    if bits == 8:
        return node.array((weights ^ 0x80).view("int8"), "s8") if is_signed else node.array(weights, "u8")
    return node.importer.bytes_of_4_bits(weights ^ 0x88 if is_signed else weights, "s4" if is_signed else "u4")


def _zero_points(node: Node, n: int, blocks: int, bits: int) -> Optional[tuple]:
    """Returns zero points as integers, and their fractions; None if each is half of the range."""
    if not node.has(3):
        return None
    given = _constant(node, 3)
    if given.dtype == numpy.uint8:
        found = given.reshape(n, -1)
        if bits == 4:
            found = numpy.stack([found & 15, found >> 4], axis=-1).reshape(n, -1)
        return found[:, :blocks], None
    given = given.astype("float32").reshape(n, blocks)
    whole = numpy.rint(numpy.clip(given, 0, 255))
    fractions = given - whole
    return whole.astype("uint8"), fractions if fractions.any() else None


def _padded(node: Node, x: Any, extent: int) -> Any:
    """Appends zeros for the last block, which may be longer than the rest of k."""
    shape = node.shape(x)
    if shape[-1] == extent:
        return x
    zeros = node.expand(node.array(numpy.zeros([1] * len(shape)), x.dtype), [*shape[:-1], extent - shape[-1]])
    return node.op("Concat", [x, zeros], axis=-1)


def _shifted(node: Node, made: Any, x: Any, scales: Any, fractions: numpy.ndarray, size: int) -> Any:
    """Subtracts the part of zero points that is not an integer: the sum of each block of x, times fraction * scale."""
    shape = node.shape(x)
    sums = node.op("ReduceSum", [node.reshape(x, [*shape[:-1], shape[-1] // size, size])], axes=[-1], keep_dims=False)
    shift = node.op("Multiply", [scales, node.array(fractions, scales.dtype)])
    return node.op("Subtract", [made, node.op("MatMul", [sums, shift], transpose_b=True)])


RULES = {"MatMulNBits": matmul_nbits}
