"""Rules for quantisation. A quantised product is Dequantize, product, Quantize, which lamina computes in integers."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional

import numpy
from onnx import TensorProto

from lamina.onnx import types
from lamina.onnx.casts import to_type
from lamina.onnx.node import Node, Unfit
from lamina.onnx.windows import convolved

_QUANTIZED = ("s8", "u8")
_DEQUANTIZED = ("s8", "u8", "s4", "u4")
_LARGEST_PRODUCT = 255 * 255  # of two integers of 8 bits minus zero points


def _per(node: Node, x: Any, scale: Any) -> tuple:
    """Returns qtype, axis and number of scales."""
    count = 1
    for extent in node.shape(scale):
        count *= extent
    if count == 1:
        return "per_tensor", 1, 1
    axis = node.axis(x, default=1)
    if node.rank(scale) != 1 or count != node.shape(x)[axis]:
        raise Unfit(f"scales of shape {node.shape(scale)}")
    return "per_channel", axis, count


def _known_steps(node: Node, scale: Any, zero: Optional[Any]) -> Optional[dict]:
    """Returns scales and zero points as attributes, if they are known. Only with these are products computed in integers."""
    scales, zeros = node.importer.value_of(scale), None if zero is None else node.importer.value_of(zero)
    if scales is None or scale.dtype not in ("f16", "f32") or (zero is not None and zeros is None):
        return None
    scales = scales.astype("float32").reshape(-1)
    if not numpy.all(numpy.isfinite(scales) & (scales != 0)):
        return None
    zeros = numpy.zeros(scales.size, "int64") if zeros is None else numpy.broadcast_to(zeros.reshape(-1), scales.size)
    return {"scales": [float(v) for v in scales], "zps": [int(v) for v in zeros]}


def quantized(node: Node, x: Any, scale: Any, zero: Optional[Any], dtype: str) -> Any:
    if dtype not in _QUANTIZED:
        raise Unfit(f"elements of {dtype}, allowed is {', '.join(_QUANTIZED)}")
    node.floating(x, scale)
    known = _known_steps(node, scale, zero)
    x, scale = node.cast(x, "f32"), node.cast(scale, "f32")
    qtype, axis, count = _per(node, x, scale)
    if zero is None or _is_even(node, zero):
        if known is not None:
            return node.op("Quantize", [x], dtype=dtype, qtype=qtype, axis=axis, **known)
        inputs = [x, node.reshape(scale, [count])] + ([node.reshape(zero, [count])] if zero is not None else [])
        return node.op("DynamicQuantize", inputs, dtype=dtype, qtype=qtype, axis=axis)
    along = _along(node, x, scale)
    if known is not None:  # as constants, so that a convolution applies all of it to its result
        scale, zero = (node.array(numpy.reshape(numpy.asarray(known[name], "float32"), along), "f32") for name in ("scales", "zps"))
    else:
        scale, zero = node.reshape(scale, along), _integers(node, node.reshape(zero, along))
    steps = node.op("Round", [node.op("Divide", [x, scale])])
    return node.op("Quantize", [node.op("Add", [steps, zero])], dtype=dtype, scales=[1.0], zps=[0])


def _integers(node: Node, x: Any) -> Any:
    """Returns the integers of s8 or u8 as f32."""
    return node.op("Dequantize", [x], scales=[1.0], zps=[0])


def _is_even(node: Node, zero: Any) -> bool:
    """ONNX rounds before it adds the zero point, lamina's ops after it: the same if it is even."""
    value = node.importer.value_of(zero)
    return value is not None and not (value % 2).any()


def dequantized(node: Node, x: Any, scale: Any, zero: Optional[Any], dtype: str = "f32") -> Any:
    node.floating(scale)
    if x.dtype not in _DEQUANTIZED:
        raise Unfit(f"elements of {x.dtype}, allowed is {', '.join(_DEQUANTIZED)}")
    qtype, axis, count = _per(node, x, scale)
    known = _known_steps(node, scale, zero) if x.dtype in _QUANTIZED else None
    if known is not None:
        return node.cast(node.op("Dequantize", [x], qtype=qtype, axis=axis, **known), dtype)
    inputs = [x, node.reshape(node.cast(scale, "f32"), [count])] + ([node.reshape(zero, [count])] if zero is not None else [])
    return node.cast(node.op("DynamicDequantize", inputs, qtype=qtype, axis=axis), dtype)


def quantize(node: Node) -> Any:
    x, scale = node.tensor(0), node.tensor(1)
    zero = node.tensor(2) if node.has(2) else None
    node.floating(x, scale)
    number = node.importer.number_of(zero) if zero is not None else node.attribute("output_dtype", 0) or TensorProto.UINT8
    size, precision = node.attribute("block_size", 0), _precision(node, scale)
    if types.held_in(number) in _QUANTIZED and types.is_own(number) and precision == "f32" and not size:
        return quantized(node, x, scale, zero, types.held_in(number))
    shape, along = _blocks(node, x, size) if size else (node.shape(x), _along(node, x, scale))
    steps = node.op("Divide", [node.reshape(node.cast(x, precision), shape), node.reshape(node.cast(scale, precision), along)])
    zero = node.reshape(zero, along) if zero is not None else None
    return node.reshape(_of_steps(node, node.cast(steps, "f32"), zero, number), node.shape(x))


def _precision(node: Node, scale: Any) -> str:
    """Returns the type in which the quotient is computed."""
    asked = node.attribute("precision", 0)
    return types.held_in(asked) if asked else scale.dtype


def _along(node: Node, x: Any, scale: Any) -> list:
    """Returns the shape in which scales broadcast to x."""
    _, axis, count = _per(node, x, scale)
    return [count if count > 1 and i == axis else 1 for i in range(node.rank(x))]


def _of_steps(node: Node, steps: Any, zero: Optional[Any], number: int) -> Any:
    """Returns quotients as the quantised type: integers are rounded before the zero point is added."""
    shift = None if zero is None or _is_zero(node, zero) else node.cast(zero, "f32")
    if types.is_float(number):
        steps = steps if shift is None else node.op("Add", [steps, shift])
        return to_type(node, steps, number, bool(node.attribute("saturate", 1)))
    limits, steps = types.limits_of(number), node.op("Round", [steps])
    steps = steps if shift is None else node.op("Add", [steps, shift])
    steps = node.op("Clamp", [steps], min=float(limits.min), max=float(limits.max))
    return node.importer.as_held(node.cast(steps, types.held_in(number)), number)


def _is_zero(node: Node, zero: Any) -> bool:
    value = node.importer.value_of(zero)
    return value is not None and not value.any()


def _blocks(node: Node, x: Any, size: int) -> tuple:
    """Returns the shapes of x and of its scales with the axis divided into blocks."""
    axis, shape = node.axis(x, default=1), node.shape(x)
    if shape[axis] % size:
        raise Unfit(f"blocks of {size} along {shape[axis]} elements")
    count = shape[axis] // size
    return shape[:axis] + [count, size] + shape[axis + 1:], shape[:axis] + [count, 1] + shape[axis + 1:]


def dequantize(node: Node) -> Any:
    x, scale = node.tensor(0, packed=True), node.tensor(1)
    zero = node.tensor(2, packed=True) if node.has(2) else None
    node.floating(scale)
    asked = node.attribute("output_dtype", 0)
    dtype, size = types.held_in(asked) if asked else scale.dtype, node.attribute("block_size", 0)
    if x.dtype not in _DEQUANTIZED:
        return node.cast(_by_steps(node, x, scale, zero, size), dtype)
    return node.cast(_by_blocks(node, x, scale, zero, size) if size else dequantized(node, x, scale, zero, "f32"), dtype)


def _by_steps(node: Node, x: Any, scale: Any, zero: Optional[Any], size: int) -> Any:
    """Elements of any type: (x - zero) * scale in f32, where integers of up to 24 bits are exact."""
    shape, along = _blocks(node, x, size) if size else (node.shape(x), _along(node, x, scale))
    made = node.reshape(node.cast(x, "f32"), shape)
    if zero is not None and not _is_zero(node, zero):
        made = node.op("Subtract", [made, node.reshape(node.cast(zero, "f32"), along)])
    return node.reshape(node.op("Multiply", [made, node.reshape(node.cast(scale, "f32"), along)]), node.shape(x))


def _by_blocks(node: Node, x: Any, scale: Any, zero: Optional[Any], size: int) -> Any:
    _blocks(node, x, size)
    group = [1] * node.rank(x)
    group[node.axis(x, default=1)] = size
    return node.op("DynamicDequantize", [x, scale, *([] if zero is None else [zero])], qtype="per_group", group_shape=group)


def quantized_product(product: Callable, output_axis: int) -> Callable:
    """QLinearMatMul and QLinearConv: factors with scales and zero points, a bias of s32 in the product of both scales."""
    def rule(node: Node) -> Any:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (node.tensor(i) for i in range(8))
        a_scale, b_scale, y_scale = (_of_f32(node, scale) for scale in (a_scale, b_scale, y_scale))
        left = dequantized(node, a, a_scale, a_zero)
        right = _weights(node, b, b_scale, b_zero, output_axis)
        inputs = [left, right]
        if node.has(8):
            bias = node.cast(node.tensor(8), "f32")
            inputs.append(node.op("Multiply", [bias, node.op("Multiply", [_one_axis(node, a_scale), _one_axis(node, b_scale)])]))
        return quantized(node, product(node, inputs), y_scale, y_zero, y_zero.dtype)

    return rule


def _of_f32(node: Node, scale: Any) -> Any:
    node.floating(scale)
    return node.cast(scale, "f32")


def _one_axis(node: Node, scale: Any) -> Any:
    return node.reshape(scale, [1]) if not node.shape(scale) else scale


def _weights(node: Node, b: Any, scale: Any, zero: Any, output_axis: int) -> Any:
    """Weights have one scale, or one for each column or output channel."""
    count = max(node.shape(scale)[-1:] or [1])
    if count == 1:
        return dequantized(node, b, scale, zero)
    axis = output_axis % node.rank(b)
    if node.rank(scale) != 1 or count != node.shape(b)[axis]:
        raise Unfit(f"scales of shape {node.shape(scale)}")
    known = _known_steps(node, scale, zero)
    if known is not None:
        return node.op("Dequantize", [b], qtype="per_channel", axis=axis, **known)
    inputs = [b, scale, zero if node.shape(zero) == [count] else node.expand(_one_axis(node, zero), [count])]
    return node.op("DynamicDequantize", inputs, qtype="per_channel", axis=axis)


def _uniform(node: Node, zero: Optional[Any]) -> Optional[int]:
    """Returns the zero point if it is known and the same for all entries."""
    if zero is None:
        return 0
    value = node.importer.value_of(zero)
    return int(value.flat[0]) if value is not None and value.size and (value == value.flat[0]).all() else None


def _without_zero(node: Node, x: Any, zero: Optional[Any], axis: int) -> Any:
    """Returns the integers x - zero as f32. `axis` has a zero point per entry, if there are several in one row."""
    known = _uniform(node, zero)
    if known is not None:
        return node.op("Dequantize", [x], scales=[1.0], zps=[known])
    shape = node.shape(zero)
    count = math.prod(shape)
    if count == 1 or len(shape) == 1:
        inputs = [x, node.array(numpy.ones(count), "f32"), node.reshape(zero, [count])]
        return node.op("DynamicDequantize", inputs, qtype="per_tensor" if count == 1 else "per_channel", axis=axis % node.rank(x))
    return node.op("Subtract", [node.cast(x, "f32"), node.cast(zero, "f32")])


def matrix_product_of_integers(node: Node, factors: list, zeros: list, wide: str) -> Any:
    """lamina computes products in integers if their zero points are known. One that data determine, of the first factor, is a
    correction: (a - z) b = (a - m) b + (m - z) * sum of the rows of b, m being the middle of the type."""
    (a, b), (za, zb) = factors, zeros
    known = _uniform(node, zb)
    if known is None or za is None or _uniform(node, za) is not None or math.prod(node.shape(za)) != 1:
        return node.op("MatMul", [node.cast(_without_zero(node, *each), wide) for each in ((a, za, -2), (b, zb, -1))])
    middle, value = 128 if a.dtype == "u8" else 0, node.importer.value_of(b)
    left, right = (node.cast(node.op("Dequantize", [x], scales=[1.0], zps=[zero]), wide) for x, zero in ((a, middle), (b, known)))
    made = node.op("MatMul", [left, right])
    axis, keep = max(node.rank(b) - 2, 0), node.rank(a) > 1 and node.rank(b) > 1
    if value is not None:
        sums = node.array((value.astype("int64") - known).sum(axis, keepdims=keep), wide)
    else:
        sums = node.op("ReduceSum", [node.cast(_without_zero(node, b, zb, -1), wide)], axes=[axis], keep_dims=keep)
    shift = node.op("Subtract", [node.scalar(middle, made), node.reshape(node.cast(za, wide), [1] * node.rank(made))])
    return node.op("Add", [made, node.op("Multiply", [sums, shift])])


def _convolution(node: Node, factors: list, zeros: list, wide: str) -> Any:
    return convolved(node, [node.cast(_without_zero(node, x, zero, 0), wide) for x, zero in zip(factors, zeros)])


def integer_product(product: Callable, terms: Callable) -> Callable:
    """MatMulInteger and ConvInteger. Sums below 2^24 are exact in f32. Others are rounded to f32 if only a Cast to floats reads
    them, and are computed in f64 if not."""
    def rule(node: Node) -> Any:
        factors = [node.tensor(i) for i in range(2)]
        for x in factors:
            if x.dtype not in _QUANTIZED:
                raise Unfit(f"elements of {x.dtype}, allowed is {', '.join(_QUANTIZED)}")
        zeros = [node.tensor(i) if node.has(i) else None for i in (2, 3)]
        is_small = terms(node.shape(factors[1])) * _LARGEST_PRODUCT < 1 << 24
        if not is_small and node.importer.is_only_cast_to_floats(node.proto.output[0]):
            return product(node, factors, zeros, "f32")
        return node.cast(product(node, factors, zeros, "f32" if is_small else "f64"), "s32")

    return rule


RULES = {
    "QuantizeLinear": quantize, "DequantizeLinear": dequantize, "QLinearConv": quantized_product(convolved, output_axis=0),
    "QLinearMatMul": quantized_product(lambda node, inputs: node.op("MatMul", inputs), output_axis=-1),
    "MatMulInteger": integer_product(matrix_product_of_integers, lambda of_right: of_right[-2:][0]),
    "ConvInteger": integer_product(_convolution, lambda of_weights: math.prod(of_weights[1:])),
}
