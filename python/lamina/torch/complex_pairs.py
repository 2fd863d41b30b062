"""Complex numbers as pairs of real ones. A real result of complex ops (view_as_real, real, imag, abs) is computed from the real
and the imaginary parts, in ops that lamina has: rotary embeddings and their gradients. Other ops on complex numbers, such as
Fourier transforms, are left to PyTorch.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch
from torch.fx import GraphModule, Node

from lamina.torch.nodes import add_call

aten = torch.ops.aten

# Ops that move elements, which the parts do, too.
MOVING = {getattr(aten, name).default for name in "view _unsafe_view reshape unsqueeze expand permute t alias clone squeeze".split()}
VIEWS = {aten.view.default, aten._unsafe_view.default}
MOVING |= {aten.transpose.int, aten.slice.Tensor, aten.select.int, aten.squeeze.dim, aten.squeeze.dims}


def is_complex(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.meta.get("val"), torch.Tensor) and value.meta["val"].is_complex()


class Pairs:
    def __init__(self, module: GraphModule) -> None:
        self.graph = module.graph
        self.known: dict[Node, Optional[tuple]] = {}  # (real part, imaginary part); None: torch computes the node

    def add(self, target: Any, *args: Any, **options: Any) -> Node:
        return add_call(self.graph, target, *args, **options)

    def parts(self, value: Any) -> tuple:
        """The parts of an operand, which may be real: then there is no imaginary part."""
        if not is_complex(value):
            return (value.real, value.imag or None) if isinstance(value, complex) else (value, None)
        return self.known.get(value) or self.taken_apart(value)

    def taken_apart(self, node: Node) -> tuple:
        """The parts of a complex tensor that torch computes."""
        if node.meta["val"].is_conj():
            with self.graph.inserting_after(node):
                node = self.add(aten.resolve_conj.default, node)
        with self.graph.inserting_after(node):
            pairs = self.add(aten.view_as_real.default, node)
        with self.graph.inserting_after(pairs):
            return tuple(self.add(aten.select.int, pairs, -1, i) for i in (0, 1))

    def binary(self, target: Any, x: Any, y: Any) -> Any:
        """A sum or a product of real operands; None is 0."""
        if target is aten.mul.Tensor:
            return None if x is None or y is None else self.add(target, x, y)
        if x is None or y is None:
            return x if y is None else y if target is aten.add.Tensor else self.add(aten.neg.default, y)
        return self.add(target, x, y)


def added(target: Any) -> Callable:
    def rule(p: Pairs, x: Any, y: Any, alpha: Any = 1) -> Optional[tuple]:
        if alpha != 1:
            return None
        (a, b), (c, d) = p.parts(x), p.parts(y)
        return tuple(p.binary(target, one, other) for one, other in ((a, c), (b, d)))

    return rule


def multiplied(p: Pairs, x: Any, y: Any) -> tuple:
    (a, b), (c, d) = p.parts(x), p.parts(y)
    product = lambda one, other: p.binary(aten.mul.Tensor, one, other)
    return p.binary(aten.sub.Tensor, product(a, c), product(b, d)), p.binary(aten.add.Tensor, product(a, d), product(b, c))


def conjugated(p: Pairs, x: Any) -> tuple:
    a, b = p.parts(x)
    return a, p.add(aten.neg.default, b)


def polar(p: Pairs, size: Node, angle: Node) -> tuple:
    return tuple(p.add(aten.mul.Tensor, size, p.add(function, angle)) for function in (aten.cos.default, aten.sin.default))


def size_of(p: Pairs, x: Node) -> Node:
    """abs: max * sqrt(1 + (min / max)^2), which does not overflow."""
    a, b = (p.add(aten.abs.default, part) for part in p.parts(x))
    most, least = p.add(aten.maximum.default, a, b), p.add(aten.minimum.default, a, b)
    is_zero = p.add(aten.eq.Scalar, most, 0.0)
    ratio = p.add(aten.div.Tensor, least, p.add(aten.where.self, is_zero, p.add(aten.add.Scalar, most, 1.0), most))
    return p.add(aten.mul.Tensor, most, p.add(aten.sqrt.default, p.add(aten.add.Scalar, p.add(aten.mul.Tensor, ratio, ratio), 1.0)))


def direction(p: Pairs, x: Node) -> tuple:
    """sgn: x / abs(x), and 0 for 0."""
    size = size_of(p, x)
    divisor = p.add(aten.where.self, p.add(aten.eq.Scalar, size, 0.0), p.add(aten.add.Scalar, size, 1.0), size)
    return tuple(p.add(aten.div.Tensor, part, divisor) for part in p.parts(x))


def quotient(p: Pairs, x: Node, y: Any) -> Optional[tuple]:
    return None if is_complex(y) or isinstance(y, complex) else tuple(p.add(aten.div.Tensor, part, y) for part in p.parts(x))


def chosen(p: Pairs, condition: Node, x: Node, y: Node) -> Optional[tuple]:
    if not (is_complex(x) and is_complex(y)):
        return None
    return tuple(p.add(aten.where.self, condition, one, other) for one, other in zip(p.parts(x), p.parts(y)))


# Rules of ops whose results are complex, for the arguments of the node: they return both parts, or None.
COMPLEX = {
    aten.view_as_complex.default: lambda p, x: tuple(p.add(aten.select.int, x, -1, i) for i in (0, 1)),
    aten.mul.Tensor: multiplied,
    aten.mul.Scalar: multiplied,
    aten.add.Tensor: added(aten.add.Tensor),
    aten.sub.Tensor: added(aten.sub.Tensor),
    aten.neg.default: lambda p, x: tuple(p.add(aten.neg.default, part) for part in p.parts(x)),
    aten._conj.default: conjugated,
    aten._conj_physical.default: conjugated,
    aten.div.Tensor: quotient,
    aten.where.self: chosen,
    aten.sgn.default: direction,
    aten.polar.default: polar,
    aten.complex.default: lambda p, a, b: (a, b),
}


# Rules of ops that make real numbers of complex ones.
REAL = {
    aten.view_as_real.default: lambda p, x: p.add(aten.cat.default, [p.add(aten.unsqueeze.default, part, -1) for part in p.parts(x)], -1),
    aten.real.default: lambda p, x: p.parts(x)[0],
    aten.imag.default: lambda p, x: p.parts(x)[1],
    aten.abs.default: size_of,
}


def split_complex(module: GraphModule) -> None:
    """Replaces real results of complex ops."""
    pairs = Pairs(module)
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        if is_complex(node):
            with module.graph.inserting_before(node):
                pairs.known[node] = _parts_of(pairs, node)
        elif node.target in REAL and is_complex(node.args[0]) and pairs.known.get(node.args[0]):
            with module.graph.inserting_before(node):
                made = REAL[node.target](pairs, *node.args)
            node.replace_all_uses_with(made)
            module.graph.erase_node(node)
    if pairs.known:
        module.graph.eliminate_dead_code()


def _parts_of(pairs: Pairs, node: Node) -> Optional[tuple]:
    if node.target in MOVING:
        target = aten.reshape.default if node.target in VIEWS else node.target  # parts may have other strides than the pairs
        parts = [pairs.add(target, part, *node.args[1:]) for part in pairs.parts(node.args[0])]
        return tuple(parts)  # memory_format of clone, if there is one, is that of a tensor that is not made
    if node.target is aten.scalar_tensor.default:
        value, dtype = complex(node.args[0]), node.meta["val"].dtype.to_real()
        return tuple(pairs.add(node.target, part, dtype=dtype) for part in (value.real, value.imag))
    rule = COMPLEX.get(node.target)
    made = rule(pairs, *node.args) if rule is not None and not node.kwargs else None
    if made is None or not all(isinstance(part, Node) for part in made):
        return None
    value = node.meta["val"]
    if any(part.meta["val"].dtype != value.dtype.to_real() for part in made):
        return None
    # A sum's part may be that of one operand alone, which the other one broadcasts.
    is_whole = lambda part: part.meta["val"].shape == value.shape
    return tuple(part if is_whole(part) else pairs.add(aten.expand.default, part, list(value.shape)) for part in made)
