"""Functions of torch tensors with gradients. Each forward and each backward pass is one lamina graph."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

import torch

from lamina import functions as _f
from lamina._errors import Error

__all__ = ["layer_norm", "add_layer_norm", "rms_norm", "softmax", "attention", "gated_mlp"]


def _wants_gradient(*tensors: Optional[torch.Tensor]) -> bool:
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                return True
    return False


def _axis(x: torch.Tensor, normalized_shape: Any, function: str) -> int:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or x.shape[-len(shape):] != shape:
        raise Error(f"{function}: normalized_shape is {list(shape)}, x has shape {list(x.shape)}; allowed are its last extents")
    return -len(shape)


# ---- backward graphs

def _gradient_of_norm(g: Any, x: Any, diff: Any, gamma: Any, *, axis: int, epsilon: float, wanted: tuple) -> list:
    """Returns diff_src, diff_gamma, diff_beta; the statistics are recomputed from x."""
    attributes = dict(begin_norm_axis=axis, epsilon=epsilon, use_stats=False)
    if gamma is None:
        return [g.op("LayerNormBackward", [x, diff], use_affine=False, **attributes)]
    made = g.op("LayerNormBackward", [x, diff, gamma], outputs=wanted, **attributes)
    return [tensor for tensor in (made if isinstance(made, tuple) else (made,)) if tensor is not None]


def _gradient_of_rms_norm(g: Any, x: Any, diff: Any, gamma: Any, *, axis: int, epsilon: float) -> list:
    ones = None
    if gamma is None:
        ones = g.op("Expand", [g.constant(1.0, "f64" if x.dtype == "f64" else "f32")], shape=list(x.shape[axis:]))
    wanted = (True, gamma is not None)
    made = g.op("RMSNormBackward", [x, diff, ones or gamma], outputs=wanted, begin_norm_axis=axis, epsilon=epsilon)
    return [tensor for tensor in made if tensor is not None]


def _gradient_of_softmax(g: Any, diff: Any, y: Any, *, axis: int) -> Any:
    return g.op("SoftMaxBackward", [diff, y], axis=axis)


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, axis, epsilon):
        ctx.save_for_backward(x, gamma, beta)
        ctx.axis, ctx.epsilon = axis, epsilon
        return _f.layer_norm(x, gamma, beta, axis=axis, epsilon=epsilon)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, diff):
        x, gamma, beta = ctx.saved_tensors
        return (*_norm_gradients(x, gamma, beta, diff, ctx.axis, ctx.epsilon, ctx.needs_input_grad), None, None)


def _norm_gradients(x: Any, gamma: Any, beta: Any, diff: Any, axis: int, epsilon: float, needed: Sequence[bool]) -> list:
    stand_in = gamma
    if gamma is None and beta is not None and needed[2]:
        stand_in = torch.ones_like(beta)
    wanted = (bool(needed[0]), bool(needed[1]), bool(needed[2])) if stand_in is not None else (True, False, False)
    made = _f.call(_gradient_of_norm, (x, diff, stand_in), axis=axis, epsilon=epsilon, wanted=wanted)
    made = iter(made if isinstance(made, tuple) else (made,))
    return [next(made) if flag else None for flag in wanted]


class _AddLayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, gamma, beta, axis, epsilon):
        y, total = _f.add_layer_norm(x, residual, gamma, beta, axis=axis, epsilon=epsilon)
        ctx.save_for_backward(total, gamma, beta)
        ctx.axis, ctx.epsilon = axis, epsilon
        return y, total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, diff, diff_total):
        total, gamma, beta = ctx.saved_tensors
        needed = (True, ctx.needs_input_grad[2], ctx.needs_input_grad[3])
        source, diff_gamma, diff_beta = _norm_gradients(total, gamma, beta, diff, ctx.axis, ctx.epsilon, needed)
        source = source + diff_total
        return source, source, diff_gamma, diff_beta, None, None


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, axis, epsilon):
        ctx.save_for_backward(x, gamma)
        ctx.axis, ctx.epsilon = axis, epsilon
        return _f.rms_norm(x, gamma, axis=axis, epsilon=epsilon)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, diff):
        x, gamma = ctx.saved_tensors
        made = _f.call(_gradient_of_rms_norm, (x, diff, gamma), axis=ctx.axis, epsilon=ctx.epsilon)
        made = made if isinstance(made, tuple) else (made, None)
        return made[0], made[1], None, None


class _SoftMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, axis):
        y = _f.softmax(x, axis=axis)
        ctx.save_for_backward(y)
        ctx.axis = axis
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, diff):
        return _f.call(_gradient_of_softmax, (diff, *ctx.saved_tensors), axis=ctx.axis), None


# ---- attention and the gated MLP

def _gradient_of_attention(g: Any, q: Any, k: Any, v: Any, mask: Any, diff: Any, *, scale: float) -> list:
    factor = g.constant(scale, q.dtype)
    scores = g.op("Multiply", [g.op("MatMul", [q, k], transpose_b=True), factor])
    scores = scores if mask is None else g.op("Add", [scores, mask])
    weights = g.op("SoftMax", [scores], axis=-1, mode="inf_as_zero", outputs=(True, False))[0]
    diff_v = g.op("MatMul", [weights, diff], transpose_a=True)
    diff_scores = g.op("SoftMaxBackward", [g.op("MatMul", [diff, v], transpose_b=True), weights], axis=-1)
    diff_scores = g.op("Multiply", [diff_scores, g.constant(scale, q.dtype)])
    return [g.op("MatMul", [diff_scores, k]), g.op("MatMul", [diff_scores, q], transpose_a=True), diff_v]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, mask, scale):
        ctx.save_for_backward(q, k, v, mask)
        ctx.scale = scale
        return _f.attention(q, k, v, mask, scale=scale)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, diff):
        return (*_f.call(_gradient_of_attention, (*ctx.saved_tensors, diff), scale=ctx.scale), None, None)


def _gradient_of_gated_mlp(g: Any, x: Any, gate: Any, up: Any, down: Any, diff: Any) -> list:
    a, b = g.op("MatMul", [x, gate], transpose_b=True), g.op("MatMul", [x, up], transpose_b=True)
    s = g.op("Sigmoid", [a])
    silu = g.op("Multiply", [a, s])
    diff_hidden = g.op("MatMul", [diff, down])
    one = g.constant(1.0, x.dtype)
    slope = g.op("Multiply", [s, g.op("Add", [g.op("Multiply", [a, g.op("Subtract", [one, s])]), one])])
    diff_a = g.op("Multiply", [g.op("Multiply", [diff_hidden, b]), slope])
    diff_b = g.op("Multiply", [diff_hidden, silu])
    diff_x = g.op("Add", [g.op("MatMul", [diff_a, gate]), g.op("MatMul", [diff_b, up])])
    products = [g.op("MatMul", pair, transpose_a=True) for pair in ([diff_a, x], [diff_b, x], [diff, g.op("Multiply", [silu, b])])]
    return [diff_x, *products]


class _GatedMLP(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate, up, down):
        ctx.save_for_backward(x, gate, up, down)
        return _f.gated_mlp(x, gate, up, down)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, diff):
        x, *weights = ctx.saved_tensors
        diff_x, *rest = _f.call(_gradient_of_gated_mlp, (x.reshape(-1, x.shape[-1]), *weights, diff.reshape(-1, diff.shape[-1])))
        return diff_x.reshape(x.shape), *rest


# ---- the functions

def layer_norm(x: torch.Tensor, normalized_shape: Any, weight: Optional[torch.Tensor] = None, bias: Optional[torch.Tensor] = None,
               eps: float = 1e-5) -> torch.Tensor:
    """As torch.nn.functional.layer_norm.

    x: f32, bf16, f16 or f64 on the CPU, any shape that ends with normalized_shape. weight, bias: normalized_shape, or None.
    Returns a tensor with the shape and type of x. Raises lamina.Error for shapes or types that do not match."""
    axis = _axis(x, normalized_shape, "layer_norm")
    if _wants_gradient(x, weight, bias):
        return _LayerNorm.apply(x, weight, bias, axis, eps)
    return _f.layer_norm(x, weight, bias, axis=axis, epsilon=eps)


def add_layer_norm(x: torch.Tensor, residual: torch.Tensor, normalized_shape: Any, weight: Optional[torch.Tensor] = None,
                   bias: Optional[torch.Tensor] = None, eps: float = 1e-5) -> tuple:
    """Returns (layer_norm(x + residual), x + residual), computed in one pass over memory.

    residual: the shape and type of x. The other arguments and errors are those of layer_norm."""
    axis = _axis(x, normalized_shape, "add_layer_norm")
    if _wants_gradient(x, residual, weight, bias):
        return _AddLayerNorm.apply(x, residual, weight, bias, axis, eps)
    return _f.add_layer_norm(x, residual, weight, bias, axis=axis, epsilon=eps)


def rms_norm(x: torch.Tensor, normalized_shape: Any, weight: Optional[torch.Tensor] = None, eps: Optional[float] = None) -> torch.Tensor:
    """As torch.nn.functional.rms_norm. eps: default the machine epsilon of x's type. Other arguments as for layer_norm."""
    axis = _axis(x, normalized_shape, "rms_norm")
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    if _wants_gradient(x, weight):
        return _RMSNorm.apply(x, weight, axis, eps)
    return _f.rms_norm(x, weight, axis=axis, epsilon=eps)


def softmax(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """As torch.softmax along `dim`. Returns a tensor with the shape and type of x. Raises lamina.Error for another dim or
    type."""
    return _SoftMax.apply(x, dim) if _wants_gradient(x) else _f.softmax(x, axis=dim)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Optional[torch.Tensor] = None,
              scale: Optional[float] = None) -> torch.Tensor:
    """softmax(scale * q k' + mask) v: [..., Q, V], as torch.nn.functional.scaled_dot_product_attention with an additive mask.

    q: [..., Q, D]; k: [..., K, D]; v: [..., K, V], equal leading extents; scale: default 1 / sqrt(D). mask: broadcasts to
    [..., Q, K]; raises lamina.Error if it requires a gradient."""
    if mask is not None and mask.requires_grad and torch.is_grad_enabled():
        raise Error("attention: the mask requires a gradient, allowed is a mask that requires none")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return _Attention.apply(q, k, v, mask, scale) if _wants_gradient(q, k, v) else _f.attention(q, k, v, mask, scale=scale)


def gated_mlp(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """(silu(x gate') * (x up')) down': [..., D].

    x: [..., D]; gate, up: [H, D]; down: [D, H]. Raises lamina.Error for shapes or types that do not match."""
    return _GatedMLP.apply(x, gate, up, down) if _wants_gradient(x, gate, up, down) else _f.gated_mlp(x, gate, up, down)
