"""Which lamina ops carry which ATen op: one entry an overload. An entry is called with the lowering and the node's arguments by
name, adds ops and returns the tensor that the node is (a list where it has several), or raises Refused: then torch computes it.

Types follow meta["val"], not rules of our own: operands are cast to the result's type, as torch's promotion does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Node

from lamina import _core
from lamina.torch.lowering import FLOATS, Args, Lowering, Refused, dtype_of


def result_type(a: Args) -> str:
    value = a.value[0] if isinstance(a.value, (list, tuple)) else a.value
    dtype = dtype_of(value)
    if dtype not in FLOATS:
        raise Refused(f"a result of {dtype}")
    return dtype


def give(a: Args, attributes: Mapping[str, Any]) -> dict:
    return {name: value(a) if callable(value) else value for name, value in attributes.items()}


@dataclass(frozen=True)
class Unary:
    kind: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    source: str = "self"

    def __call__(self, l: Lowering, a: Args) -> Any:
        return l.op(self.kind, [l.tensor(getattr(a, self.source), result_type(a))], **give(a, self.attributes))


@dataclass(frozen=True)
class Binary:
    kind: str
    swapped: bool = False
    constant: float = None  # the second operand, where torch's op has one

    def __call__(self, l: Lowering, a: Args) -> Any:
        dtype = result_type(a)
        if getattr(a, "rounding_mode", None) is not None:
            raise Refused(f"rounding_mode {a.rounding_mode}")
        left = l.tensor(a.self, dtype)
        right = l.constant(self.constant, dtype) if self.constant is not None else l.tensor(a.other, dtype)
        alpha = getattr(a, "alpha", 1)
        if alpha not in (1, None):
            right = l.op("Multiply", [right, l.constant(float(alpha), dtype)])
        made = l.op(self.kind, [right, left] if self.swapped else [left, right])
        return full(l, made, a)


def full(l: Lowering, tensor: Any, a: Args) -> Any:
    """Two scalars make a scalar, whatever shape torch gives a constant: stretched by an addition of nothing."""
    return l.reshape(tensor, a.value.shape) if tensor.shape != tuple(a.value.shape) and math.prod(tensor.shape) == a.value.numel() else tensor


@dataclass(frozen=True)
class Gradient:
    """kind(src or dst, diff_dst), by the names that torch has for them."""

    kind: str
    data: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    diff_first: bool = False

    def __call__(self, l: Lowering, a: Args) -> Any:
        dtype = result_type(a)
        data, diff = l.tensor(getattr(a, self.data), dtype), l.tensor(a.grad_output, dtype)
        return l.op(self.kind, [diff, data] if self.diff_first else [data, diff], **give(a, self.attributes))


@dataclass(frozen=True)
class Reduce:
    kind: str

    def __call__(self, l: Lowering, a: Args) -> Any:
        source = l.tensor(a.self, result_type(a))
        dims = getattr(a, "dim", None)
        dims = [dims] if isinstance(dims, int) else list(dims or [])
        axes = [d % max(1, len(source.shape)) for d in dims] or list(range(len(source.shape)))
        if not axes:
            raise Refused("a reduction of a scalar")
        return l.op(self.kind, [source], axes=axes, keep_dims=bool(getattr(a, "keepdim", False)))


@dataclass(frozen=True)
class Product:
    first: str
    second: str
    bias: str = ""

    def __call__(self, l: Lowering, a: Args) -> Any:
        dtype = result_type(a)
        inputs = [l.tensor(getattr(a, self.first), dtype), l.tensor(getattr(a, self.second), dtype)]
        if self.bias:
            if a.alpha != 1 or a.beta != 1:
                raise Refused(f"alpha {a.alpha}, beta {a.beta}")
            inputs.append(l.tensor(getattr(a, self.bias), dtype))
        if 0 in inputs[0].shape or 0 in inputs[1].shape:
            raise Refused("a product without elements")
        return l.op("MatMul", inputs, dtype=dtype)


def cast(l: Lowering, a: Args) -> Any:
    dtype, source = result_type(a), l.tensor(a.self)
    if source.dtype == dtype:
        return l.op("Reorder", [source])
    return l.cast(source, dtype)


def reorder(l: Lowering, a: Args) -> Any:
    result_type(a)
    return l.op("Reorder", [l.tensor(a.self)])


def power(l: Lowering, a: Args) -> Any:
    if isinstance(a.exponent, Node):
        raise Refused("an exponent that is no number")
    return l.op("Pow", [l.tensor(a.self, result_type(a))], beta=float(a.exponent))


def clamp(l: Lowering, a: Args) -> Any:
    low = getattr(a, "min", getattr(a, "min_val", None))
    high = getattr(a, "max", getattr(a, "max_val", None))
    if isinstance(low, Node) or isinstance(high, Node):
        raise Refused("a bound that is no number")
    low, high = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    return l.op("Clamp", [l.tensor(a.self, result_type(a))], min=low, max=high)


def select(l: Lowering, a: Args) -> Any:
    dtype, condition = result_type(a), l.tensor(a.condition)
    if condition.dtype != "boolean":
        raise Refused(f"a condition of {condition.dtype}")
    made = l.op("Select", [condition, l.tensor(a.self, dtype), l.tensor(a.other, dtype)])
    return made


def concatenate(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    parts = [part for part in a.tensors if tuple(part.meta["val"].shape) != (0,)]
    parts = [l._port_or_inner(part) for part in parts]
    return l.op("Concat", [l.cast(part, dtype) for part in parts], axis=a.dim)


def softmax(kind: str, mode: str = "none") -> Callable:
    def rule(l: Lowering, a: Args) -> Any:
        dtype = result_type(a)
        source = l.tensor(a.self)
        if not source.shape:
            raise Refused("softmax of a scalar")
        if kind == "LogSoftmax":
            return l.op(kind, [l.cast(source, dtype)], axis=a.dim)
        source = source if source.dtype in FLOATS and "f64" not in (source.dtype, dtype) else l.cast(source, dtype)
        return l.op(kind, [source], dtype=dtype, outputs=(True, False), axis=a.dim, mode=mode)[0]

    return rule


def softmax_backward(kind: str) -> Callable:
    def rule(l: Lowering, a: Args) -> Any:
        dtype = dtype_of(a.output.meta["val"])
        if dtype != result_type(a):
            raise Refused(f"a gradient of {result_type(a)} of {dtype}")
        return l.op(kind, [l.tensor(a.grad_output, dtype), l.tensor(a.output, dtype)], axis=a.dim)

    return rule


def parameter_type(dtype: str, *nodes: Any) -> str:
    """The type of gamma, beta and statistics that lamina takes beside data of `dtype`."""
    if dtype == "f64":
        return "f64"
    given = {dtype_of(node.meta["val"]) for node in nodes if node is not None}
    return "bf16" if dtype == "bf16" and given == {"bf16"} else "f32"


def statistics(l: Lowering, mean: Any, variance: Any, epsilon: float, values: list) -> list:
    """mean and 1 / sqrt(variance + epsilon) in the shapes and types that torch has."""
    total = l.op("Add", [variance, l.constant(epsilon, variance.dtype)])
    rstd = l.op("Pow", [total], beta=-0.5)
    return [l.reshape(l.cast(tensor, dtype_of(value)), value.shape) for tensor, value in zip((mean, rstd), values)]


def native_layer_norm(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    axis = len(a.value[0].shape) - len(a.normalized_shape)
    stats = bool(l.used(a.node) & {1, 2})
    if stats and dtype in ("bf16", "f16"):
        raise Refused("statistics of a 16-bit norm, whose type torch's own kernels decide")
    kept = parameter_type(dtype, a.weight, a.bias)
    inputs, affine = [l.tensor(a.input, dtype)], a.weight is not None and a.bias is not None
    if affine:
        inputs += [l.parameter(a.weight, kept), l.parameter(a.bias, kept)]
    made = l.op("LayerNorm", inputs, begin_norm_axis=axis, epsilon=float(a.eps), use_affine=affine, keep_stats=stats)
    made = made if isinstance(made, tuple) else (made,)
    dst = made[0]
    if not affine and a.weight is not None:
        dst = l.op("Multiply", [dst, l.tensor(a.weight, dtype)])
    if not affine and a.bias is not None:
        dst = l.op("Add", [dst, l.tensor(a.bias, dtype)])
    return [dst, *(statistics(l, made[1], made[2], float(a.eps), a.value[1:]) if stats else (None, None))]


def native_layer_norm_backward(l: Lowering, a: Args) -> Any:
    dtype = dtype_of(a.input.meta["val"])
    kept = "f64" if dtype == "f64" else "f32"
    shape = a.input.meta["val"].shape
    axis = len(shape) - len(a.normalized_shape)
    if dtype in ("bf16", "f16"):
        raise Refused("the gradient of a 16-bit norm, whose statistics torch's own kernels made")
    leading = [int(extent) for extent in shape[:axis]]
    mean, rstd = (l.reshape(l.tensor(t, kept), leading) for t in (a.mean, a.rstd))
    inputs = [l.tensor(a.input, dtype), l.tensor(a.grad_out, dtype), mean, rstd]
    mask = list(a.output_mask)
    affine = a.weight is not None
    if affine:
        inputs.append(l.parameter(a.weight, kept))
        made = l.op("LayerNormBackward", inputs, outputs=tuple(mask), begin_norm_axis=axis, epsilon=1e-5, stats_kind="rstd")
        made = made if isinstance(made, tuple) else (made,)
    else:
        if mask[1] or (mask[2] and a.bias is not None):
            raise Refused("the gradient of a bias without a weight")
        made = (l.op("LayerNormBackward", inputs, begin_norm_axis=axis, epsilon=1e-5, stats_kind="rstd", use_affine=False), None, None)
    return [None if t is None else l.reshape(l.cast(t, dtype_of(v)), v.shape) if v is not None else None for t, v in zip(made, a.value)]


def native_group_norm(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    if l.used(a.node) & {1, 2}:
        raise Refused("statistics of a group norm")
    affine = a.weight is not None and a.bias is not None
    kept = parameter_type(dtype, a.weight, a.bias)
    inputs = [l.tensor(a.input, dtype)]
    if affine:
        inputs += [l.parameter(a.weight, kept), l.parameter(a.bias, kept)]
    elif a.weight is not None or a.bias is not None:
        raise Refused("a weight without a bias, or the other way round")
    dst = l.op("GroupNorm", inputs, groups=a.group, epsilon=float(a.eps), use_affine=affine, keep_stats=False, data_format="NCX")
    return [dst, None, None]


def silu_backward(l: Lowering, a: Args) -> Any:
    """grad * s * (1 + x * (1 - s)), s = sigmoid(x)."""
    dtype = result_type(a)
    x, grad = l.tensor(a.self, dtype), l.tensor(a.grad_output, dtype)
    one = l.constant(1.0, dtype)
    s = l.op("Sigmoid", [x])
    rest = l.op("Add", [l.op("Multiply", [x, l.op("Subtract", [one, s])]), one])
    return l.op("Multiply", [l.op("Multiply", [grad, s]), rest])


def scores_of(l: Lowering, a: Args, q: Any, k: Any) -> Any:
    """scale * q k' + mask, in f32 for 16-bit data."""
    dtype = "f32" if q.dtype in ("bf16", "f16") else q.dtype
    scale = a.scale if a.scale is not None else q.shape[-1] ** -0.5
    scores = l.op("Multiply", [l.op("MatMul", [q, k], dtype=dtype, transpose_b=True), l.constant(float(scale), dtype)])
    if a.is_causal:
        rows, columns = scores.shape[-2:]
        with unset_fake_temporarily():
            hidden = torch.ones(rows, columns, dtype=torch.bool).triu(1)
            mask = torch.zeros(rows, columns).masked_fill(hidden, -math.inf)
        scores = l.op("Add", [scores, l.cast(l.known_tensor(f"causal_{rows}_{columns}", mask), dtype)])
    if a.attn_mask is not None:
        scores = l.op("Add", [scores, l.tensor(a.attn_mask, dtype)])
    return scores


def attention(l: Lowering, a: Args) -> Any:
    """softmax(scale * q k' + mask) v, and the logarithms of the sums where the backward pass wants them."""
    if a.dropout_p:
        raise Refused("attention with dropout")
    dtype, wanted = result_type(a), l.used(a.node)
    if wanted - {0, 1}:
        raise Refused("outputs that only torch's own kernel makes")
    q, k, v = l.tensor(a.query, dtype), l.tensor(a.key, dtype), l.tensor(a.argument("value"), dtype)
    if 0 in q.shape or 0 in k.shape:
        raise Refused("attention without elements")
    mode = "none" if 1 in wanted else "inf_as_zero"
    made = l.op("SoftMax", [scores_of(l, a, q, k)], dtype=dtype, axis=-1, mode=mode, outputs=(True, 1 in wanted))
    sums = None if made[1] is None else l.reshape(l.cast(made[1], dtype_of(a.value[1])), a.value[1].shape)
    return [l.op("MatMul", [made[0], v], dtype=dtype), sums]


def attention_backward(l: Lowering, a: Args) -> Any:
    """P = exp(S - logarithms of sums); dV = P' dO; dS = P * (dO V' - sum(dO * O)); dQ = scale dS K; dK = scale dS' Q."""
    if a.dropout_p:
        raise Refused("attention with dropout")
    dtype = dtype_of(a.query.meta["val"])
    q, k, v, out, grad = (l.tensor(t, dtype) for t in (a.query, a.key, a.argument("value"), a.out, a.grad_out))
    scores = scores_of(l, a, q, k)
    wide = scores.dtype
    column = [*scores.shape[:-1], 1]
    p = l.op("Exp", [l.op("Subtract", [scores, l.reshape(l.tensor(a.logsumexp, wide), column)])])
    moved = l.op("ReduceSum", [l.op("Multiply", [l.cast(grad, wide), l.cast(out, wide)])], axes=[-1], keep_dims=True)
    slope = l.op("Subtract", [l.op("MatMul", [grad, v], dtype=wide, transpose_b=True), moved])
    scale = float(a.scale if a.scale is not None else q.shape[-1] ** -0.5)
    ds = l.cast(l.op("Multiply", [l.op("Multiply", [p, slope]), l.constant(scale, wide)]), dtype)
    return [l.op("MatMul", [ds, k], dtype=dtype), l.op("MatMul", [ds, q], dtype=dtype, transpose_a=True),
            l.op("MatMul", [l.cast(p, dtype), grad], dtype=dtype, transpose_a=True)]


def threshold_backward(l: Lowering, a: Args) -> Any:
    if a.threshold != 0:
        raise Refused(f"threshold {a.threshold}")
    dtype = result_type(a)
    return l.op("ReLUBackward", [l.tensor(a.self, dtype), l.tensor(a.grad_output, dtype)], use_dst=False)


def compare(l: Lowering, a: Args) -> Any:
    types = {dtype_of(t.meta["val"]) for t in (a.self, a.other) if isinstance(t, Node)}
    if len(types) != 1 or not types <= {"f32", "f64", "bf16", "f16"}:
        raise Refused(f"a comparison of {', '.join(sorted(types))}")
    dtype = types.pop()
    return l.op("GreaterEqual", [l.tensor(a.self, dtype), l.tensor(a.other, dtype)])


def convolution(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    if a.transposed or any(a.output_padding):
        raise Refused("a transposed convolution")
    if 0 in a.value.shape:
        raise Refused("a convolution without elements")
    spatial = len(a.input.meta["val"].shape) - 2
    wide = lambda values: [int(values[i] if len(values) > 1 else values[0]) for i in range(spatial)]
    inputs = [l.tensor(a.input, dtype), l.tensor(a.weight, dtype)]
    if a.bias is not None:
        inputs.append(l.tensor(a.bias, dtype))
    return l.op("Convolution", inputs, strides=wide(a.stride), pads_begin=wide(a.padding), pads_end=wide(a.padding),
                dilations=wide(a.dilation), groups=a.groups, data_format="NCX", weights_format="OIX")


def batch_norm_inference(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    if a.weight is None or a.bias is None:
        raise Refused("a batch norm without weights")
    kept = parameter_type(dtype, a.weight, a.bias, a.running_mean, a.running_var)
    inputs = [l.tensor(a.input, dtype), *(l.parameter(t, kept) for t in (a.weight, a.bias, a.running_mean, a.running_var))]
    return [l.op("BatchNormInference", inputs, epsilon=float(a.eps), data_format="NCX"), None, None]


gelu_mode = {"mode": lambda a: "gelu_tanh" if a.approximate == "tanh" else "gelu_erf"}

TABLE = {
    "add.Tensor": Binary("Add"),
    "add.Scalar": Binary("Add"),
    "sub.Tensor": Binary("Subtract"),
    "sub.Scalar": Binary("Subtract"),
    "rsub.Scalar": Binary("Subtract", swapped=True),
    "mul.Tensor": Binary("Multiply"),
    "mul.Scalar": Binary("Multiply"),
    "div.Tensor": Binary("Divide"),
    "div.Scalar": Binary("Divide"),
    "maximum.default": Binary("Maximum"),
    "minimum.default": Binary("Minimum"),
    "neg.default": Binary("Multiply", constant=-1.0),
    "relu.default": Unary("ReLU"),
    "gelu.default": Unary("GELU", gelu_mode),
    "silu.default": Unary("Swish"),
    "sigmoid.default": Unary("Sigmoid"),
    "tanh.default": Unary("Tanh"),
    "exp.default": Unary("Exp"),
    "log.default": Unary("Log"),
    "sqrt.default": Unary("Sqrt"),
    "rsqrt.default": Unary("Pow", {"beta": -0.5}),
    "abs.default": Unary("Abs"),
    "reciprocal.default": Unary("Reciprocal"),
    "square.default": Unary("Square"),
    "round.default": Unary("Round"),
    "mish.default": Unary("Mish"),
    "hardswish.default": Unary("HardSwish"),
    "hardsigmoid.default": Unary("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}),
    "leaky_relu.default": Unary("LeakyReLU", {"alpha": lambda a: float(a.negative_slope)}),
    "pow.Tensor_Scalar": power,
    "clamp.default": clamp,
    "hardtanh.default": clamp,
    "clamp_min.default": clamp,
    "clamp_max.default": clamp,
    "where.self": select,
    "ge.Tensor": compare,
    "ge.Scalar": compare,
    "_to_copy.default": cast,
    "clone.default": reorder,
    "cat.default": concatenate,
    "mm.default": Product("self", "mat2"),
    "bmm.default": Product("self", "mat2"),
    "addmm.default": Product("mat1", "mat2", "self"),
    "sum.dim_IntList": Reduce("ReduceSum"),
    "sum.default": Reduce("ReduceSum"),
    "mean.dim": Reduce("ReduceMean"),
    "mean.default": Reduce("ReduceMean"),
    "amax.default": Reduce("ReduceMax"),
    "amin.default": Reduce("ReduceMin"),
    "_softmax.default": softmax("SoftMax"),
    "_safe_softmax.default": softmax("SoftMax", "inf_as_zero"),
    "_log_softmax.default": softmax("LogSoftmax"),
    "_softmax_backward_data.default": softmax_backward("SoftMaxBackward"),
    "_log_softmax_backward_data.default": softmax_backward("LogSoftmaxBackward"),
    "native_layer_norm.default": native_layer_norm,
    "native_layer_norm_backward.default": native_layer_norm_backward,
    "native_group_norm.default": native_group_norm,
    "_native_batch_norm_legit_no_training.default": batch_norm_inference,
    "convolution.default": convolution,
    "_scaled_dot_product_flash_attention_for_cpu.default": attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward.default": attention_backward,
    "gelu_backward.default": Gradient("GELUBackward", "self", gelu_mode),
    "sigmoid_backward.default": Gradient("SigmoidBackward", "output", {"use_dst": True}),
    "tanh_backward.default": Gradient("TanhBackward", "output", {"use_dst": True}),
    "hardswish_backward.default": Gradient("HardSwishBackward", "self"),
    "silu_backward.default": silu_backward,
    "threshold_backward.default": threshold_backward,
}
if "Sin" in _core.op_kinds():
    TABLE.update({"sin.default": Unary("Sin"), "cos.default": Unary("Cos")})

# Of these torch's own op is better than its decomposition, whether the table has it or not.
KEPT_WHOLE = {name.split(".")[0] for name in TABLE if name not in ("rsub.Scalar", "clamp_min.default", "clamp_max.default", "square.default")}
KEPT_WHOLE |= set("embedding_dense_backward split native_dropout native_dropout_backward convolution_backward native_group_norm_backward "
                  "native_batch_norm_backward nll_loss_forward nll_loss_backward "
                  "_native_batch_norm_legit_functional max_pool2d_with_indices_backward avg_pool2d_backward".split())


# ---- views of what lamina computes

def as_shape(l: Lowering, node: Node, source: Any) -> Any:
    return l.reshape(source, node.meta["val"].shape)


def permuted(l: Lowering, node: Node, source: Any) -> Any:
    order = list(range(len(source.shape)))
    name = str(node.target).split(".")[1]
    if name == "permute":
        order = [d % len(order) for d in node.args[1]]
    elif len(order) > 1:
        first, second = (0, 1) if name == "t" else (node.args[1] % len(order), node.args[2] % len(order))
        order[first], order[second] = order[second], order[first]
    return source if order == sorted(order) else l.op("StaticTranspose", [source], order=order)


def sliced(l: Lowering, source: Any, axis: int, start: int, end: int, step: int = 1) -> Any:
    return l.op("Slice", [source], starts=[start], ends=[end], axes=[axis], steps=[step])


def slice_view(l: Lowering, node: Node, source: Any) -> Any:
    _, axis, start, end, step = (list(node.args) + [0, None, None, 1][len(node.args) - 1:])[:5]
    extent = source.shape[axis]
    clip = lambda value, default: default if value is None else min(max(value + extent if value < 0 else value, 0), extent)
    start, end = clip(start, 0), clip(end, extent)
    return source if (start, end, step) == (0, extent, 1) else sliced(l, source, axis % len(source.shape), start, max(end, start), step)


def select_view(l: Lowering, node: Node, source: Any) -> Any:
    _, axis, index = node.args
    index %= source.shape[axis]
    return l.reshape(sliced(l, source, axis % len(source.shape), index, index + 1), node.meta["val"].shape)


def part_view(l: Lowering, node: Node, source: Any) -> Any:
    """One of the parts that split and its like make."""
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


VIEW_RULES = {name: as_shape for name in "view _unsafe_view reshape unsqueeze squeeze alias detach lift_fresh_copy".split()}
VIEW_RULES.update({name: permuted for name in ("permute", "transpose", "t")})
if "Slice" in _core.op_kinds():
    VIEW_RULES.update({"slice": slice_view, "select": select_view, "split": part_view, "split_with_sizes": part_view,
                       "unbind": part_view, "expand": expanded})
