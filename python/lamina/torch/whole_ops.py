"""lamina's own ops in torch graphs: ops that torch would decompose, or does not have. If lamina does not run one of them, its
torch implementation runs."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx import GraphModule, Node

from lamina.torch.decomposed_norms import keep_decomposed_norms
from lamina.torch.written_recurrences import keep_recurrences

# ---- RMSNorm, which torch decomposes on a CPU

@torch.library.custom_op("lamina::rms_norm", mutates_args=())
def rms_norm(x: Tensor, weight: Optional[Tensor], dims: int, eps: float) -> Tensor:
    return F.rms_norm(x, x.shape[x.dim() - dims:], weight, eps).contiguous().clone()


@rms_norm.register_fake
def _(x: Tensor, weight: Optional[Tensor], dims: int, eps: float) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("lamina::rms_norm_backward", mutates_args=())
def rms_norm_backward(grad: Tensor, x: Tensor, weight: Optional[Tensor], dims: int, eps: float) -> tuple[Tensor, Tensor]:
    axes = list(range(x.dim() - dims, x.dim()))
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    normal, slope = x.to(wide), grad.to(wide)
    scale = torch.rsqrt(normal.square().mean(axes, keepdim=True) + eps)
    normal = normal * scale
    outer = x.shape[:x.dim() - dims].numel()
    diff_weight = x.new_empty(0) if weight is None else (slope * normal).reshape(outer, *weight.shape).sum(0).to(weight.dtype)
    slope = slope if weight is None else slope * weight
    diff_x = scale * (slope - normal * (slope * normal).mean(axes, keepdim=True))
    return diff_x.to(x.dtype).contiguous(), diff_weight.contiguous()


@rms_norm_backward.register_fake
def _(grad: Tensor, x: Tensor, weight: Optional[Tensor], dims: int, eps: float) -> tuple[Tensor, Tensor]:
    like = torch.empty_like(x, memory_format=torch.contiguous_format)
    return like, x.new_empty(0) if weight is None else torch.empty_like(weight, memory_format=torch.contiguous_format)


def _keep(ctx: Any, inputs: tuple, output: Tensor) -> None:
    x, weight, ctx.dims, ctx.eps = inputs
    ctx.save_for_backward(x, weight)


def _backward(ctx: Any, grad: Tensor) -> tuple:
    x, weight = ctx.saved_tensors
    diff_x, diff_weight = rms_norm_backward(grad, x, weight, ctx.dims, ctx.eps)
    return diff_x, None if weight is None else diff_weight, None, None


rms_norm.register_autograd(_backward, setup_context=_keep)


# ---- linear recurrences, which torch does not have

@torch.library.custom_op("lamina::linear_recurrence", mutates_args=())
def linear_recurrence(factors: Tensor, src: Tensor, dim: int, reverse: bool) -> Tensor:
    state, states = torch.zeros_like(src.select(dim, 0)), torch.empty_like(src, memory_format=torch.contiguous_format)
    for i in _in_order(src, dim, reverse):
        state = factors.select(dim, i) * state + src.select(dim, i)
        states.select(dim, i).copy_(state)
    return states


@linear_recurrence.register_fake
def _(factors: Tensor, src: Tensor, dim: int, reverse: bool) -> Tensor:
    return torch.empty_like(src, memory_format=torch.contiguous_format)


@torch.library.custom_op("lamina::linear_recurrence_backward", mutates_args=())
def linear_recurrence_backward(grad: Tensor, factors: Tensor, states: Tensor, dim: int, reverse: bool) -> tuple[Tensor, Tensor]:
    diff_factors = torch.zeros_like(states, memory_format=torch.contiguous_format)
    diff_src = torch.empty_like(states, memory_format=torch.contiguous_format)
    order = list(_in_order(states, dim, reverse))
    carried = torch.zeros_like(states.select(dim, 0))
    for i, before in zip(reversed(order), [*reversed(order[:-1]), None]):
        slope = grad.select(dim, i) + carried
        diff_src.select(dim, i).copy_(slope)
        if before is not None:
            diff_factors.select(dim, i).copy_(slope * states.select(dim, before))
        carried = factors.select(dim, i) * slope
    return diff_factors, diff_src


@linear_recurrence_backward.register_fake
def _(grad: Tensor, factors: Tensor, states: Tensor, dim: int, reverse: bool) -> tuple[Tensor, Tensor]:
    like = torch.empty_like(states, memory_format=torch.contiguous_format)
    return like, torch.empty_like(like)


def _in_order(states: Tensor, dim: int, reverse: bool) -> range:
    count = states.shape[dim]
    return range(count - 1, -1, -1) if reverse else range(count)


def _keep_states(ctx: Any, inputs: tuple, output: Tensor) -> None:
    factors, _, ctx.dim, ctx.reverse = inputs
    ctx.save_for_backward(factors, output)


def _recurrence_backward(ctx: Any, grad: Tensor) -> tuple:
    return (*linear_recurrence_backward(grad, *ctx.saved_tensors, ctx.dim, ctx.reverse), None, None)


linear_recurrence.register_autograd(_recurrence_backward, setup_context=_keep_states)


# ---- before AOTAutograd

def keep_whole(module: GraphModule, example_inputs: Any = None) -> GraphModule:
    """Replaces RMSNorm, torch's or a model's own, and linear recurrences by the ops above before AOTAutograd decomposes them."""
    keep_decomposed_norms(module)
    keep_recurrences(module)
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target in (torch.rms_norm, F.rms_norm):
            _replace(module, node)
    module.recompile()
    return module


def _replace(module: GraphModule, node: Node) -> None:
    named = dict(zip(("input", "normalized_shape", "weight", "eps"), node.args), **node.kwargs)
    source, weight, eps = named["input"], named.get("weight"), named.get("eps")
    value, made = source.meta.get("example_value"), node.meta.get("example_value")
    if value is None or made is None or made.dtype != value.dtype or not value.is_floating_point() or value.device.type != "cpu":
        return
    if not isinstance(eps, (float, int, type(None))):
        return
    eps = torch.finfo(value.dtype).eps if eps is None else float(eps)
    if eps <= 0:
        return
    with module.graph.inserting_before(node):
        whole = module.graph.call_function(torch.ops.lamina.rms_norm.default, (source, weight, len(named["normalized_shape"]), eps))
    whole.meta.update(node.meta)
    node.replace_all_uses_with(whole)
    module.graph.erase_node(node)


# ---- products of 16-bit factors and of 8-bit integers with an f32 result

@torch.library.custom_op("lamina::wide_mm", mutates_args=())
def wide_mm(self: Tensor, mat2: Tensor) -> Tensor:
    return (self @ mat2).float()


@wide_mm.register_fake
def _(self: Tensor, mat2: Tensor) -> Tensor:
    return self.new_empty((self.shape[0], mat2.shape[1]), dtype=torch.float32)


@torch.library.custom_op("lamina::wide_int_mm", mutates_args=())
def wide_int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    return torch._int_mm(self, mat2).float()


@wide_int_mm.register_fake
def _(self: Tensor, mat2: Tensor) -> Tensor:
    return self.new_empty((self.shape[0], mat2.shape[1]), dtype=torch.float32)


# ---- MaxPool's gradient without saved argmax

def _define_max_pool_backward(axes: int) -> None:
    forward = getattr(torch.ops.aten, f"max_pool{axes}d_with_indices")
    backward = getattr(torch.ops.aten, f"max_pool{axes}d_with_indices_backward")

    @torch.library.custom_op(f"lamina::max_pool{axes}d_backward", mutates_args=())
    def max_pool_backward(grad_output: Tensor, self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int],
                          dilation: list[int], ceil_mode: bool = False) -> Tensor:
        places = forward(self, kernel_size, stride, padding, dilation, ceil_mode)[1]
        return backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, places)

    @max_pool_backward.register_fake
    def _(grad_output: Tensor, self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int],
          ceil_mode: bool = False) -> Tensor:
        return torch.empty_like(self)


for _axes in (2, 3):
    _define_max_pool_backward(_axes)
