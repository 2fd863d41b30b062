"""Rules for ONNX Runtime's attention operators and rotary embeddings (com.microsoft)."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy

from lamina.onnx.node import Node, Unfit, given, sum_of


def heads_of(node: Node, x: Any, heads: int) -> Any:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    batch, length, width = node.shape(x)
    if width % heads:
        raise Unfit(f"{width} channels in {heads} heads")
    return node.transpose(node.reshape(x, [batch, length, heads, width // heads]), [0, 2, 1, 3])


def _attention(node: Node, q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    """q, k, v: [batch, heads, length, size]. Returns [batch, length, heads * size of v]."""
    node.floating(q, k, v)
    batch, heads, length, size = node.shape(q)
    total = node.shape(k)[2]
    scale = node.attribute("scale", 0.0) or 1 / math.sqrt(size)
    scores = node.op("Multiply", [node.op("MatMul", [q, k], transpose_b=True), node.scalar(scale, q)])
    for term in (_bias_of(node, mask, batch, length, total, q.dtype), bias):
        scores = sum_of(node, scores, term)
    if node.attribute("unidirectional", 0):
        row, column = (node.op("GenIndex", [scores], axis=axis) for axis in (-2, -1))
        seen = node.op("GreaterEqual", [node.op("Add", [row, node.scalar(total - length, row)]), column])
        scores = node.op("Select", [seen, scores, node.scalar(-math.inf, scores)])
    weights = node.op("SoftMax", [scores], axis=-1, mode="inf_as_zero", outputs=(True, False))[0]
    made = node.transpose(node.op("MatMul", [weights, v]), [0, 2, 1, 3])
    return node.reshape(made, [batch, length, heads * node.shape(v)[3]])


def _bias_of(node: Node, mask: Any, batch: int, length: int, total: int, dtype: str) -> Optional[Any]:
    """What a mask adds to the scores: mask_filter_value where a key is hidden. A mask has a 1 for each visible key, or the number
    of visible keys of each entry of the batch."""
    if mask is None:
        return None
    shape = node.shape(mask)
    if shape == [batch]:
        numbers = node.array(numpy.arange(total).reshape(1, 1, 1, total), "f32")
        hidden = node.op("GreaterEqual", [numbers, node.reshape(node.cast(mask, "f32"), [batch, 1, 1, 1])])
    elif shape in ([batch, total], [batch, length, total]):
        rows = 1 if len(shape) == 2 else length
        hidden = node.op("Equal", [node.reshape(node.cast(mask, "f32"), [batch, 1, rows, total]), node.array(0, "f32")])
    else:
        raise Unfit(f"a mask of shape {shape}, allowed is [{batch}], [{batch}, {total}] or [{batch}, {length}, {total}]")
    return node.op("Multiply", [node.cast(hidden, dtype), node.array(node.attribute("mask_filter_value", -10000.0), dtype)])


def self_attention(node: Node) -> list:
    """Attention: one product makes q, k and v. past and present: [2, batch, heads, length, size]."""
    x, weights, heads = node.tensor(0), node.tensor(1), node.attribute("num_heads", 0)
    if node.attribute("do_rotary", 0) or node.attribute("past_present_share_buffer", 0):
        raise Unfit("do_rotary or past_present_share_buffer")
    sizes = list(node.attribute("qkv_hidden_sizes", None) or [node.shape(weights)[1] // 3] * 3)
    joint = sum_of(node, node.op("MatMul", [x, weights]), given(node, 2))
    bounds = [0, *numpy.cumsum(sizes).tolist()]
    q, k, v = (heads_of(node, node.op("Slice", [joint], starts=[a], ends=[b], axes=[-1]), heads) for a, b in zip(bounds, bounds[1:]))
    if node.has(4):
        k, v = (_with_past(node, node.tensor(4), place, new) for place, new in enumerate((k, v)))
    made = [_attention(node, q, k, v, given(node, 3), given(node, 5))]
    if node.wants(1):
        made.append(node.op("Concat", [node.reshape(t, [1, *node.shape(t)]) for t in (k, v)], axis=0))
    return made


def _with_past(node: Node, past: Any, place: int, new: Any) -> Any:
    old = node.op("Slice", [past], starts=[place], ends=[place + 1], axes=[0])
    return node.op("Concat", [node.reshape(old, node.shape(past)[1:]), new], axis=2)


def multi_head_attention(node: Node) -> list:
    """q, k and v as three tensors of rank 3, or k and v in heads already; present: k and v with the past before them."""
    if not node.has(1) or not node.has(2):
        raise Unfit("packed q, k and v")
    heads = node.attribute("num_heads", 0)
    parts = [node.tensor(position) for position in range(3)]
    sizes = [node.shape(x)[-1] if node.rank(x) == 3 else node.shape(x)[1] * node.shape(x)[3] for x in parts]
    if node.has(3):
        bounds = [0, *numpy.cumsum(sizes).tolist()]
        biases = [node.op("Slice", [node.tensor(3)], starts=[a], ends=[b], axes=[0]) for a, b in zip(bounds, bounds[1:])]
        parts = [sum_of(node, x, bias) if node.rank(x) == 3 else x for x, bias in zip(parts, biases)]
    q, k, v = (heads_of(node, x, heads) if node.rank(x) == 3 else x for x in parts)
    if node.has(6) and node.has(7):
        k, v = (node.op("Concat", [node.tensor(position), new], axis=2) for position, new in ((6, k), (7, v)))
    made = [_attention(node, q, k, v, given(node, 4), given(node, 5))]
    return made + [node.copy(t) if node.wants(i) else None for i, t in ((1, k), (2, v))]


def rotary_embedding(node: Node) -> Any:
    """Rotates pairs of each head by the angles of its place: [batch, length, heads * size] or [batch, heads, length, size]."""
    x, ids, cosines, sines = (node.tensor(i) for i in range(4))
    node.floating(x)
    if node.attribute("is_packed_batching", 0) or node.attribute("scale", 1.0) != 1.0:
        raise Unfit("is_packed_batching or scale")
    flat = node.rank(x) == 3
    half = node.shape(cosines)[1]
    if flat:
        heads = node.attribute("num_heads", 0) or node.shape(x)[2] // (2 * half)
        x = heads_of(node, x, heads)
    batch, heads, length, size = node.shape(x)
    angles = [_angles(node, table, ids, batch, length, half) for table in (cosines, sines)]
    made = rotated(node, x, angles, bool(node.attribute("interleaved", 0)))
    return node.reshape(node.transpose(made, [0, 2, 1, 3]), [batch, length, heads * size]) if flat else made


def _angles(node: Node, table: Any, ids: Any, batch: int, length: int, half: int) -> Any:
    """Rows of the table by place: [batch or 1, 1, length, half]. One id is the place of the first token."""
    if node.rank(ids) == 2:
        return node.reshape(node.op("Gather", [table, ids], axis=0), [batch, 1, length, half])
    first = int(node.known(1).flat[0])
    return node.reshape(node.op("Slice", [table], starts=[first], ends=[first + length], axes=[0]), [1, 1, length, half])


def rotated(node: Node, x: Any, angles: list, interleaved: bool) -> Any:
    """Rotates the first elements of each head of [batch, heads, length, size], as many as there are angles, by the cosines
    and sines [.., length, half]."""
    size, half = node.shape(x)[3], node.shape(angles[0])[-1]
    if size == 2 * half:
        return _rotated_pairs(node, x, angles, half, interleaved)
    part = lambda a, b: node.op("Slice", [x], starts=[a], ends=[b], axes=[3])
    return node.op("Concat", [_rotated_pairs(node, part(0, 2 * half), angles, half, interleaved), part(2 * half, size)], axis=3)


def _rotated_pairs(node: Node, x: Any, angles: list, half: int, interleaved: bool) -> Any:
    batch, heads, length, _ = node.shape(x)
    cosine, sine = angles
    pairs = [batch, heads, length, half, 2] if interleaved else [batch, heads, length, 2, half]
    axis = 4 if interleaved else 3
    split = node.reshape(x, pairs)
    left, right = (node.reshape(node.op("Slice", [split], starts=[i], ends=[i + 1], axes=[axis]), [batch, heads, length, half]) for i in range(2))
    times = lambda a, b: node.op("Multiply", [a, b])
    made = [node.op("Subtract", [times(left, cosine), times(right, sine)]), node.op("Add", [times(left, sine), times(right, cosine)])]
    one = pairs[:axis] + [1] + pairs[axis + 1:]
    return node.reshape(node.op("Concat", [node.reshape(part, one) for part in made], axis=axis), [batch, heads, length, 2 * half])


RULES = {"Attention": self_attention, "MultiHeadAttention": multi_head_attention, "RotaryEmbedding": rotary_embedding}
