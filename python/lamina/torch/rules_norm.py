"""Rules for norms, forward and backward."""

from __future__ import annotations

import math
from typing import Any, Optional

from torch.fx import Node

from lamina.torch.lowering import Lowering
from lamina.torch.nodes import Args, Refused, dtype_of
from lamina.torch.rules import NARROW, result_type, wide_type


def parameter_type(dtype: str, *nodes: Any) -> str:
    """Returns the type of gamma, beta and statistics that lamina accepts with data of `dtype`."""
    if dtype == "f64":
        return "f64"
    given = {dtype_of(node.meta["val"]) for node in nodes if node is not None}
    return dtype if dtype in NARROW and given == {dtype} else "f32"


def as_torch_has_them(l: Lowering, made: Any, values: Any) -> list:
    """Returns each tensor with torch's type and shape; None if either is None."""
    return [None if t is None or v is None else l.reshape(l.cast(t, dtype_of(v)), v.shape) for t, v in zip(made, values)]


def as_tuple(made: Any) -> tuple:
    return made if isinstance(made, tuple) else (made,)


def nothing(l: Lowering, a: Args) -> list:
    """For data without elements: returns zeros; only gradients of parameters have elements."""
    return [None if v is None else l.filled(0.0, v.shape, dtype_of(v)) for v in a.value]


def moments(l: Lowering, source: Any, axis: int, epsilon: float) -> tuple:
    """Returns source - mean, mean and 1 / sqrt(variance + epsilon) over the axes from `axis` on."""
    wide = wide_type(source.dtype)
    axes = list(range(axis, len(source.shape)))
    source = l.cast(source, wide)
    mean = l.op("ReduceMean", [source], axes=axes, keep_dims=True)
    apart = l.op("Subtract", [source, mean])
    variance = l.op("ReduceMean", [l.op("Square", [apart])], axes=axes, keep_dims=True)
    return apart, mean, l.op("Pow", [l.op("Add", [variance, l.constant(epsilon, wide)])], beta=-0.5)


def by_single_ops(l: Lowering, a: Args, source: Any, axis: int, parameters: Any) -> list:
    """Writes out a norm over the axes from `axis` on whose epsilon is not positive, which lamina's norms refuse; returns
    output, mean and rstd. parameters: gamma and beta, each None or of a shape that broadcasts to the output."""
    apart, mean, rstd = moments(l, source, axis, float(a.eps))
    wide = mean.dtype
    made = l.reshape(l.op("Multiply", [apart, rstd]), a.value[0].shape)
    for kind, parameter in zip(("Multiply", "Add"), parameters):
        made = made if parameter is None else l.op(kind, [made, l.cast(parameter, wide)])
    return as_torch_has_them(l, [made, mean, rstd], a.value)


def native_layer_norm(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    if 0 in a.value[0].shape and not l.used(a.node) - {0}:
        return [nothing(l, a)[0], None, None]
    axis = len(a.value[0].shape) - len(a.normalized_shape)
    if a.eps <= 0:
        given = [None if t is None else l.parameter(t, dtype_of(t.meta["val"])) for t in (a.weight, a.bias)]
        return by_single_ops(l, a, l.parameter(a.input, dtype), axis, given)
    stats = bool(l.used(a.node) & {1, 2})
    affine = a.weight is not None and a.bias is not None
    kept = parameter_type(dtype, a.weight, a.bias)
    inputs = [l.parameter(a.input, dtype)]
    if affine:
        inputs += [l.parameter(a.weight, kept), l.parameter(a.bias, kept)]
    made = as_tuple(l.op("LayerNorm", inputs, begin_norm_axis=axis, epsilon=float(a.eps), use_affine=affine, keep_stats=stats, stats_kind="rstd"))
    dst = made[0]
    if not affine and a.weight is not None:
        dst = l.op("Multiply", [dst, l.tensor(a.weight, dtype)])
    if not affine and a.bias is not None:
        dst = l.op("Add", [dst, l.tensor(a.bias, dtype)])
    return [dst, *(as_torch_has_them(l, made[1:], a.value[1:]) if stats else (None, None))]


def kept_statistics(l: Lowering, a: Args, dtype: str, shape: list) -> Optional[list]:
    """Returns the saved mean and rstd. Returns None for 16-bit types, whose saved statistics are rounded: the op computes
    them again, unless it does not support epsilon."""
    if dtype not in NARROW:
        return [l.reshape(l.parameter(t, dtype), shape) for t in (a.mean, a.rstd)]
    epsilon = a.node.meta.get("lamina_epsilon")
    if epsilon is None or epsilon > 0:
        return None
    rest = a.input.meta["val"].numel() // math.prod(shape)
    _, *statistics = moments(l, l.reshape(l.parameter(a.input, dtype), [*shape, rest]), len(shape), float(epsilon))
    return [l.reshape(t, shape) for t in statistics]


def gamma_of(l: Lowering, a: Args, dtype: str, shape: Any) -> Any:
    """Returns gamma, or ones if there is no gamma and the gradient of beta is requested."""
    if a.weight is not None:
        return l.parameter(a.weight, parameter_type(dtype, a.weight))
    return l.filled(1.0, shape, "f64" if dtype == "f64" else "f32") if a.output_mask[2] else None


def native_layer_norm_backward(l: Lowering, a: Args) -> Any:
    dtype = dtype_of(a.input.meta["val"])
    if 0 in a.input.meta["val"].shape:
        return nothing(l, a)
    shape = [int(extent) for extent in a.input.meta["val"].shape]
    axis = len(shape) - len(a.normalized_shape)
    statistics = kept_statistics(l, a, dtype, shape[:axis])
    gamma = gamma_of(l, a, dtype, shape[axis:])
    inputs = [l.parameter(a.input, dtype), l.parameter(a.grad_out, dtype), *(statistics or ()), *([] if gamma is None else [gamma])]
    mask = list(a.output_mask)
    mask[1] = mask[1] and a.weight is not None
    settings = dict(begin_norm_axis=axis, **statistics_settings(a, statistics))
    if gamma is None:
        made = (l.op("LayerNormBackward", inputs, use_affine=False, **settings), None, None)
    else:
        made = as_tuple(l.op("LayerNormBackward", inputs, outputs=tuple(mask), **settings))
    return as_torch_has_them(l, made, a.value)


def statistics_settings(a: Args, statistics: Optional[list]) -> dict:
    """Returns the attributes for saved statistics or, if the op computes them again, with the forward epsilon noted on the
    node (rewrites.py)."""
    if statistics is not None:
        return {"use_stats": True, "stats_kind": "rstd", "epsilon": 1.0}  # the statistics already include epsilon
    epsilon = a.node.meta.get("lamina_epsilon")
    if epsilon is None:
        raise Refused("the gradient of a 16-bit norm whose saved statistics are rounded")
    return {"use_stats": False, "epsilon": float(epsilon)}


def native_group_norm(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    if a.eps <= 0:
        column = [int(a.C), *[1] * (len(a.value[0].shape) - 2)]
        given = [None if t is None else l.reshape(l.parameter(t, dtype_of(t.meta["val"])), column) for t in (a.weight, a.bias)]
        rows = [int(a.N), int(a.group), a.value[0].numel() // max(1, int(a.N) * int(a.group))]
        return by_single_ops(l, a, l.reshape(l.parameter(a.input, dtype), rows), 2, given)
    stats = bool(l.used(a.node) & {1, 2})
    affine = a.weight is not None or a.bias is not None
    kept = parameter_type(dtype, a.weight, a.bias)
    inputs = [l.parameter(a.input, dtype)]
    if affine:
        for node, value in ((a.weight, 1.0), (a.bias, 0.0)):
            inputs.append(l.filled(value, [a.C], kept) if node is None else l.parameter(node, kept))
    made = as_tuple(l.op("GroupNorm", inputs, groups=a.group, epsilon=float(a.eps), use_affine=affine, keep_stats=stats, data_format="NCX",
                         stats_kind="rstd"))
    return [made[0], *(as_torch_has_them(l, made[1:], a.value[1:]) if stats else (None, None))]


def native_group_norm_backward(l: Lowering, a: Args) -> Any:
    dtype = dtype_of(a.input.meta["val"])
    if 0 in a.input.meta["val"].shape:
        return nothing(l, a)
    statistics = kept_statistics(l, a, dtype, [int(a.N), int(a.group)])
    gamma = gamma_of(l, a, dtype, [int(a.C)])
    inputs = [l.parameter(a.input, dtype), l.parameter(a.grad_out, dtype), *(statistics or ()), *([] if gamma is None else [gamma])]
    mask = list(a.output_mask)
    mask[1] = mask[1] and a.weight is not None
    settings = dict(groups=a.group, data_format="NCX", **statistics_settings(a, statistics))
    if gamma is None:
        made = (l.op("GroupNormBackward", inputs, use_affine=False, **settings), None, None)
    else:
        made = as_tuple(l.op("GroupNormBackward", inputs, outputs=tuple(mask), **settings))
    return as_torch_has_them(l, made, a.value)


# ---- batch norm

def batch_norm_parameters(l: Lowering, a: Args, dtype: str, *statistics: Any) -> tuple:
    """Returns gamma, beta (ones and zeros if they are omitted) and the statistics, all of one type."""
    kept = parameter_type(dtype, *(t for t in (a.weight, a.bias, *statistics) if t is not None))
    channels = [int(a.input.meta["val"].shape[1])]
    given = lambda node, value: l.filled(value, channels, kept) if node is None else l.parameter(node, kept)
    return (given(a.weight, 1.0), given(a.bias, 0.0), *(given(t, 0.0) for t in statistics))


def batch_norm_inference(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    inputs = [l.parameter(a.input, dtype), *batch_norm_parameters(l, a, dtype, a.running_mean, a.running_var)]
    return [l.op("BatchNormInference", inputs, epsilon=float(a.eps), data_format="NCX"), *[None] * (len(a.value) - 1)]


def batch_norm(l: Lowering, a: Args) -> Any:
    """Returns the output, the batch's mean and rstd, and the running statistics. torch's running variance is unbiased."""
    if not a.training:
        running = [l.op("Reorder", [l.parameter(t, dtype_of(t.meta["val"]))]) for t in (a.running_mean, a.running_var)]
        return [batch_norm_inference(l, a)[0], None, None, *running]
    dtype = result_type(a)
    shape = a.input.meta["val"].shape
    count = math.prod(shape) // max(1, shape[1])
    if count < 2:
        raise Refused("a batch with one value per channel")
    gamma, beta, mean, variance = batch_norm_parameters(l, a, dtype, a.running_mean, a.running_var)
    made = l.op("BatchNormForwardTraining", [l.parameter(a.input, dtype), mean, variance, gamma, beta], epsilon=float(a.eps), momentum=0.0,
                data_format="NCX")
    dst, _, _, batch_mean, batch_variance = made
    kept = batch_variance.dtype
    rstd = l.op("Pow", [l.op("Add", [batch_variance, l.constant(float(a.eps), kept)])], beta=-0.5)

    def moved(running: Any, batch: Any, factor: float) -> Any:
        old = l.op("Multiply", [running, l.constant(1 - float(a.momentum), kept)])
        return l.op("Add", [old, l.op("Multiply", [batch, l.constant(factor * float(a.momentum), kept)])])

    running = [moved(mean, batch_mean, 1.0), moved(variance, batch_variance, count / (count - 1))]
    return as_torch_has_them(l, [dst, batch_mean, rstd, *running], a.value)


def batch_norm_without_statistics(l: Lowering, a: Args) -> Any:
    """Batch norm without running statistics: returns the output, and the batch's mean and rstd."""
    dtype = result_type(a)
    gamma, beta, mean, variance = batch_norm_parameters(l, a, dtype, None, None)
    dst, _, _, batch_mean, batch_variance = l.op("BatchNormForwardTraining", [l.parameter(a.input, dtype), mean, variance, gamma, beta],
                                                 epsilon=float(a.eps), momentum=0.0, data_format="NCX")
    rstd = l.op("Pow", [l.op("Add", [batch_variance, l.constant(float(a.eps), batch_variance.dtype)])], beta=-0.5)
    return as_torch_has_them(l, [dst, batch_mean, rstd], a.value)


def batch_norm_backward(l: Lowering, a: Args) -> Any:
    dtype = dtype_of(a.input.meta["val"])
    statistics = (a.save_mean, a.save_invstd) if a.train else (a.running_mean, a.running_var)
    kept = parameter_type(dtype, *(t for t in (a.weight, *statistics) if t is not None))
    channels = [int(a.input.meta["val"].shape[1])]
    gamma = l.filled(1.0, channels, kept) if a.weight is None else l.parameter(a.weight, kept)
    source, grad, mean, scale = l.parameter(a.input, dtype), l.parameter(a.grad_out, dtype), *(l.parameter(t, kept) for t in statistics)
    if not a.train:
        return as_torch_has_them(l, gradients_beside_running_statistics(l, a, source, grad, mean, scale, gamma), a.value)
    made = l.op("BatchNormTrainingBackward", [source, grad, mean, scale, gamma], outputs=(True, *a.output_mask[1:]), epsilon=float(a.eps),
                data_format="NCX", stats_kind="rstd")
    return as_torch_has_them(l, as_tuple(made), a.value)


def gradients_beside_running_statistics(l: Lowering, a: Args, source: Any, grad: Any, mean: Any, variance: Any, gamma: Any) -> list:
    """Returns the gradients of gamma * (src - mean) / sqrt(variance + epsilon) + beta for constant mean and variance."""
    wide = "f64" if source.dtype == "f64" else "f32"
    rank = len(source.shape)
    column, axes = [1, -1, *[1] * (rank - 2)], [0, *range(2, rank)]
    per_channel = lambda t: l.reshape(t, [source.shape[1] if n == -1 else n for n in column])
    mean, variance, gamma, source, grad = (l.cast(t, wide) for t in (mean, variance, gamma, source, grad))
    rstd = per_channel(l.op("Pow", [l.op("Add", [variance, l.constant(float(a.eps), wide)])], beta=-0.5))
    normal = l.op("Multiply", [l.op("Subtract", [source, per_channel(mean)]), rstd])
    diff_gamma = l.op("ReduceSum", [l.op("Multiply", [grad, normal])], axes=axes) if a.output_mask[1] else None
    diff_beta = l.op("ReduceSum", [grad], axes=axes) if a.output_mask[2] else None
    return [l.op("Multiply", [grad, l.op("Multiply", [rstd, per_channel(gamma)])]), diff_gamma, diff_beta]


# ---- RMSNorm, preserved as one op before AOTAutograd (whole_ops.py)

def rms_norm(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    inputs = [l.parameter(a.x, dtype)] + ([] if a.weight is None else [l.parameter(a.weight, parameter_type(dtype, a.weight))])
    return l.op("RMSNorm", inputs, begin_norm_axis=len(a.value.shape) - a.dims, epsilon=float(a.eps))


def rms_norm_backward(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    if 0 in a.value[0].shape:
        return nothing(l, a)
    axis = len(a.value[0].shape) - a.dims
    if a.weight is None:
        gamma = l.filled(1.0, a.value[0].shape[axis:], "f64" if dtype == "f64" else "f32")
    else:
        gamma = l.parameter(a.weight, parameter_type(dtype, a.weight))
    made = l.op("RMSNormBackward", [l.parameter(a.x, dtype), l.parameter(a.grad, dtype), gamma], outputs=(True, a.weight is not None),
                begin_norm_axis=axis, epsilon=float(a.eps))
    return as_torch_has_them(l, made, a.value)


def weight_norm_backward(l: Lowering, a: Args) -> list:
    """Gradients of v and g in w = g * v / |v|, whose norm is over all axes but a.dim: with the sum s of grad * v and the norm n,
    dg = s / n and dv = g / n * (grad - v * s / n^2)."""
    dtype = result_type(a)
    wide = wide_type(dtype)
    grad, v, g, n = (l.cast(l.parameter(t, dtype_of(t.meta["val"])), wide) for t in (a.grad_w, a.saved_v, a.saved_g, a.saved_norms))
    axes = [d for d in range(len(v.shape)) if d != a.dim]
    total = l.op("ReduceSum", [l.op("Multiply", [grad, v])], axes=axes, keep_dims=True)
    slope = l.op("Divide", [total, n])
    inner = l.op("Subtract", [grad, l.op("Multiply", [v, l.op("Divide", [slope, n])])])
    made = [l.op("Multiply", [l.op("Divide", [g, n]), inner]), slope]
    return [l.cast(l.reshape(tensor, value.shape), dtype_of(value)) for tensor, value in zip(made, a.value)]
