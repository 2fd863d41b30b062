"""Questions about nodes of an FX graph of ATen ops: names, types, arguments, whether sizes are known."""

from __future__ import annotations

from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph, Node, map_arg

from lamina import _core

DTYPES = {getattr(torch, of_torch): name for name, (_, of_torch) in _core.array_types().items() if not name.startswith("f8")}
FLOATS = ("f32", "bf16", "f16", "f64")
VIEWS = set("view _unsafe_view reshape permute transpose t unsqueeze squeeze alias detach lift_fresh_copy expand slice select split "
            "split_with_sizes unbind as_strided unfold".split())
REINTERPRETED = {"view_as_real", "view_as_complex"}  # compute nothing, either
MANY = {"split", "split_with_sizes", "unbind"}


class Refused(Exception):
    """Raised for a node that torch must run; the text is the reason."""


def name_of(node: Node) -> str:
    """Returns "add.Tensor" for aten.add.Tensor, and the whole name for other nodes."""
    if node.op != "call_function":
        return node.op
    text = str(node.target)
    return text[5:] if text.startswith("aten.") else text


def base_of(node: Node) -> str:
    return name_of(node).split(".")[0]


def dtype_of(value: torch.Tensor) -> str:
    if value.dtype not in DTYPES:
        raise Refused(f"elements of {value.dtype}")
    return DTYPES[value.dtype]


def add_call(graph: Graph, target: Any, *args: Any, **options: Any) -> Node:
    """Adds a call of an op, with its value. Constants of the graph have values that are no FakeTensors, with which torch does not
    mix them."""
    values: list = []
    map_arg(args, lambda node: values.append(node.meta["val"]))
    mode = detect_fake_mode(values)

    def value_of(node: Node) -> Any:
        value = node.meta["val"]
        is_constant = isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor)
        return mode.from_tensor(value) if is_constant and mode is not None else value

    made = graph.call_function(target, args, options)
    made.meta["val"] = target(*map_arg(args, value_of), **options)
    return made


def known_number(value: Any) -> Any:
    """Replaces a node that computes a size by its value, which is known at this point."""
    if isinstance(value, (list, tuple)):
        return [known_number(v) for v in value]
    known = value.meta.get("val") if isinstance(value, Node) else None
    return known if isinstance(known, (int, float)) else value


def writes_to_input(node: Node) -> bool:
    """Whether the node writes a result to an input of the graph, such as a parameter that an optimizer changes."""
    return node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder"


def draws(node: Node) -> bool:
    """Whether the op draws random numbers."""
    if not isinstance(node.target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    names = [argument.name for argument in node.target._schema.arguments]
    if "dropout_p" not in names:
        return True
    place = names.index("dropout_p")  # attention draws only for dropout
    default = node.target._schema.arguments[place].default_value
    return (node.args[place] if place < len(node.args) else node.kwargs.get("dropout_p", default)) != 0


def may_draw(node: Node) -> bool:
    """Whether the node must keep its order among nodes that draw random numbers. An op that contains graphs always must."""
    return isinstance(node.target, torch._ops.HigherOrderOperator) or draws(node)


def is_known(value: Any) -> bool:
    """Whether sizes, strides and values of a node are numbers: values that depend on data are symbols."""
    if isinstance(value, (list, tuple)):
        return all(is_known(v) for v in value)
    if isinstance(value, torch.Tensor):
        if value.is_sparse or value.is_nested or value.layout is not torch.strided:
            return False
        return all(isinstance(n, int) for n in (*value.shape, *value.stride(), value.storage_offset()))
    return not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


class Args:
    """The arguments of an ATen call by the names of its schema, with defaults filled in; `value` is the node's result."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.value = node.meta["val"]
        self._own_value = None  # an argument that torch names "value"
        for position, argument in enumerate(node.target._schema.arguments):
            value = argument.default_value if argument.has_default_value() else None
            if position < len(node.args):
                value = node.args[position]
            name = "_own_value" if argument.name == "value" else argument.name
            setattr(self, name, known_number(node.kwargs.get(argument.name, value)))

    def argument(self, name: str) -> Any:
        return getattr(self, "_own_value" if name == "value" else name)
