"""Rules for the operators of ONNX Runtime's domain com.microsoft, in which its optimiser writes transformers."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional

import numpy

from lamina.onnx.node import Node, Unfit

DOMAIN = "com.microsoft"


def _sum(node: Node, *terms: Any) -> Any:
    made = None
    for term in terms:
        made = term if made is None else made if term is None else node.op("Add", [made, term])
    return made


def _given(node: Node, position: int) -> Any:
    return node.tensor(position) if node.has(position) else None


# ---- activations and products

def gelu(mode: str) -> Callable:
    """GELU of the sum of the inputs: the second one is a bias."""
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        node.floating(x)
        return node.op("GELU", [_sum(node, x, _given(node, 1))], mode=mode)

    return rule


def quick_gelu(node: Node) -> Any:
    x = node.tensor(0)
    node.floating(x)
    return node.op("Swish", [x], alpha=node.attribute("alpha", 1.702))


def product(node: Node) -> Any:
    """FusedMatMul. transBatchX moves the first axis of a factor before its last one."""
    factors = []
    for position, side in enumerate("AB"):
        x = node.tensor(position)
        node.floating(x)
        if node.attribute(f"transBatch{side}", 0):
            rank = node.rank(x)
            x = node.transpose(x, [*range(1, rank - 1), 0, rank - 1])
        factors.append(x)
    made = node.op("MatMul", factors, transpose_a=bool(node.attribute("transA", 0)), transpose_b=bool(node.attribute("transB", 0)))
    alpha = node.attribute("alpha", 1.0)
    return made if alpha == 1 else node.op("Multiply", [made, node.scalar(alpha, made)])


# ---- norms

def skip_layer_norm(node: Node) -> list:
    """LayerNorm(input + skip + bias); the sum is output 3."""
    node.only_output(0, 3)
    total = _sum(node, node.tensor(0), node.tensor(1), _given(node, 4))
    return [_layer_norm(node, total, node.tensor(2), _given(node, 3)), None, None, total]


def _layer_norm(node: Node, x: Any, gamma: Any, beta: Any) -> Any:
    node.floating(x)
    epsilon = node.attribute("epsilon", 1e-12)
    beta = beta if beta is not None else node.array(numpy.zeros(node.shape(gamma)), gamma.dtype)
    return node.op("LayerNorm", [x, gamma, beta], begin_norm_axis=-1, epsilon=epsilon, keep_stats=False)


def skip_rms_norm(node: Node) -> list:
    node.only_output(0, 3)
    total = _sum(node, node.tensor(0), node.tensor(1), _given(node, 3))
    node.floating(total)
    made = node.op("RMSNorm", [total, node.tensor(2)], begin_norm_axis=-1, epsilon=node.attribute("epsilon", 1e-12))
    return [made, None, None, total]


def embedding_norm(node: Node) -> list:
    """LayerNorm of the sum of the embeddings of words, places and segments. mask_index is the number of ones in each row of the
    mask."""
    ids = node.tensor(0)
    batch, length = node.shape(ids)
    words = node.op("Gather", [node.tensor(2), ids], axis=0)
    if node.has(8):
        places = node.op("Gather", [node.tensor(3), node.tensor(8)], axis=0)
    else:
        places = node.op("Slice", [node.tensor(3)], starts=[0], ends=[length], axes=[0])
    segments = node.op("Gather", [node.tensor(4), node.tensor(1)], axis=0) if node.has(1) and node.has(4) else None
    total = _sum(node, words, places, segments)
    counts = None
    if node.wants(1) and node.has(7):
        counts = node.cast(node.op("ReduceSum", [node.cast(node.tensor(7), "f32")], axes=[1], keep_dims=False), "s32")
    elif node.wants(1):
        counts = numpy.zeros(batch, "int32")
    return [_layer_norm(node, total, node.tensor(5), node.tensor(6)), counts, total]


# ---- attention

def _heads(node: Node, x: Any, heads: int) -> Any:
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
    causal = None
    if node.attribute("unidirectional", 0):
        hidden = numpy.triu(numpy.ones((length, total), bool), total - length + 1)
        causal = node.array(numpy.where(hidden, -math.inf, 0.0), q.dtype)
    for term in (_bias_of(node, mask, batch, length, total, q.dtype), bias, causal):
        scores = _sum(node, scores, term)
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
    joint = _sum(node, node.op("MatMul", [x, weights]), _given(node, 2))
    bounds = [0, *numpy.cumsum(sizes).tolist()]
    q, k, v = (_heads(node, node.op("Slice", [joint], starts=[a], ends=[b], axes=[-1]), heads) for a, b in zip(bounds, bounds[1:]))
    if node.has(4):
        k, v = (_with_past(node, node.tensor(4), place, new) for place, new in enumerate((k, v)))
    made = [_attention(node, q, k, v, _given(node, 3), _given(node, 5))]
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
        parts = [_sum(node, x, bias) if node.rank(x) == 3 else x for x, bias in zip(parts, biases)]
    q, k, v = (_heads(node, x, heads) if node.rank(x) == 3 else x for x in parts)
    if node.has(6) and node.has(7):
        k, v = (node.op("Concat", [node.tensor(position), new], axis=2) for position, new in ((6, k), (7, v)))
    made = [_attention(node, q, k, v, _given(node, 4), _given(node, 5))]
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
        x = _heads(node, x, heads)
    batch, heads, length, size = node.shape(x)
    angles = [_angles(node, table, ids, batch, length, half) for table in (cosines, sines)]
    turned = node.op("Slice", [x], starts=[0], ends=[2 * half], axes=[3])
    made = _turned(node, turned, angles, half, bool(node.attribute("interleaved", 0)))
    if size > 2 * half:
        made = node.op("Concat", [made, node.op("Slice", [x], starts=[2 * half], ends=[size], axes=[3])], axis=3)
    return node.reshape(node.transpose(made, [0, 2, 1, 3]), [batch, length, heads * size]) if flat else made


def _angles(node: Node, table: Any, ids: Any, batch: int, length: int, half: int) -> Any:
    """Rows of the table by place: [batch or 1, 1, length, half]. One id is the place of the first token."""
    if node.rank(ids) == 2:
        return node.reshape(node.op("Gather", [table, ids], axis=0), [batch, 1, length, half])
    first = int(node.known(1).flat[0])
    return node.reshape(node.op("Slice", [table], starts=[first], ends=[first + length], axes=[0]), [1, 1, length, half])


def _turned(node: Node, x: Any, angles: list, half: int, interleaved: bool) -> Any:
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


RULES = {
    "BiasGelu": gelu("gelu_erf"), "Gelu": gelu("gelu_erf"), "FastGelu": gelu("gelu_tanh"), "QuickGelu": quick_gelu, "FusedMatMul": product,
    "SkipLayerNormalization": skip_layer_norm, "SkipSimplifiedLayerNormalization": skip_rms_norm, "EmbedLayerNormalization": embedding_norm,
    "Attention": self_attention, "MultiHeadAttention": multi_head_attention, "RotaryEmbedding": rotary_embedding,
}
