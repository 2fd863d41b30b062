"""Constants: values of nodes that depend on no input, computed once at compile time."""

from __future__ import annotations

import math
from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Node

from lamina.torch.nodes import DTYPES, base_of, draws, is_known

CREATED = set("arange full scalar_tensor zeros ones empty linspace eye empty_permuted tril_indices triu_indices".split())
CREATED_LIKE = {"full_like": None, "new_full": None, "zeros_like": 0, "new_zeros": 0, "ones_like": 1, "new_ones": 1,
                "empty_like": 0, "new_empty": 0, "new_empty_strided": 0}


def is_integer_of(value: Any, dtype: str) -> bool:
    """Whether an integer type or boolean has this value, without its fraction."""
    if not math.isfinite(value) or dtype == "boolean":
        return math.isfinite(value)
    range_of = torch.iinfo(next(kind for kind, name in DTYPES.items() if name == dtype))
    return range_of.min <= int(value) <= range_of.max


def fold(node: Node, constants: dict[Node, torch.Tensor]) -> Optional[torch.Tensor]:
    """Computes a node that depends only on constants; None if it depends on more."""
    name = base_of(node)
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor) or not isinstance(node.target, torch._ops.OpOverload):
        return None
    if value.device.type != "cpu" or draws(node) or not is_known(value):
        return None
    like = name in CREATED_LIKE
    known = name in CREATED or (node.all_input_nodes and all(i in constants for i in node.all_input_nodes))
    if not (like or known) or not all(is_known(i.meta.get("val")) for i in node.all_input_nodes):
        return None
    with unset_fake_temporarily(), torch.no_grad():
        if like:
            fill = CREATED_LIKE[name]
            fill = fill if fill is not None else node.args[-1] if name == "full_like" else node.args[2]
            if isinstance(fill, Node):
                return None
            return torch.empty_strided(tuple(value.shape), value.stride(), dtype=value.dtype).fill_(fill)
        real = lambda n: constants[n] if n in constants else n.meta["val"]
        made = node.target(*torch.fx.map_arg(node.args, real), **torch.fx.map_arg(node.kwargs, real))
        return made.cpu() if isinstance(made, torch.Tensor) else made


def uniform(value: Optional[torch.Tensor]) -> Any:
    """Returns the value of a constant whose elements are all equal."""
    if value is None or value.numel() == 0 or value.dtype not in DTYPES or value.device.type != "cpu":
        return None
    with unset_fake_temporarily():
        first = value.flatten()[0]
        return first.item() if value.numel() == 1 or bool((value == first).all()) else None
