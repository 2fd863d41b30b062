"""Two halves of one tensor that are joined in the other order, as rotary embeddings do: cat((-right, left)).

Written as a reversal of an axis of two entries, a kernel reads each half where it needs it, and no kernel writes the halves.
The gradient has this form too: gradients of two slices, each padded with zeros, whose sum is their concatenation.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, Optional

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule, Node

from lamina.torch.nodes import add_call, base_of
from lamina.torch.rules_index import bounds

aten = torch.ops.aten
LEAST_ROW = 16  # elements along the axis and those after it: shorter halves are read element by element


class Half(NamedTuple):
    whole: Node
    is_second: bool
    is_negative: bool


class Part(NamedTuple):
    """The gradient of a slice: `value` from `first` to before `end` along an axis, and zeros."""

    value: Node
    shape: list
    axis: int
    first: int
    end: int


def turn_halves(module: GraphModule) -> None:
    for node in list(module.graph.nodes):
        if node.target == aten.add.Tensor and len(node.args) == 2 and not node.kwargs:
            _join_gradients(module, node)
    for node in list(module.graph.nodes):
        if node.target == aten.cat.default and len(node.args[0]) == 2:
            axis = (node.args[1] if len(node.args) > 1 else 0) % node.meta["val"].dim()
            second, first = (_half_of(part, axis) for part in node.args[0])
            if _are_turned(second, first, axis):
                with module.graph.inserting_before(node):
                    node.replace_all_uses_with(_turned(module, node, axis, second, first))
    module.graph.eliminate_dead_code()
    module.recompile()


def _join_gradients(module: GraphModule, node: Node) -> None:
    """Joins the gradients of two slices in a sum of two or three terms."""
    for last, rest in (node.args, reversed(node.args)):
        is_sum = isinstance(rest, Node) and rest.target == aten.add.Tensor and len(rest.users) == 1 and len(rest.args) == 2 and not rest.kwargs
        for one, other in (rest.args, reversed(rest.args)) if is_sum else ((rest, None),):
            joined = _joined(module, node, _part_of(one), _part_of(last))
            if joined is not None:
                with module.graph.inserting_before(node):
                    node.replace_all_uses_with(joined if other is None else add_call(module.graph, aten.add.Tensor, other, joined))
                return


def _part_of(node: Any) -> Optional[Part]:
    if not isinstance(node, Node) or node.target != aten.slice_backward.default or node.args[5] != 1:
        return None
    value, shape, axis, first, end, _ = node.args
    axis %= len(shape)
    return Part(value, list(shape), axis, *bounds(first, end, shape[axis]))


def _joined(module: GraphModule, node: Node, one: Optional[Part], other: Optional[Part]) -> Optional[Node]:
    if one is None or other is None or one.shape != other.shape or one.axis != other.axis:
        return None
    left, right = sorted((one, other), key=lambda part: part.first)
    if left.first != 0 or left.end != right.first or right.end != right.shape[right.axis] or left.value.meta["val"].dtype != node.meta["val"].dtype:
        return None
    with module.graph.inserting_before(node):
        return add_call(module.graph, aten.cat.default, [left.value, right.value], left.axis)


def _half_of(part: Node, axis: int) -> Optional[Half]:
    """Which half of which tensor along an axis a node is, or the negative of."""
    is_negative = base_of(part) == "neg"
    part = part.args[0] if is_negative else part
    if part.target is operator.getitem and base_of(part.args[0]) in ("split", "split_with_sizes"):
        split, index = part.args
        whole, dim = split.args[0], split.args[2] if len(split.args) > 2 else split.kwargs.get("dim", 0)
        first = sum(int(value.shape[dim]) for value in split.meta["val"][:index])
    elif base_of(part) == "slice":
        whole, dim, first, end, step = [*part.args, *[0, None, None, 1][len(part.args) - 1:]]
        if step != 1:
            return None
        first, _ = bounds(first, end, whole.meta["val"].shape[dim])
    else:
        return None
    shape, count = whole.meta["val"].shape, part.meta["val"].shape[axis]
    is_half = dim % len(shape) == axis and 2 * count == shape[axis] and first in (0, count)
    return Half(whole, first > 0, is_negative) if is_half else None


def _are_turned(second: Optional[Half], first: Optional[Half], axis: int) -> bool:
    if second is None or first is None or second.whole is not first.whole or not second.is_second or first.is_second:
        return False
    value = second.whole.meta["val"]
    return value.is_floating_point() and value.shape[axis:].numel() >= LEAST_ROW


def _turned(module: GraphModule, node: Node, axis: int, second: Half, first: Half) -> Node:
    whole, value = second.whole, node.meta["val"]
    made = _reversed(module, whole, axis - value.dim())
    if second.is_negative or first.is_negative:
        name = f"lamina_signs_{second.is_negative:d}{first.is_negative:d}_{str(value.dtype)[6:]}_{value.dim() - axis}"
        signs = _signs(module, name, [second.is_negative, first.is_negative], value.dim() - axis, value.dtype)
        made = add_call(module.graph, aten.mul.Tensor, made, signs)
    return add_call(module.graph, aten.view.default, made, list(value.shape))


def _reversed(module: GraphModule, whole: Node, axis: int) -> Node:
    """The halves of a tensor in the other order, along an axis more; `axis` counts from the end. Those of a product are
    products of halves, so that kernels read halves from memory."""
    value = whole.meta["val"]
    if base_of(whole) == "mul" and len(whole.users) == 2 and all(_has_halves(factor, value, axis) for factor in whole.args):
        return add_call(module.graph, aten.mul.Tensor, *(_reversed(module, factor, axis) for factor in whole.args))
    place = value.dim() + axis
    apart = [*value.shape[:place], 2, value.shape[place] // 2, *value.shape[place + 1:]]
    return add_call(module.graph, aten.flip.default, add_call(module.graph, aten.view.default, whole, apart), [place])


def _has_halves(factor: Any, value: torch.Tensor, axis: int) -> bool:
    if not isinstance(factor, Node):
        return False
    of_factor = factor.meta["val"]
    return of_factor.dtype == value.dtype and of_factor.dim() >= -axis and of_factor.shape[axis] == value.shape[axis]


def _signs(module: GraphModule, name: str, negative: list, rank: int, dtype: torch.dtype) -> Node:
    with unset_fake_temporarily():
        value = torch.tensor([-1.0 if is_negative else 1.0 for is_negative in negative], dtype=dtype).reshape([2, *[1] * rank])
    module.register_buffer(name, value, persistent=False)
    node = module.graph.get_attr(name)
    node.meta["val"] = value
    return node
