"""The rule for com.microsoft.GroupQueryAttention: causal attention over a cache of keys and values that groups of heads share.

An entry of the batch has `before` tokens in the cache, and `length` new ones. `before` is computed at run time from seqlens_k,
so the new keys and values are written to the cache by a Select over all its places."""

from __future__ import annotations

import math
from typing import Any

import numpy

from lamina.onnx.microsoft_attention import heads_of, rotated
from lamina.onnx.node import Node, Unfit, given
from lamina.onnx.types import SMALL_FLOATS

_REFUSED_INPUTS = {11: "head_sink", 12: "k_scale", 13: "v_scale", 14: "q_norm_weight", 15: "k_norm_weight"}
_REFUSED_ATTRIBUTES = {"smooth_softmax": 0, "qk_output": 0, "k_quant_type": "NONE", "v_quant_type": "NONE", "kv_cache_bit_width": 0}


def group_query_attention(node: Node) -> list:
    _check(node)
    q, k, v = _parts(node)
    node.floating(q, k, v)
    cache = _Cache(node, q)
    if node.attribute("do_rotary", 0):
        angles = _angles(node, cache)
        q, k = (rotated(node, x, angles, bool(node.attribute("rotary_interleaved", 0))) for x in (q, k))
    k, v = (cache.written(x, position) for x, position in ((k, 3), (v, 4)))
    return [_attended(node, q, k, v, cache), *(node.copy(x) if node.wants(place) else None for place, x in ((1, k), (2, v)))]


def _check(node: Node) -> None:
    node.only_output(0, 1, 2)
    for position, name in _REFUSED_INPUTS.items():
        if node.has(position):
            raise Unfit(f"the input {name}")
    for name, allowed in _REFUSED_ATTRIBUTES.items():
        if node.attribute(name, allowed) != allowed:
            raise Unfit(f"{name} {node.attribute(name, allowed)}, allowed is {allowed}")


def _parts(node: Node) -> list:
    """Returns q, k and v as [batch, heads, length, size]. Without key and value, query is the three of them side by side."""
    heads, shared = node.attribute("num_heads", 0), node.attribute("kv_num_heads", 0)
    counts = [heads, shared, shared]
    if node.has(1) != node.has(2):
        raise Unfit("key without value, allowed is both or none of them")
    if node.has(1):
        return [heads_of(node, node.tensor(position), count) for position, count in enumerate(counts)]
    joint = node.tensor(0)
    size = node.shape(joint)[-1] // sum(counts)
    bounds = numpy.cumsum([0, *counts]) * size
    parts = [node.op("Slice", [joint], starts=[int(a)], ends=[int(b)], axes=[-1]) for a, b in zip(bounds, bounds[1:])]
    return [heads_of(node, part, count) for part, count in zip(parts, counts)]


class _Cache:
    """Where the new tokens are. `counts` and `before` are tensors [batch, 1, 1, 1] of f32."""

    def __init__(self, node: Node, q: Any) -> None:
        self.node, self.batch, self.length = node, node.shape(q)[0], node.shape(q)[2]
        total = int(numpy.asarray(node.known(6)).flat[0])
        self.is_prompt = self.length == total
        self.total = max(total, node.shape(node.tensor(3))[2] if node.has(3) else 0)
        column = [self.batch, 1, 1, 1]
        self.counts = node.op("Add", [node.cast(node.reshape(node.tensor(5), column), "f32"), node.array(1, "f32")])
        new = node.array(self.length, "f32")
        self.before = node.array(numpy.zeros(column), "f32") if self.is_prompt else node.op("Subtract", [self.counts, new])
        self.queries = node.op("Add", [self.before, self._along(2, self.length)])  # the place of each new token

    def _along(self, axis: int, extent: int) -> Any:
        return self.node.array(numpy.arange(extent).reshape([extent if i == axis else 1 for i in range(4)]), "f32")

    def written(self, new: Any, position: int) -> Any:
        """Returns all places of the cache. Places that hold no token keep what the old cache has there, or are zero."""
        node, (batch, heads, length, size) = self.node, self.node.shape(new)
        old = given(node, position)
        if self.is_prompt:
            if length == self.total:
                return new
            beside = old if old is not None else node.expand(node.array(numpy.zeros([1] * 4), new.dtype), [batch, heads, self.total, size])
            return node.op("Concat", [new, node.op("Slice", [beside], starts=[length], ends=[self.total], axes=[2])], axis=2)
        if old is None:
            raise Unfit(f"no past for {self.total} tokens, of which {length} are new")
        rest = self.total - node.shape(old)[2]
        if rest:
            zeros = node.expand(node.array(numpy.zeros([1] * 4), old.dtype), [batch, heads, rest, size])
            old = node.op("Concat", [old, zeros], axis=2)
        places = self._along(2, self.total)
        is_new = node.op("LogicalAnd", [node.op("GreaterEqual", [places, self.before]), node.op("Less", [places, self.counts])])
        return node.op("Select", [is_new, self._at_places(new, places), old])

    def _at_places(self, new: Any, places: Any) -> Any:
        """Returns for each place of the cache a new token: the one that belongs there if there is one."""
        node, (batch, heads, length, size) = self.node, self.node.shape(new)
        if length == 1:
            return node.expand(new, [batch, heads, self.total, size])
        token = node.op("Clamp", [node.op("Subtract", [places, self.before])], min=0.0, max=float(length - 1))
        row = node.op("Add", [token, node.array(numpy.arange(batch).reshape(batch, 1, 1, 1) * length, "f32")])
        rows = node.reshape(node.transpose(new, [0, 2, 1, 3]), [batch * length, heads * size])
        found = node.op("Gather", [rows, node.cast(node.reshape(row, [batch, self.total]), "s32")], axis=0)
        return node.transpose(node.reshape(found, [batch, self.total, heads, size]), [0, 2, 1, 3])

    def visible(self) -> Any:
        """Returns which places each new token attends to: [batch, 1, length, total]."""
        node, places, window = self.node, self._along(3, self.total), self.node.attribute("local_window_size", -1)
        both = lambda a, b: node.op("LogicalAnd", [a, b])
        seen = both(node.op("LessEqual", [places, self.queries]), node.op("Less", [places, self.counts]))
        if window < 0:
            return seen
        last = node.op("Minimum", [self.queries, node.op("Subtract", [self.counts, node.array(1, "f32")])])
        return both(seen, node.op("Greater", [places, node.op("Subtract", [last, node.array(window, "f32")])]))


def _angles(node: Node, cache: _Cache) -> list:
    """Returns the cosines and sines of the new tokens: [batch, 1, length, half]."""
    if not node.has(7) or not node.has(8):
        raise Unfit("do_rotary without cos_cache and sin_cache")
    half = node.shape(node.tensor(7))[1]
    places = node.tensor(9) if node.has(9) else node.cast(node.reshape(cache.queries, [cache.batch, cache.length]), "s32")
    return [node.reshape(node.op("Gather", [node.tensor(position), places], axis=0), [cache.batch, 1, cache.length, half]) for position in (7, 8)]


def _attended(node: Node, q: Any, k: Any, v: Any, cache: _Cache) -> Any:
    """Returns [batch, length, heads * size]. Scores of 16-bit data are f32."""
    batch, heads, length, size = node.shape(q)
    shared, total, size_of_v = node.shape(k)[1], node.shape(k)[2], node.shape(v)[3]
    if not shared or heads % shared:
        raise Unfit(f"{heads} heads of queries for {shared} heads of keys, allowed is a multiple")
    wide = "f32" if q.dtype in SMALL_FLOATS else q.dtype
    grouped = node.reshape(q, [batch, shared, heads // shared, length, size])
    keys, values = (node.reshape(x, [batch, shared, 1, total, node.shape(x)[3]]) for x in (k, v))
    scores = node.op("MatMul", [grouped, keys], dtype=wide, transpose_b=True)
    scores = node.op("Multiply", [scores, node.scalar(node.attribute("scale", 0.0) or 1 / math.sqrt(size), scores)])
    cap = node.attribute("softcap", 0.0)
    if cap:
        scores = node.op("Multiply", [node.op("Tanh", [node.op("Divide", [scores, node.scalar(cap, scores)])]), node.scalar(cap, scores)])
    if node.has(10):
        scores = node.op("Add", [scores, _bias(node, node.cast(node.tensor(10), wide), shared, heads)])
    seen = node.reshape(cache.visible(), [batch, 1, 1, length, total])
    scores = node.op("Select", [seen, scores, node.scalar(-math.inf, scores)])
    weights = node.op("SoftMax", [scores], dtype=q.dtype, axis=-1, mode="inf_as_zero", outputs=(True, False))[0]
    made = node.reshape(node.op("MatMul", [weights, values]), [batch, heads, length, size_of_v])
    return node.reshape(node.transpose(made, [0, 2, 1, 3]), [batch, length, heads * size_of_v])


def _bias(node: Node, bias: Any, shared: int, heads: int) -> Any:
    """[batch or 1, heads or 1, length, total], with the heads of queries split by the heads of keys."""
    first, of_heads, *rest = node.shape(bias)
    return node.reshape(bias, [first, *((1, 1) if of_heads == 1 else (shared, heads // shared)), *rest])


RULES = {"GroupQueryAttention": group_query_attention}
