"""Rules for functions that are a few ops: rounding, quotients with a rounding mode, the error function, sums of integers."""

from __future__ import annotations

import math
from typing import Any, Callable

from lamina.torch.lowering import Lowering
from lamina.torch.nodes import FLOATS, Args, Refused, dtype_of
from lamina.torch.rules import Reduce, floor, full, operand, result_type, wide_type
from lamina.torch.rules import remainder as remainder_of_floats
from lamina.torch.rules_index import owned, sliced
from lamina.torch.rules_order import bound_of, divided_integers, remainder_of_integers
from lamina.torch.rules_order import floor_divide as floor_divide_integers


def relu(l: Lowering, a: Args) -> Any:
    x = l.tensor(a.self)
    return l.op("ReLU", [x]) if x.dtype in FLOATS else l.op("Maximum", [x, l.constant(0, x.dtype)])


def ceil(l: Lowering, x: Any) -> Any:
    whole = l.op("Trunc", [x])
    return l.op("Add", [whole, l.cast(l.op("Less", [whole, x]), x.dtype)])


def rounded(function: Callable) -> Callable:
    """floor or ceil; integers are returned as they are."""
    def rule(l: Lowering, a: Args) -> Any:
        dtype = dtype_of(a.value)
        return function(l, l.tensor(a.self, dtype)) if dtype in FLOATS else l.op("Reorder", [l.tensor(a.self)])

    return rule


def remainder(of_divisor: bool) -> Callable:
    of_floats = remainder_of_floats(of_divisor)
    return lambda l, a: of_floats(l, a) if dtype_of(a.value) in FLOATS else remainder_of_integers(l, a, of_divisor)


def divided(l: Lowering, a: Args) -> Any:
    """A quotient, whole if rounding_mode is "trunc" or "floor"."""
    if dtype_of(a.value) not in FLOATS:
        return divided_integers(l, a)[0] if a.rounding_mode == "trunc" else floor_divide_integers(l, a)
    return quotient(l, a, a.rounding_mode)


def floor_divide(l: Lowering, a: Args) -> Any:
    return quotient(l, a, "floor") if dtype_of(a.value) in FLOATS else floor_divide_integers(l, a)


def quotient(l: Lowering, a: Args, mode: Any) -> Any:
    """As torch, rounds 16-bit floats after each step, unless the divisor is a number."""
    dtype = result_type(a)
    x, y = l.tensor(a.self, dtype), operand(l, a.other, dtype)
    steps = Steps(l, y.dtype)
    x = steps.widened(x)
    y = steps.widened(y)
    made = floored_quotient(steps, x, y) if mode == "floor" else steps("Divide", x, y)
    return full(l, l.cast(l.op("Trunc", [made]) if mode == "trunc" else made, dtype), a)


class Steps:
    """Adds ops whose results are rounded to `dtype` one by one. They are computed in f32 if it is narrower: a step of a fused
    loop does not round by itself."""

    def __init__(self, l: Lowering, dtype: str) -> None:
        self.l, self.dtype, self.wide = l, dtype, wide_type(dtype)

    def widened(self, tensor: Any) -> Any:
        return self.l.cast(tensor, self.wide)

    def __call__(self, kind: str, *inputs: Any) -> Any:
        return self.widened(self.l.cast(self.l.op(kind, list(inputs)), self.dtype))

    def number(self, value: float) -> Any:
        return self.l.constant(value, self.wide)


def floored_quotient(steps: Steps, x: Any, y: Any) -> Any:
    """The largest whole number that is not above x / y. Divides x less its remainder, since x / y may be rounded up to a whole
    number; the rounded quotient of a multiple is the nearest whole number. Of y = 0 it is x / y."""
    l, zero = steps.l, steps.number(0.0)
    rest, plain = steps("Fmod", x, y), steps("Divide", x, y)
    differ = l.op("NotEqual", [l.op("Less", [rest, zero]), l.op("Less", [y, zero])])
    below = l.op("LogicalAnd", [differ, l.op("NotEqual", [rest, zero])])
    whole = steps("Subtract", steps("Divide", steps("Subtract", x, rest), y), l.cast(below, steps.wide))
    down = floor(l, whole)
    down = steps("Add", down, l.cast(l.op("Greater", [l.op("Subtract", [whole, down]), steps.number(0.5)]), steps.wide))
    signed = l.op("Multiply", [l.op("Sign", [plain]), zero])  # the zero with the quotient's sign
    return l.op("Select", [l.op("Equal", [y, zero]), plain, l.op("Select", [l.op("Equal", [whole, zero]), signed, down])])


def is_nan(l: Lowering, a: Args) -> Any:
    x = l.tensor(a.self)
    return l.op("NotEqual", [x, x]) if x.dtype in FLOATS else l.filled(0.0, x.shape, "boolean")


def is_infinite(l: Lowering, a: Args) -> Any:
    x = l.tensor(a.self)
    if x.dtype not in FLOATS:
        return l.filled(0.0, x.shape, "boolean")
    return l.op("Equal", [l.op("Abs", [x]), l.constant(math.inf, x.dtype)])


MOST_COUNTED = 1 << 53  # the integers below are exact in f64


def total(l: Lowering, a: Args) -> Any:
    """Sums; those of integers in f64 where that is exact, else the last of the running sums."""
    if dtype_of(a.value) in FLOATS:
        return Reduce("ReduceSum")(l, a)
    if a.self.meta["val"].dim() == 0:
        return owned(l, l.cast(l.tensor(a.self), dtype_of(a.value)))
    source, dims = l.parameter(a.self, dtype_of(a.self.meta["val"])), getattr(a, "dim", None)
    dims = [dims] if isinstance(dims, int) else list(dims or range(len(source.shape)))
    bound = 1 if source.dtype == "boolean" else bound_of(l, a.self)
    if bound is None or bound * max(1, math.prod(source.shape)) > MOST_COUNTED:
        return last_running_sum(l, l.cast(source, dtype_of(a.value)), dims, a.value.shape)
    made = l.op("ReduceSum", [l.cast(source, "f64")], axes=dims, keep_dims=False)
    return l.reshape(l.cast(made, dtype_of(a.value)), a.value.shape)


def last_running_sum(l: Lowering, source: Any, dims: list, shape: Any) -> Any:
    count = math.prod(source.shape[d] for d in dims)
    if 0 in source.shape:
        raise Refused("a sum without elements")
    among = [d % len(source.shape) for d in dims]
    order = [d for d in range(len(source.shape)) if d not in among] + among
    moved = source if order == sorted(order) else l.op("StaticTranspose", [source], order=order)
    sums = l.op("CumSum", [l.reshape(moved, [math.prod(source.shape) // count, count])], axis=1)
    return l.reshape(sliced(l, sums, 1, count - 1, count), shape)


SERIES_OF_ERF = [(-1) ** i * 2 / (math.sqrt(math.pi) * math.factorial(i) * (2 * i + 1)) for i in range(12)]


def erf(l: Lowering, a: Args) -> Any:
    """1 - erfc(x), which loses digits near 0: the Taylor series there."""
    dtype = result_type(a)
    x = l.cast(l.tensor(a.self, dtype), wide_type(dtype))
    number = lambda value: l.constant(value, x.dtype)
    square, made = l.op("Multiply", [x, x]), number(SERIES_OF_ERF[-1])
    for factor in reversed(SERIES_OF_ERF[:-1]):
        made = l.op("Add", [l.op("Multiply", [square, made]), number(factor)])
    near = l.op("Less", [l.op("Abs", [x]), number(0.5)])
    return l.cast(l.op("Select", [near, l.op("Multiply", [x, made]), l.op("Subtract", [number(1.0), l.op("Erfc", [x])])]), dtype)
