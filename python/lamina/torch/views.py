"""Rules for views of inner tensors: layout ops, most of which cost nothing."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from lamina.torch.lowering import Lowering
from lamina.torch.nodes import Refused
from lamina.torch.rules_index import bounds, laid_anew, sliced, window_places


def as_shape(l: Lowering, node: Node, source: Any) -> Any:
    return l.reshape(source, node.meta["val"].shape)


PERMUTES = (torch.ops.aten.permute.default, torch.ops.aten.t.default, torch.ops.aten.transpose.int)


def order_of(node: Node) -> list:
    """Returns the source axis of each axis of a permute, transpose or t."""
    order = list(range(node.meta["val"].dim()))
    name = str(node.target).split(".")[1]
    if name == "permute":
        return [d % len(order) for d in node.args[1]]
    if len(order) > 1:
        first, second = (0, 1) if name == "t" else (node.args[1] % len(order), node.args[2] % len(order))
        order[first], order[second] = order[second], order[first]
    return order


def permuted(l: Lowering, node: Node, source: Any) -> Any:
    order = order_of(node)
    return source if order == sorted(order) else l.op("StaticTranspose", [source], order=order)


def slice_view(l: Lowering, node: Node, source: Any) -> Any:
    _, axis, start, end, step = (list(node.args) + [0, None, None, 1][len(node.args) - 1:])[:5]
    extent = source.shape[axis]
    start, end = bounds(start, end, extent)
    return source if (start, end, step) == (0, extent, 1) else sliced(l, source, axis % len(source.shape), start, end, step)


def select_view(l: Lowering, node: Node, source: Any) -> Any:
    _, axis, index = node.args
    index %= source.shape[axis]
    return l.reshape(sliced(l, source, axis % len(source.shape), index, index + 1), node.meta["val"].shape)


def part_view(l: Lowering, node: Node, source: Any) -> Any:
    """One part of split and similar ops."""
    whole, index = node.args
    values = whole.meta["val"]
    axis = (whole.args[2] if len(whole.args) > 2 else whole.kwargs.get("dim", 0))
    if "unbind" in str(whole.target):
        axis = (whole.args[1] if len(whole.args) > 1 else 0) % len(source.shape)
        return l.reshape(sliced(l, source, axis, index, index + 1), node.meta["val"].shape)
    axis %= len(source.shape)
    start = sum(int(v.shape[axis]) for v in values[:index])
    return sliced(l, source, axis, start, start + int(values[index].shape[axis]))


def expanded(l: Lowering, node: Node, source: Any) -> Any:
    shape = [int(extent) for extent in node.meta["val"].shape]
    source = l.reshape(source, [1] * (len(shape) - len(source.shape)) + list(source.shape))
    return source if list(source.shape) == shape else l.op("Expand", [source], shape=shape)


def strided(l: Lowering, node: Node, source: Any) -> Any:
    """as_strided over all elements, with other strides."""
    value, whole = node.meta["val"], node.args[0].meta["val"]
    if value.numel() != whole.numel() or value.storage_offset() != whole.storage_offset():
        raise Refused("strides of a part of a tensor that lamina computes")
    return laid_anew(l, source, whole.stride(), [int(n) for n in value.shape], value.stride())


def windows(l: Lowering, node: Node, source: Any) -> Any:
    """unfold: windows along an axis, with their elements along a new last axis."""
    shape, axis, (size, step) = [int(n) for n in node.meta["val"].shape], node.args[1] % max(len(source.shape), 1), node.args[2:]
    if not source.shape or 0 in shape:
        raise Refused("a scalar, or no windows")
    made, rank = l.op("Gather", [source, window_places(l, shape[axis], size, step)], axis=axis), len(shape)
    return made if axis + 2 == rank else l.op("StaticTranspose", [made], order=[d for d in range(rank) if d != axis + 1] + [axis + 1])


VIEW_RULES = {name: as_shape for name in "view _unsafe_view reshape unsqueeze squeeze alias detach lift_fresh_copy".split()}
VIEW_RULES.update({name: permuted for name in ("permute", "transpose", "t")})
VIEW_RULES.update({"slice": slice_view, "select": select_view, "split": part_view, "split_with_sizes": part_view, "unbind": part_view,
                   "expand": expanded, "as_strided": strided, "unfold": windows})
