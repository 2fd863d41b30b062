"""Rules for products with weights of 4 and 8 bits, and for products of integers. The weights stay integers in memory: lamina
dequantises them in the product (docs/decisions/0029-weights-of-few-bits.md)."""

from __future__ import annotations

from typing import Any

from lamina.torch.lowering import Lowering
from lamina.torch.nodes import FLOATS, Args, Refused, base_of, dtype_of, name_of
from lamina.torch.rules import floor, wide_type
from lamina.torch.rules_index import sliced

EXACT = 1 << 10  # products of 8-bit integers whose sum f32 has exactly


def int8_product(l: Lowering, a: Args) -> Any:
    """self times the transpose of mat2 [n, k] of s8, each row of which has a scale."""
    dtype = dtype_of(a.value)
    wide = wide_type(dtype)
    scales = l.reshape(l.tensor(a.scales, "f32"), [a.mat2.meta["val"].shape[0]])
    weights = l.op("DynamicDequantize", [l.tensor(a.mat2), scales], qtype="per_channel", axis=0)
    return l.cast(l.op("MatMul", [l.tensor(a.self, wide), l.cast(weights, wide)], transpose_b=True), dtype)


def int4_product(l: Lowering, a: Args) -> Any:
    """self times the transpose of integers * scale + zero. `rows`: signed integers of 4 bits [n, k], two in a byte; group
    entries of k share [scale, zero] of scales_and_zeros [k / group, n, 2]. The zeros are multiplied by sums of self."""
    dtype, count = dtype_of(a.value), int(a.group)
    wide = wide_type(dtype)
    x = l.tensor(a.self, wide)
    rows, k = x.shape
    groups, n, _ = a.scales_and_zeros.meta["val"].shape
    pair = l.tensor(a.scales_and_zeros, wide)
    scales, zeros = (l.reshape(sliced(l, pair, 2, i, i + 1), [groups, n]) for i in range(2))
    inputs = [l.packed_tensor(a.rows, "s4"), l.op("StaticTranspose", [scales], order=[1, 0])]
    weights = l.op("DynamicDequantize", inputs, qtype="per_group", group_shape=[1, count])
    sums = l.op("ReduceSum", [l.reshape(x, [rows, groups, count])], axes=[2], keep_dims=False)
    shift = l.op("MatMul", [sums, zeros])
    return l.cast(l.op("MatMul", [x, weights, shift], transpose_b=True), dtype)


def integers(l: Lowering, tensor: Any) -> Any:
    """Returns 8-bit integers as f32."""
    if tensor.dtype not in ("s8", "u8"):
        raise Refused(f"integers of {tensor.dtype}")
    return l.op("Dequantize", [tensor], scales=[1.0])


def exact_integer_product(l: Lowering, a: Args) -> Any:
    """The sums of long rows are sums of parts, which f32 has exactly."""
    left, right = l.tensor(a.self), l.tensor(a.mat2)
    rows, k = left.shape
    columns = right.shape[1]
    if 0 in (rows, k, columns):
        raise Refused("a product without elements")
    made = None
    for first in range(0, k, EXACT):
        last = min(first + EXACT, k)
        part = lambda t, axis: t if (first, last) == (0, k) else sliced(l, t, axis, first, last)
        product = l.cast(l.op("MatMul", [integers(l, part(left, 1)), integers(l, part(right, 0))]), "s32")
        made = product if made is None else l.op("Add", [made, product], dtype="s32")
    return made


def integer_product(l: Lowering, a: Args) -> Any:
    """A product of integers that is read as floats: rounded once."""
    if 0 in a.self.meta["val"].shape or 0 in a.value.shape:
        raise Refused("a product without elements")
    return l.op("MatMul", [integers(l, l.tensor(a.self)), integers(l, l.tensor(a.mat2))])


RANGES = {"s8": (-128, 127), "u8": (0, 255)}


def is_in_range(l: Lowering, node: Any, dtype: str) -> bool:
    """Whether the node is clamped to the range of a type."""
    while l.is_view(node):
        node = node.args[0]
    if base_of(node) != "clamp" or name_of(node) == "clamp.Tensor":
        return False
    given = Args(node)
    return all(isinstance(bound, (int, float)) and RANGES[dtype][0] <= bound <= RANGES[dtype][1] for bound in (given.min, given.max))


def wrapped(l: Lowering, x: Any, low: int) -> Any:
    """Integers modulo 256, from `low` on, as torch casts them to 8 bits. Integers of 2^24 and more, infinities and NaN have no
    defined value."""
    number = lambda value: l.constant(float(value), "f32")
    turns = floor(l, l.op("Multiply", [l.op("Subtract", [x, number(low)]), number(1 / 256)]))
    return l.op("Subtract", [x, l.op("Multiply", [turns, number(256)])])


def cast(l: Lowering, a: Args) -> Any:
    """A cast to another type. 8-bit integers become floats by Dequantize, and floats become them by Quantize."""
    dtype, source = dtype_of(a.value), l.tensor(a.self)
    if source.dtype == dtype:
        return l.op("Reorder", [source])
    if source.dtype in ("s8", "u8"):
        if dtype in ("s8", "u8"):
            return l.cast(source, dtype)
        return l.cast(integers(l, source), dtype)
    if dtype not in ("s8", "u8"):
        return l.cast(source, dtype)
    if source.dtype not in FLOATS:
        return l.cast(source, dtype)
    whole = l.cast(l.op("Trunc", [source]), "f32")
    whole = whole if is_in_range(l, a.self, dtype) else wrapped(l, whole, RANGES[dtype][0])
    return l.op("Quantize", [whole], dtype=dtype, scales=[1.0], zps=[0])
