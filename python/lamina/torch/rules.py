"""Rules of elementwise ops, reductions, casts and joins. A rule is called with the lowering and the node's arguments by name.
It adds ops and returns the node's tensor (a list if it has several), or raises Refused: then torch runs the node.

Types follow meta["val"]: operands are cast to the result's type, as torch's promotion does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional

import torch
from torch.fx import Node

from lamina.torch.lowering import Lowering
from lamina.torch.nodes import DTYPES, FLOATS, Args, Refused, dtype_of

NARROW = ("bf16", "f16")


def value_of(a: Args) -> torch.Tensor:
    return a.value[0] if isinstance(a.value, (list, tuple)) else a.value


def result_type(a: Args) -> str:
    dtype = dtype_of(value_of(a))
    if dtype not in FLOATS:
        raise Refused(f"a result of {dtype}")
    return dtype


def wide_type(dtype: str) -> str:
    """Returns the type in which torch computes values of type `dtype`."""
    return "f32" if dtype in NARROW else dtype


def give(a: Args, attributes: Mapping[str, Any]) -> dict:
    return {name: value(a) if callable(value) else value for name, value in attributes.items()}


@dataclass(frozen=True)
class Unary:
    kind: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    source: str = "self"

    def __call__(self, l: Lowering, a: Args) -> Any:
        return l.op(self.kind, [l.tensor(getattr(a, self.source), result_type(a))], **give(a, self.attributes))


def operand(l: Lowering, given: Any, dtype: str) -> Any:
    """Returns an operand of arithmetic; as in torch, a number is not rounded to 16 bits."""
    if not isinstance(given, (bool, int, float)):
        return l.tensor(given, dtype)
    return l.constant(float(given) if dtype in FLOATS else int(given), wide_type(dtype))


@dataclass(frozen=True)
class Binary:
    kind: str
    swapped: bool = False
    constant: Optional[float] = None  # the second operand, if torch's op has none

    def __call__(self, l: Lowering, a: Args) -> Any:
        dtype = dtype_of(value_of(a))
        left = l.tensor(a.self, dtype)
        if dtype == "boolean" and self.kind == "Multiply" and isinstance(a.other, Node):
            return full(l, l.op("LogicalAnd", [left, l.tensor(a.other, dtype)]), a)
        if dtype == "boolean":
            raise Refused("arithmetic of booleans")
        other = a.other if self.constant is None else self.constant
        alpha = getattr(a, "alpha", 1)
        if isinstance(other, (bool, int, float)):
            right = operand(l, other * alpha, dtype)
        elif alpha == 1:
            right = l.tensor(other, dtype)
        else:
            wide = wide_type(dtype)
            right = l.op("Multiply", [l.tensor(other, dtype), operand(l, alpha, dtype)], dtype=wide)
        made = l.op(self.kind, [right, left] if self.swapped else [left, right], dtype=dtype)
        return full(l, made, a)


@dataclass(frozen=True)
class Extreme:
    """Maximum, Minimum and Atan2, whose operands have one type."""

    kind: str

    def __call__(self, l: Lowering, a: Args) -> Any:
        dtype = dtype_of(value_of(a))
        return full(l, l.op(self.kind, [l.tensor(a.self, dtype), l.tensor(a.other, dtype)]), a)


def remainder(of_divisor: bool) -> Callable:
    """The remainder with the sign of the divisor, or of the dividend."""
    def rule(l: Lowering, a: Args) -> Any:
        dtype = result_type(a)
        is_number = isinstance(a.other, (bool, int, float))
        if is_number and dtype in NARROW:
            raise Refused(f"a divisor that is not rounded to {dtype}")
        left, right = l.tensor(a.self, dtype), operand(l, a.other, dtype)
        rest = l.op("Fmod", [left, right])
        if of_divisor:
            zero = l.constant(0.0, dtype)
            differ = l.op("NotEqual", [l.op("Less", [rest, zero]), l.op("Less", [right, zero])])
            moves = l.op("LogicalAnd", [differ, l.op("NotEqual", [rest, zero])])
            rest = l.op("Select", [moves, l.op("Add", [rest, right]), rest])
        return full(l, rest, a)

    return rule


def full(l: Lowering, tensor: Any, a: Args) -> Any:
    """Expands the tensor to torch's shape: a constant with equal elements was replaced by a scalar."""
    shape = [int(extent) for extent in a.value.shape]
    if list(tensor.shape) == shape:
        return tensor
    if math.prod(tensor.shape) == math.prod(shape):
        return l.reshape(tensor, shape)
    return l.op("Expand", [l.reshape(tensor, [1] * (len(shape) - len(tensor.shape)) + list(tensor.shape))], shape=shape)


@dataclass(frozen=True)
class Gradient:
    """kind(src or dst, diff_dst), by torch's argument names."""

    kind: str
    data: str
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, l: Lowering, a: Args) -> Any:
        dtype = result_type(a)
        return l.op(self.kind, [l.tensor(getattr(a, self.data), dtype), l.tensor(a.grad_output, dtype)], **give(a, self.attributes))


@dataclass(frozen=True)
class Reduce:
    kind: str

    def __call__(self, l: Lowering, a: Args) -> Any:
        source = l.tensor(a.self, result_type(a))
        dims = getattr(a, "dim", None)
        dims = [dims] if isinstance(dims, int) else list(dims or [])
        axes = [d % max(1, len(source.shape)) for d in dims] or list(range(len(source.shape)))
        if not source.shape:
            return l.op("Reorder", [source])  # for a scalar
        return l.op(self.kind, [source], axes=axes, keep_dims=bool(getattr(a, "keepdim", False)))


def floor(l: Lowering, x: Any) -> Any:
    whole = l.op("Trunc", [x])
    return l.op("Subtract", [whole, l.cast(l.op("Greater", [whole, x]), x.dtype)])


def reorder(l: Lowering, a: Args) -> Any:
    return l.op("Reorder", [l.tensor(a.self)])


def copy(l: Lowering, a: Args) -> Any:
    """src with the shape and type of self."""
    source = l.tensor(a.src)
    dtype = dtype_of(a.value)
    source = l.op("Reorder", [source]) if source.dtype == dtype else l.cast(source, dtype)
    return source if tuple(source.shape) == tuple(a.value.shape) else l.op("Expand", [source], shape=[int(n) for n in a.value.shape])


def power(l: Lowering, a: Args) -> Any:
    if isinstance(a.exponent, Node):
        raise Refused("an exponent that is not a number")
    return l.op("Pow", [l.tensor(a.self, result_type(a))], beta=float(a.exponent))


def power_of_number(l: Lowering, a: Args) -> Any:
    """number^x = exp(x log(number)), in f64: an optimizer subtracts 0.999^step from 1."""
    dtype = result_type(a)
    if not 0 < a.self < math.inf:
        raise Refused(f"powers of {a.self}")
    if a.self == 1:
        return l.filled(1.0, a.value.shape, dtype)
    exponent = l.op("Multiply", [l.cast(l.tensor(a.exponent, dtype), "f64"), l.constant(math.log(a.self), "f64")])
    return l.cast(l.op("Exp", [exponent]), dtype)


def multiply_add(l: Lowering, a: Args) -> Any:
    """a * b + c. torch rounds once, this twice."""
    dtype = result_type(a)
    product = l.op("Multiply", [l.tensor(a.a, dtype), l.tensor(a.b, dtype)], dtype=wide_type(dtype))
    return full(l, l.op("Add", [product, l.tensor(a.c, dtype)], dtype=dtype), a)


def clamp(l: Lowering, a: Args) -> Any:
    low = getattr(a, "min", getattr(a, "min_val", None))
    high = getattr(a, "max", getattr(a, "max_val", None))
    if isinstance(low, Node) or isinstance(high, Node):
        raise Refused("a bound that is not a number")
    if dtype_of(a.value) not in FLOATS:
        return clamped_integers(l, l.tensor(a.self, dtype_of(a.value)), low, high)
    low, high = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    return l.op("Clamp", [l.tensor(a.self, result_type(a))], min=low, max=high)


def clamped_integers(l: Lowering, made: Any, low: Any, high: Any) -> Any:
    for kind, bound in (("Maximum", low), ("Minimum", high)):
        made = made if bound is None else l.op(kind, [made, l.constant(int(bound), made.dtype)])
    return made


def clamp_between(l: Lowering, a: Args) -> Any:
    """Clamp with bounds that are tensors."""
    return between(l, l.tensor(a.self, result_type(a)), a.min, a.max)


def between(l: Lowering, made: Any, low: Any, high: Any) -> Any:
    for kind, bound in (("Maximum", low), ("Minimum", high)):
        made = made if bound is None else l.op(kind, [made, l.tensor(bound, made.dtype)])
    return made


def select(l: Lowering, a: Args) -> Any:
    dtype, condition = dtype_of(a.value), l.tensor(a.condition)
    if condition.dtype != "boolean":
        raise Refused(f"a condition of {condition.dtype}")
    sides, shape = [l.tensor(a.self, dtype), l.tensor(a.other, dtype)], [int(n) for n in a.value.shape]
    if torch.broadcast_shapes(*(side.shape for side in sides)) != tuple(shape):
        sides[0] = l.op("Expand", [l.reshape(sides[0], [1] * (len(shape) - len(sides[0].shape)) + list(sides[0].shape))], shape=shape)
    return l.op("Select", [condition, *sides])


def concatenate(l: Lowering, a: Args) -> Any:
    dtype = dtype_of(a.value)
    parts = [part for part in a.tensors if tuple(part.meta["val"].shape) != (0,)]
    if not parts:
        return l.filled(0.0, [0], dtype)
    if len(parts) == 1:
        return l.op("Concat", [l.parameter(parts[0], dtype)], axis=a.dim)
    return l.concatenated([l.parameter(part, dtype) for part in parts], a.dim)


def stack(l: Lowering, a: Args) -> Any:
    axis = a.dim % len(a.value.shape)
    parts = [l.parameter(part, dtype_of(a.value)) for part in a.tensors]
    return l.concatenated([l.reshape(part, [*part.shape[:axis], 1, *part.shape[axis:]]) for part in parts], axis)


@dataclass(frozen=True)
class Compare:
    """kind(self, other) in the type in which torch compares them; with `negated`, its negation."""

    kind: str

    def __call__(self, l: Lowering, a: Args) -> Any:
        given = [t.meta["val"] if isinstance(t, Node) else t for t in (a.self, a.other)]
        common = torch.result_type(*given)
        if common not in DTYPES:
            raise Refused(f"a comparison of {common}")
        return full(l, l.op(self.kind, [l.tensor(a.self, DTYPES[common]), l.tensor(a.other, DTYPES[common])]), a)


@dataclass(frozen=True)
class Logical:
    kind: str
    takes_numbers: bool = False  # numbers other than 0 are true; else operands are boolean

    def __call__(self, l: Lowering, a: Args) -> Any:
        given = [a.self, a.other] if hasattr(a, "other") else [a.self]
        if not all(isinstance(node, Node) and (self.takes_numbers or node.meta["val"].dtype == torch.bool) for node in given):
            raise Refused("operands that are not boolean")
        return l.op(self.kind, [truth(l, l._port_or_inner(node)) for node in given])


def truth(l: Lowering, tensor: Any) -> Any:
    return tensor if tensor.dtype == "boolean" else l.op("NotEqual", [tensor, l.constant(0, tensor.dtype)])


def any_of(l: Lowering, a: Args) -> Any:
    """Whether an element of each row is not 0."""
    source = l._port_or_inner(a.self)
    dims = getattr(a, "dim", None)
    dims = [dims] if isinstance(dims, int) else list(dims or range(len(source.shape)))
    if not source.shape or 0 in source.shape:
        raise Refused("a scalar, or no elements")
    made = l.op("ReduceMax", [l.cast(truth(l, source), "f32")], axes=dims, keep_dims=bool(getattr(a, "keepdim", False)))
    return l.op("NotEqual", [made, l.constant(0.0, "f32")])


def silu_backward(l: Lowering, a: Args) -> Any:
    """grad * s * (1 + x * (1 - s)), s = sigmoid(x)."""
    dtype = result_type(a)
    wide = wide_type(dtype)
    x, grad, one = l.tensor(a.self, dtype), l.tensor(a.grad_output, dtype), l.constant(1.0, wide)
    s = l.op("Sigmoid", [l.cast(x, wide)])
    rest = l.op("Add", [l.op("Multiply", [x, l.op("Subtract", [one, s])], dtype=wide), one])
    return l.op("Multiply", [l.op("Multiply", [grad, s], dtype=wide), rest], dtype=dtype)


def threshold(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    x = l.tensor(a.self, dtype)
    low, value = l.constant(float(a.threshold), dtype), l.constant(float(a.argument("value")), dtype)
    return l.op("Select", [l.op("LessEqual", [x, low]), value, x])


def threshold_backward(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    x, grad = l.tensor(a.self, dtype), l.tensor(a.grad_output, dtype)
    if a.threshold == 0:
        return l.op("ReLUBackward", [x, grad], use_dst=False)
    return l.op("Select", [l.op("LessEqual", [x, l.constant(float(a.threshold), dtype)]), l.constant(0.0, dtype), grad])


def above_threshold(l: Lowering, a: Args, x: Any) -> Any:
    """Where torch's softplus returns x."""
    wide = wide_type(x.dtype)
    return l.op("Greater", [l.op("Multiply", [x, l.constant(float(a.beta), wide)], dtype=wide), l.constant(float(a.threshold), wide)])


def softplus(l: Lowering, a: Args) -> Any:
    x = l.tensor(a.self, result_type(a))
    return l.op("Select", [above_threshold(l, a, x), x, l.op("SoftPlus", [x], beta=float(a.beta))])


def softplus_backward(l: Lowering, a: Args) -> Any:
    x, grad = (l.tensor(t, result_type(a)) for t in (a.self, a.grad_output))
    return l.op("Select", [above_threshold(l, a, x), grad, l.op("SoftPlusBackward", [x, grad], beta=float(a.beta))])


def elu(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    if a.input_scale != 1:
        raise Refused(f"input_scale {a.input_scale}")
    made = l.op("Elu", [l.tensor(a.self, dtype)], alpha=float(a.alpha))
    return made if a.scale == 1 else l.op("Multiply", [made, operand(l, a.scale, dtype)], dtype=dtype)


def elu_backward(l: Lowering, a: Args) -> Any:
    if a.input_scale != 1 or (a.scale != 1 and a.is_result):
        raise Refused(f"scale {a.scale}, input_scale {a.input_scale}")
    dtype = result_type(a)
    grad = l.tensor(a.grad_output, dtype)
    grad = grad if a.scale == 1 else l.op("Multiply", [grad, operand(l, a.scale, dtype)], dtype=dtype)
    return l.op("EluBackward", [l.tensor(a.self_or_result, dtype), grad], alpha=float(a.alpha), use_dst=bool(a.is_result))


def leaky_relu_backward(l: Lowering, a: Args) -> Any:
    """grad where x > 0, else slope * grad; if x is the forward result, it has the sign of the forward input."""
    dtype = result_type(a)
    grad, x = l.tensor(a.grad_output, dtype), l.tensor(a.self, dtype)
    less = l.op("Multiply", [grad, operand(l, a.negative_slope, dtype)], dtype=dtype)
    return l.op("Select", [l.op("Greater", [x, l.constant(0.0, dtype)]), grad, less])


def prelu(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    return l.op("PReLU", [l.tensor(a.self, dtype), l.tensor(a.weight, dtype)], per_channel_broadcast=False, data_format="NCX")


def prelu_backward(l: Lowering, a: Args) -> Any:
    """Gradients of the data and of the slope, the latter not yet summed."""
    dtype = result_type(a)
    grad, x, slope = (l.tensor(t, dtype) for t in (a.grad_output, a.self, a.weight))
    above, zero = l.op("Greater", [x, l.constant(0.0, dtype)]), l.constant(0.0, dtype)
    return [l.op("Select", [above, grad, l.op("Multiply", [grad, slope])]), l.op("Select", [above, zero, l.op("Multiply", [grad, x])])]


def dropout_backward(l: Lowering, a: Args) -> Any:
    """grad * mask * scale."""
    dtype = result_type(a)
    wide = wide_type(dtype)
    kept = l.op("Multiply", [l.cast(l.tensor(a.mask), wide), l.constant(float(a.scale), wide)])
    return l.op("Multiply", [l.tensor(a.grad_output, dtype), kept], dtype=dtype)


def with_an_axis(l: Lowering, tensor: Any) -> Any:
    return tensor if tensor.shape else l.reshape(tensor, [1])


def softmax(kind: str, mode: str = "none") -> Callable:
    def rule(l: Lowering, a: Args) -> Any:
        dtype = result_type(a)
        source = with_an_axis(l, l.parameter(a.self, dtype_of(a.self.meta["val"])))
        if kind == "LogSoftmax":
            return l.reshape(l.op(kind, [l.cast(source, dtype)], axis=a.dim), a.value.shape)
        source = source if source.dtype in FLOATS and "f64" not in (source.dtype, dtype) else l.cast(source, dtype)
        return l.reshape(l.op(kind, [source], dtype=dtype, outputs=(True, False), axis=a.dim, mode=mode)[0], a.value.shape)

    return rule


def softmax_backward(kind: str) -> Callable:
    def rule(l: Lowering, a: Args) -> Any:
        dtype = dtype_of(a.output.meta["val"])
        made = l.op(kind, [with_an_axis(l, l.parameter(t, dtype)) for t in (a.grad_output, a.output)], axis=a.dim)
        return l.reshape(l.cast(made, result_type(a)), a.value.shape)

    return rule


def nll_loss(l: Lowering, a: Args) -> Any:
    """The negated and reduced value of each row at its target, and the number of rows that count. Targets outside the classes
    are an error at run time, as in torch: they are mapped to an index past the end, which Gather reports."""
    dtype = result_type(a)
    shape = a.self.meta["val"].shape
    if len(shape) != 2 or 0 in shape:
        raise Refused("a shape other than [rows, classes]")
    rows, classes = (int(extent) for extent in shape)
    if rows * classes > 2**31 - 1:
        raise Refused("more than 2^31 - 1 elements")
    wide = wide_type(dtype)
    target, number = l.cast(l.tensor(a.target), "f64"), lambda value: l.constant(float(value), "f64")
    counts = l.op("NotEqual", [target, number(a.ignore_index)])
    target = l.op("Select", [counts, target, l.filled(0.0, [rows], "f64")])
    known = l.op("LogicalAnd", [l.op("GreaterEqual", [target, number(0)]), l.op("Less", [target, number(classes)])])
    place = l.op("Add", [l.op("Multiply", [l.cast(l.op("GenIndex", [target], axis=0), "f64"), number(classes)]), target])
    place = l.cast(l.op("Select", [known, place, l.filled(rows * classes, [rows], "f64")]), "s32")
    found = l.op("Gather", [l.reshape(l.tensor(a.self, dtype), [rows * classes]), place], axis=0)
    counted = class_weights(l, a, counts, target, classes, wide)
    losses = l.op("Multiply", [found, l.constant(-1.0, wide)], dtype=wide)
    losses = losses if a.weight is None else l.op("Multiply", [losses, counted])
    losses = l.op("Select", [counts, losses, l.filled(0.0, [rows], wide)])
    count = l.op("ReduceSum", [counted], axes=[0])
    if a.reduction == 0:  # torch returns 0 here
        none = l.op("Multiply", [count, l.constant(0.0, wide)]) if 1 in l.used(a.node) else None
        return [l.cast(losses, dtype), none if none is None else l.cast(none, dtype_of(a.value[1]))]
    total = l.op("ReduceSum", [losses], axes=[0])
    made = l.op("Divide", [total, count]) if a.reduction == 1 else total
    return [l.cast(made, dtype), l.cast(count, dtype_of(a.value[1]))]


def class_weights(l: Lowering, a: Args, counts: Any, target: Any, classes: int, wide: str) -> Any:
    """The weight of each row: that of its class, 1 if classes have none, 0 in ignored rows. Targets in f64; an illegal one is an
    error at run time."""
    if a.weight is None:
        return l.cast(counts, wide)
    number = lambda value: l.constant(float(value), "f64")
    known = l.op("LogicalAnd", [l.op("GreaterEqual", [target, number(0)]), l.op("Less", [target, number(classes)])])
    target = l.op("Select", [counts, l.op("Select", [known, target, number(classes)]), number(0)])
    found = l.op("Gather", [l.parameter(a.weight, wide), l.cast(target, "s32")], axis=0)
    return l.op("Select", [counts, found, l.filled(0.0, found.shape, wide)])


def nll_loss_backward(l: Lowering, a: Args) -> Any:
    """-grad (for a mean, divided by the total weight) at each row's target; 0 elsewhere and in ignored rows."""
    dtype = result_type(a)
    if len(a.value.shape) != 2:
        raise Refused("a shape other than [rows, classes]")
    wide = wide_type(dtype)
    target, rows = l.tensor(a.target), a.value.shape[0]
    counts = l.op("NotEqual", [target, l.constant(float(a.ignore_index), target.dtype)])
    slope = l.op("Multiply", [l.tensor(a.grad_output, wide), l.constant(-1.0, wide)])
    if a.reduction == 1:
        slope = l.op("Divide", [slope, l.tensor(a.total_weight, wide)])
    if a.weight is not None:
        slope = l.op("Multiply", [slope, class_weights(l, a, counts, l.cast(target, "f64"), int(a.value.shape[1]), wide)])
    slope = l.reshape(l.op("Select", [counts, slope, l.filled(0.0, [rows], wide)]), [rows, 1])  # infinite if no row counts
    column = l.op("GenIndex", [l.tensor(a.self)], axis=1)
    here = l.op("Equal", [column, l.reshape(l.cast(target, "s32"), [rows, 1])])
    return l.op("Multiply", [l.cast(here, wide), slope], dtype=dtype)
