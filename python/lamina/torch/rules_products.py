"""Rules for products, attention, convolutions, pooling and resampling. Operands have their full shape (`Lowering.parameter`), also those
whose elements are all equal: these ops do not broadcast a scalar."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from lamina.torch.lowering import Lowering
from lamina.torch.nodes import Args, Refused, dtype_of
from lamina.torch.rules import operand, result_type, wide_type
from lamina.torch.rules_index import sliced
from lamina.torch.views import PERMUTES, order_of


def factor_of(l: Lowering, node: Any, dtype: str) -> tuple:
    """Returns (a factor, whether the product transposes it): a transposed view of an inner tensor needs no data movement for
    the product."""
    if node.target in PERMUTES and l.is_view(node) and l.is_inner(node):
        order = order_of(node)
        if order[-2:] == [len(order) - 1, len(order) - 2] and order[:-2] == sorted(order[:-2]):
            return l.parameter(node.args[0], dtype), True
    return l.parameter(node, dtype), False


@dataclass(frozen=True)
class Product:
    """alpha * (first second) + beta * bias."""

    first: str
    second: str
    bias: str = ""

    def __call__(self, l: Lowering, a: Args) -> Any:
        dtype = result_type(a)
        (left, across_a), (right, across_b) = (factor_of(l, getattr(a, name), dtype) for name in (self.first, self.second))
        factors, flags = [left, right], dict(transpose_a=across_a, transpose_b=across_b)
        empty = 0 in factors[0].shape or 0 in factors[1].shape
        if not self.bias:
            return l.filled(0.0, a.value.shape, dtype) if empty else l.op("MatMul", factors, dtype=dtype, **flags)
        bias = l.parameter(getattr(a, self.bias), dtype)
        if empty:
            return bias_alone(l, a, bias)
        if a.alpha == 1 and a.beta == 1:
            return l.op("MatMul", [*factors, bias], dtype=dtype, **flags)
        wide = wide_type(dtype)
        made = l.op("MatMul", factors, dtype=wide, **flags)
        if a.alpha != 1:
            made = l.op("Multiply", [made, operand(l, a.alpha, wide)])
        if a.beta == 0:
            return l.cast(made, dtype)
        bias = bias if a.beta == 1 else l.op("Multiply", [bias, operand(l, a.beta, dtype)], dtype=wide)
        return l.op("Add", [made, bias], dtype=dtype)


def wide_product(l: Lowering, a: Args) -> Any:
    """A product of 16-bit factors with an f32 result."""
    dtype = dtype_of(a.self.meta["val"])
    (left, across_a), (right, across_b) = (factor_of(l, node, dtype) for node in (a.self, a.mat2))
    if 0 in left.shape or 0 in right.shape:
        return l.filled(0.0, a.value.shape, "f32")
    return l.op("MatMul", [left, right], dtype="f32", transpose_a=across_a, transpose_b=across_b)


def bias_alone(l: Lowering, a: Args, bias: Any) -> Any:
    """beta * bias, if the product is empty or its inner extent is 0."""
    if a.beta == 0:
        return l.filled(0.0, a.value.shape, bias.dtype)
    scaled = l.op("Multiply", [bias, operand(l, a.beta, bias.dtype)], dtype=bias.dtype)
    return l.op("Expand", [scaled], shape=[int(n) for n in a.value.shape])


def sum_of_products(l: Lowering, a: Args) -> Any:
    """beta * self + alpha * the sum over the batch of batch1 batch2, as one product over the batch and inner axes together.
    """
    dtype = result_type(a)
    left, right = l.parameter(a.batch1, dtype), l.parameter(a.batch2, dtype)
    if 0 in left.shape or 0 in right.shape:
        return bias_alone(l, a, l.parameter(a.self, dtype))
    count, rows, inner = left.shape
    left = l.reshape(l.op("StaticTranspose", [left], order=[1, 0, 2]), [rows, count * inner])
    wide = wide_type(dtype)
    made = l.op("MatMul", [left, l.reshape(right, [count * inner, right.shape[2]])], dtype=wide)
    made = made if a.alpha == 1 else l.op("Multiply", [made, operand(l, a.alpha, wide)])
    if a.beta == 0:
        return l.cast(made, dtype)
    bias = l.parameter(a.self, dtype)
    return l.op("Add", [made, bias if a.beta == 1 else l.op("Multiply", [bias, operand(l, a.beta, dtype)], dtype=wide)], dtype=dtype)


# ---- attention

def scores_of(l: Lowering, a: Args, q: Any, k: Any) -> Any:
    """scale * q k' + mask, in f32 for 16-bit data."""
    dtype = wide_type(q.dtype)
    scale = a.scale if a.scale is not None else q.shape[-1] ** -0.5
    scores = l.op("Multiply", [l.op("MatMul", [q, k], dtype=dtype, transpose_b=True), l.constant(float(scale), dtype)])
    if a.is_causal:
        row, column = (l.op("GenIndex", [scores], dtype="s32", axis=axis) for axis in (-2, -1))
        seen = l.op("GreaterEqual", [row, column], dtype="boolean")
        scores = l.op("Select", [seen, scores, l.constant(-math.inf, dtype)], dtype=dtype)
    if a.attn_mask is not None:
        mask = l.tensor(a.attn_mask, dtype)
        scores = l.op("Add", [scores, mask if len(q.shape) == 4 else by_shared_heads(l, mask, q.shape[1])])
    return scores


def by_shared_heads(l: Lowering, tensor: Any, shared: int) -> Any:
    """Splits the axis of heads, [B, heads, ..], by the heads of keys that they share, [B, shared, heads / shared, ..]."""
    if len(tensor.shape) < 4:
        return tensor
    heads = tensor.shape[1]
    return l.reshape(tensor, [tensor.shape[0], *((1, 1) if heads == 1 else (shared, heads // shared)), *tensor.shape[2:]])


def attention(l: Lowering, a: Args) -> Any:
    """softmax(scale * q k' + mask) v, and the log-sum-exps if the backward pass needs them."""
    if a.dropout_p:
        raise Refused("attention with dropout")
    dtype, wanted = result_type(a), l.used(a.node)
    if wanted - {0, 1}:
        raise Refused("outputs that only torch's own kernel computes")
    q, k, v = l.parameter(a.query, dtype), l.parameter(a.key, dtype), l.parameter(a.argument("value"), dtype)
    if 0 in q.shape or 0 in k.shape:
        raise Refused("attention without elements")
    if q.shape[1] != k.shape[1]:
        q, k, v = (by_shared_heads(l, t, k.shape[1]) for t in (q, k, v))
    mode = "none" if 1 in wanted else "inf_as_zero"
    made = l.op("SoftMax", [scores_of(l, a, q, k)], dtype=dtype, axis=-1, mode=mode, outputs=(True, 1 in wanted))
    sums = None if made[1] is None else l.reshape(l.cast(made[1], dtype_of(a.value[1])), a.value[1].shape)
    return [l.reshape(l.op("MatMul", [made[0], v], dtype=dtype), a.value[0].shape), sums]


def attention_backward(l: Lowering, a: Args) -> Any:
    """P = exp(S - log-sum-exps); dV = P' dO; dS = P * (dO V' - sum(dO * O)); dQ = scale dS K; dK = scale dS' Q."""
    if a.dropout_p:
        raise Refused("attention with dropout")
    dtype = dtype_of(a.query.meta["val"])
    q, k, v, out, grad = (l.parameter(t, dtype) for t in (a.query, a.key, a.argument("value"), a.out, a.grad_out))
    shared = k.shape[1] if q.shape[1] != k.shape[1] else None
    if shared is not None:
        q, k, v, out, grad = (by_shared_heads(l, t, shared) for t in (q, k, v, out, grad))
    scores = scores_of(l, a, q, k)
    wide = scores.dtype
    column = [*scores.shape[:-1], 1]
    p = l.op("Exp", [l.op("Subtract", [scores, l.reshape(l.parameter(a.logsumexp, wide), column)])])
    moved = l.op("ReduceSum", [l.op("Multiply", [l.cast(grad, wide), l.cast(out, wide)])], axes=[-1], keep_dims=True)
    slope = l.op("Subtract", [l.op("MatMul", [grad, v], dtype=wide, transpose_b=True), moved])
    scale = float(a.scale if a.scale is not None else q.shape[-1] ** -0.5)
    ds = l.cast(l.op("Multiply", [l.op("Multiply", [p, slope]), l.constant(scale, wide)]), dtype)
    made = [l.op("MatMul", [ds, k], dtype=dtype)]
    for left, right in ((ds, q), (l.cast(p, dtype), grad)):
        if shared is None:
            made.append(l.op("MatMul", [left, right], dtype=dtype, transpose_a=True))
        else:  # the sum over the heads that share a key
            of_heads = l.op("MatMul", [left, right], dtype=wide, transpose_a=True)
            made.append(l.cast(l.op("ReduceSum", [of_heads], axes=[2], keep_dims=False), dtype))
    return [l.reshape(tensor, value.shape) for tensor, value in zip(made, a.value)]


# ---- windows

def each(values: Any, count: int) -> list:
    """Returns one entry per spatial axis."""
    values = [values] if isinstance(values, int) else list(values)
    return [int(values[i] if len(values) > 1 else values[0]) for i in range(count)]


def convolution_settings(a: Args, spatial: int) -> dict:
    settings = dict(strides=each(a.stride, spatial), pads_begin=each(a.padding, spatial), pads_end=each(a.padding, spatial),
                    dilations=each(a.dilation, spatial), groups=a.groups, data_format="NCX")
    if a.transposed:
        settings["weights_format"] = "IOX"
        if any(a.output_padding):
            settings["output_padding"] = each(a.output_padding, spatial)
    else:
        settings["weights_format"] = "OIX"
    return settings


def convolution(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    spatial = len(a.input.meta["val"].shape) - 2
    if 0 in a.value.shape or 0 in a.input.meta["val"].shape:
        raise Refused("a convolution without elements")
    settings = convolution_settings(a, spatial)
    inputs = [l.parameter(a.input, dtype), l.parameter(a.weight, dtype)]
    if not a.transposed:
        return l.op("Convolution", inputs + ([] if a.bias is None else [l.parameter(a.bias, dtype)]), **settings)
    made = l.op("ConvTranspose", inputs, **settings)
    return made if a.bias is None else l.op("BiasAdd", [made, l.parameter(a.bias, dtype)], data_format="NCX")


def convolution_backward(l: Lowering, a: Args) -> Any:
    dtype = dtype_of(a.input.meta["val"])
    shape = [int(n) for n in a.input.meta["val"].shape]
    spatial = len(shape) - 2
    weights_shape = [int(n) for n in a.weight.meta["val"].shape]
    if 0 in shape or 0 in weights_shape:
        raise Refused("a convolution without elements")
    settings = convolution_settings(a, spatial)
    settings.pop("output_padding", None)
    grad = l.parameter(a.grad_output, dtype)
    kind = "ConvTranspose" if a.transposed else "Convolution"
    data = weights = bias = None
    if a.output_mask[0] and a.transposed:
        data = l.op("Convolution", [grad, l.parameter(a.weight, dtype)], **{**settings, "weights_format": "OIX"})
        for axis in range(2, 2 + spatial):  # the elements that output_padding adds
            data = data if data.shape[axis] <= shape[axis] else sliced(l, data, axis, 0, shape[axis])
    elif a.output_mask[0]:
        data = l.op("ConvolutionBackwardData", [grad, l.parameter(a.weight, dtype)], dst_shape=shape, **settings)
    if a.output_mask[1]:
        weights = l.op(f"{kind}BackwardWeights", [l.parameter(a.input, dtype), grad], weights_shape=weights_shape, **settings)
    if a.output_mask[2]:
        bias = l.op("ReduceSum", [grad], axes=[0, *range(2, 2 + spatial)], keep_dims=False)
    return [data, weights, bias]


def window(a: Args, source: Any, made: Any) -> dict:
    """Attributes of windows over `source`, [.., spatial axes], as many as `made` has: a last window that extends past the end
    reads padding."""
    spatial = len(each_axis(a))
    kernel, strides, pads = each(a.kernel_size, spatial), each(a.stride or a.kernel_size, spatial), each(a.padding, spatial)
    dilations = each(getattr(a, "dilation", 1), spatial)
    ends = []
    for axis in range(spatial):
        reach = (made[axis - spatial] - 1) * strides[axis] + dilations[axis] * (kernel[axis] - 1) + 1
        ends.append(max(pads[axis], reach - source[axis - spatial] - pads[axis]) if a.ceil_mode else pads[axis])
    return dict(kernel=kernel, strides=strides, pads_begin=pads, pads_end=ends, data_format="NCX")


def each_axis(a: Args) -> str:
    """The spatial axes, by the op's name: "xy" for max_pool2d."""
    return "xyz"[:int(re.search(r"pool(\d)d", str(a.node.target)).group(1))]


def with_batch(l: Lowering, source: Any, a: Args) -> Any:
    """Adds a batch axis if it is missing: torch's pools also accept unbatched inputs."""
    return source if len(source.shape) == len(each_axis(a)) + 2 else l.reshape(source, [1, *source.shape])


def max_pool(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    if l.used(a.node) & {1}:
        raise Refused("the positions of the maxima")
    source = l.parameter(a.self, dtype)
    settings = window(a, source.shape, a.value[0].shape)
    made = l.op("MaxPool", [with_batch(l, source, a)], dilations=each(a.dilation, len(each_axis(a))), **settings)
    return [l.reshape(made, a.value[0].shape), None]


def max_pool_backward(l: Lowering, a: Args) -> Any:
    """Computes the argmax again."""
    dtype = result_type(a)
    inputs = [l.parameter(t, dtype) for t in (a.self, a.grad_output)]
    settings = window(a, inputs[0].shape, inputs[1].shape)
    made = l.op("MaxPoolBackward", [with_batch(l, t, a) for t in inputs], dilations=each(a.dilation, len(each_axis(a))), **settings)
    return l.reshape(made, a.value.shape)


def average_settings(a: Args, source: Any, made: Any) -> dict:
    settings = window(a, source, made)
    included = a.count_include_pad and a.divisor_override is None
    if included and settings["pads_end"] != settings["pads_begin"]:
        raise Refused("windows that extend past the end and count padding")
    if a.divisor_override is not None and settings["pads_end"] != settings["pads_begin"]:
        raise Refused("windows that extend past the end, with divisor_override")
    return dict(exclude_pad=not a.count_include_pad and a.divisor_override is None, **settings)


def by_own_divisor(l: Lowering, a: Args, tensor: Any) -> Any:
    """Scales the means from the number of cells to the given divisor."""
    if a.divisor_override is None:
        return tensor
    factor = math.prod(each(a.kernel_size, len(each_axis(a)))) / a.divisor_override
    return l.op("Multiply", [tensor, operand(l, factor, tensor.dtype)], dtype=tensor.dtype)


def average_pool(l: Lowering, a: Args) -> Any:
    source = l.parameter(a.self, result_type(a))
    made = l.op("AvgPool", [with_batch(l, source, a)], **average_settings(a, source.shape, a.value.shape))
    return l.reshape(by_own_divisor(l, a, made), a.value.shape)


def average_pool_backward(l: Lowering, a: Args) -> Any:
    grad, shape = l.parameter(a.grad_output, result_type(a)), [int(n) for n in a.value.shape]
    whole = shape if len(shape) == len(each_axis(a)) + 2 else [1, *shape]
    made = l.op("AvgPoolBackward", [with_batch(l, grad, a)], src_shape=whole, **average_settings(a, shape, grad.shape))
    return l.reshape(by_own_divisor(l, a, made), a.value.shape)


def upsample(mode: str) -> Any:
    def rule(l: Lowering, a: Args) -> Any:
        dtype = result_type(a)
        source = l.parameter(a.self, dtype)
        sizes = [int(n) for n in a.output_size]
        corners = bool(getattr(a, "align_corners", False))
        for given, extent in zip((a.scales_h, a.scales_w), zip(sizes, source.shape[2:])):
            if given is not None and given * extent[1] != extent[0]:
                raise Refused(f"a scale of {given} that is not the quotient of the sizes {extent[0]} and {extent[1]}")
        if mode == "nearest" and any(size % extent for size, extent in zip(sizes, source.shape[2:])):
            raise Refused("nearest by a factor that is not an integer, which torch rounds differently")
        return l.op("Interpolate", [source], mode=mode, sizes=sizes, data_format="NCX",
                    coordinate_transformation_mode="align_corners" if corners else "half_pixel")

    return rule
