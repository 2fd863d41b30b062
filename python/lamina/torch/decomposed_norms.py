"""Replaces RMSNorm as models write it, x * rsqrt(mean(x^2) + epsilon) * weight, by lamina's op before AOTAutograd
differentiates it, so that the gradient is one op, too."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, Optional

import torch
from torch.fx import GraphModule, Node

CASTS = ("to", "float", "type_as", "bfloat16", "half")
PRODUCTS = (operator.mul, torch.mul, "mul")


class Written(NamedTuple):
    source: Node
    weight: Optional[Node]
    epsilon: float
    made: Node  # the node that the norm replaces
    steps: list  # the nodes of the written norm, last first


def keep_decomposed_norms(module: GraphModule) -> None:
    for node in list(module.graph.nodes):
        found = _norm_at(node) if _is(node, torch.rsqrt, "rsqrt") else None
        if found is None or writes_between(found.steps[-1], found.made):
            continue
        with module.graph.inserting_before(found.made):
            whole = module.graph.call_function(torch.ops.lamina.rms_norm.default, (found.source, found.weight, 1, found.epsilon))
        whole.meta.update(found.made.meta)
        found.made.replace_all_uses_with(whole)
        for step in found.steps:
            if not step.users:
                module.graph.erase_node(step)


def _norm_at(root: Node) -> Optional[Written]:
    """Finds the norm that contains this reciprocal root."""
    added = root.args[0]
    if not _is(added, operator.add, torch.add, "add") or len(added.args) != 2:
        return None
    mean, epsilon = added.args if isinstance(added.args[0], Node) else reversed(added.args)
    if not isinstance(epsilon, (int, float)) or epsilon <= 0 or not _is_mean_of_rows(mean):
        return None
    square = mean.args[0]
    x = _squared(square)
    steps = [root, added, mean, square]
    if x is None or any(len(step.users) != 1 for step in steps):
        return None
    product, = root.users
    if not _is(product, *PRODUCTS) or _other(product, root) is not x or _type(product) != _type(x):
        return None
    return _weighted(x, float(epsilon), product, steps) or _if_on_cpu(Written(x, None, float(epsilon), product, [product, *steps]))


def _weighted(x: Node, epsilon: float, product: Node, steps: list) -> Optional[Written]:
    """Extends a norm by the multiplication with weights, with casts in between."""
    steps, last = [product, *steps], product
    while len(last.users) == 1:
        user, = last.users
        if user.op == "call_method" and user.target in CASTS and user.args[0] is last:
            steps, last = [user, *steps], user
            continue
        weight = _other(user, last) if _is(user, *PRODUCTS) else None
        if weight is None or _shape(weight) != _shape(x)[-1:] or _shape(user) != _shape(x):
            return None
        for source in (x, _before_cast(x)):  # a 16-bit source: the norm itself computes in f32
            if source is not None and _type(user) == _type(source):
                return _if_on_cpu(Written(source, weight, epsilon, user, [user, *steps]))
        return None
    return None


def _if_on_cpu(found: Written) -> Optional[Written]:
    """Only of floats: the gradient of the op is that of a function of real numbers."""
    value = found.source.meta["example_value"]
    return found if value.device.type == "cpu" and value.is_floating_point() else None


def writes_between(node: Node, last: Node) -> bool:
    """Whether an op after `node`, up to `last`, writes in place."""
    while node is not last:
        node = node.next
        name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "") if node.op == "call_function" else ""
        if (name.endswith("_") and not name.endswith("__")) or name in ("setitem", "iadd", "imul", "isub", "itruediv"):
            return True
    return False


def _is(node: Any, *targets: Any) -> bool:
    if not isinstance(node, Node) or not _is_tensor(node):
        return False
    return node.op in ("call_function", "call_method") and node.target in targets and not set(node.kwargs) - {"dim", "keepdim"}


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("example_value"), torch.Tensor)


def _is_mean_of_rows(node: Any) -> bool:
    if not _is(node, torch.mean, "mean"):
        return False
    dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    kept = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
    last = node.args[0].meta["example_value"].dim() - 1
    return kept is True and dims in (-1, last, [-1], (-1,), [last], (last,))


def _squared(node: Any) -> Optional[Node]:
    """Returns x of x ** 2 in any spelling."""
    if _is(node, torch.square, "square"):
        return node.args[0]
    if _is(node, torch.pow, "pow", operator.pow) and len(node.args) == 2 and node.args[1] == 2:
        return node.args[0]
    return node.args[0] if _is(node, *PRODUCTS) and node.args[0] is node.args[1] else None


def _other(product: Node, factor: Node) -> Optional[Node]:
    """Returns the other factor of a product."""
    others = [argument for argument in product.args if argument is not factor]
    return others[0] if len(others) == 1 and isinstance(others[0], Node) and _is_tensor(others[0]) else None


def _before_cast(x: Node) -> Optional[Node]:
    if x.op != "call_method" or x.target not in CASTS or not _is_tensor(x.args[0]):
        return None
    return x.args[0] if _type(x.args[0]) in (torch.bfloat16, torch.float16) and _type(x) == torch.float32 else None


def _type(node: Node) -> torch.dtype:
    return node.meta["example_value"].dtype


def _shape(node: Node) -> tuple:
    return tuple(node.meta["example_value"].shape)
