"""Lets the backward pass compute the output of a norm again.

The gradient of a norm reads the norm's source, mean and rstd. With them, its output is a few elementwise operations, which the
kernels of the backward pass compute where they read it, so that the forward pass need not write it for them. torch's
partitioner decides: it keeps an output that matrix products read. It only knows elementwise ops, so the output is written out
for it, and made whole again in the forward graph.
"""

from __future__ import annotations

import operator
from typing import Any, Optional

import torch
from torch.fx import GraphModule, Node

from lamina.torch.nodes import add_call

aten = torch.ops.aten
MARK = "lamina_output_of_norm"
LAYER_NORM, GROUP_NORM = aten.native_layer_norm.default, aten.native_group_norm.default


def write_out_norms(joint: GraphModule) -> None:
    for node in list(joint.graph.nodes):
        if node.target in (LAYER_NORM, GROUP_NORM):
            outputs = {user.args[1]: user for user in node.users if user.target is operator.getitem}
            if len(outputs) == 3 and _is_suitable(node):
                _write_out(joint, node, outputs[0], outputs[1], outputs[2])


def make_norms_whole(forward: GraphModule) -> None:
    for node in list(forward.graph.nodes):
        if node.meta.get(MARK):
            norm = _norm_of(node)
            with forward.graph.inserting_after(norm):
                output = forward.graph.call_function(operator.getitem, (norm, 0))
            output.meta.update({key: value for key, value in node.meta.items() if key != MARK})
            node.replace_all_uses_with(output)
    forward.graph.eliminate_dead_code()
    forward.recompile()


def _is_suitable(norm: Node) -> bool:
    """16-bit statistics are rounded. Groups are views, of contiguous memory and known sizes."""
    value = norm.args[0].meta["val"]
    if value.dtype not in (torch.float32, torch.float64) or value.numel() == 0:
        return False
    return norm.target == LAYER_NORM or (value.is_contiguous() and all(isinstance(extent, int) for extent in value.shape))


def _write_out(joint: GraphModule, norm: Node, output: Node, mean: Node, rstd: Node) -> None:
    source, value = norm.args[0], norm.args[0].meta["val"]
    if norm.target == LAYER_NORM:
        weight, bias, rows, channel = norm.args[2], norm.args[3], list(value.shape), None
        column = list(mean.meta["val"].shape)
    else:
        weight, bias, groups = norm.args[1], norm.args[2], norm.args[6]
        batch, channels = value.shape[:2]
        rows, column, channel = [batch, groups, value.numel() // (batch * groups)], [batch, groups, 1], [channels, *[1] * (value.dim() - 2)]

    def made(op: Any, *args: Any) -> Node:
        node = add_call(joint.graph, op, *args)
        node.meta = {**output.meta, "val": node.meta["val"]}
        return node

    def shaped(node: Node, shape: Optional[list]) -> Node:
        return node if shape is None or list(node.meta["val"].shape) == shape else made(aten.view.default, node, shape)

    for part in (rstd, mean, output):  # before all that reads the output
        norm.append(part)
    with joint.graph.inserting_before(rstd.next):
        apart = made(aten.sub.Tensor, shaped(source, rows), shaped(mean, column))
        last = shaped(made(aten.mul.Tensor, apart, shaped(rstd, column)), list(value.shape))
        last = last if weight is None else made(aten.mul.Tensor, last, shaped(weight, channel))
        last = last if bias is None else made(aten.add.Tensor, last, shaped(bias, channel))
    last.meta[MARK] = True
    output.replace_all_uses_with(last)


def _norm_of(node: Node) -> Node:
    """The norm whose output this is: that of the mean which is subtracted."""
    while node.target != aten.sub.Tensor:
        node = node.args[0]
    mean = node.args[1]
    while mean.target is not operator.getitem:
        mean = mean.args[0]
    return mean.args[0]
