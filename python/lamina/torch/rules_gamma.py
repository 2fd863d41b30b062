"""Rules for the logarithm of the gamma function and its derivatives. They are series, computed in f64 for narrower types."""

from __future__ import annotations

import math
from typing import Any

from lamina.torch.lowering import Lowering
from lamina.torch.nodes import Args, Refused
from lamina.torch.rules import result_type

BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6]  # B(2), B(4), ...
SHIFTS = 8  # smaller arguments are shifted up by this, where the asymptotic series is accurate


class Series:
    """Adds ops of f64. `x` is the argument, `up` the larger of x and 1 - x, and `at` is `up` or, if that is small, up + SHIFTS."""

    def __init__(self, l: Lowering, a: Args) -> None:
        dtype = result_type(a)
        if dtype == "f64":
            raise Refused("a series that is not accurate enough for f64")
        self.l, self.dtype = l, dtype
        self.x = l.cast(l.tensor(a.self, dtype), "f64")
        self.below = self("Less", self.x, 0.5)
        self.up = self("Select", self.below, self("Subtract", 1.0, self.x), self.x)
        self.is_small = self("Less", self.up, float(SHIFTS))
        self.at = self("Select", self.is_small, self("Add", self.up, float(SHIFTS)), self.up)
        self.inverse = self("Reciprocal", self.at)
        self.square = self("Multiply", self.inverse, self.inverse)

    def __call__(self, kind: str, *inputs: Any) -> Any:
        return self.l.op(kind, [self.l.constant(i, "f64") if isinstance(i, float) else i for i in inputs])

    def polynomial(self, factors: list) -> Any:
        """factors[0] + factors[1] * square + factors[2] * square^2 + ..."""
        made = factors[-1]
        for factor in reversed(factors[:-1]):
            made = self("Add", self("Multiply", self.square, made), factor)
        return made

    def shifted(self, term: Any) -> Any:
        """The sum of term(up + i) for all i below SHIFTS; 0 if up is large."""
        made = term(self.up)
        for i in range(1, SHIFTS):
            made = self("Add", made, term(self("Add", self.up, float(i))))
        return self("Select", self.is_small, made, 0.0)

    def angle(self) -> Any:
        """pi times the distance of x from the nearest integer."""
        return self("Multiply", self("Subtract", self.x, self("Round", self.x)), math.pi)

    def result(self, made: Any) -> Any:
        return self.l.cast(made, self.dtype)


def log_gamma(l: Lowering, a: Args) -> Any:
    """Stirling's series; for x < 0.5 log(pi / |sin(pi x)|) - lgamma(1 - x)."""
    s = Series(l, a)
    product = s.up
    for i in range(1, SHIFTS):
        product = s("Multiply", product, s("Add", s.up, float(i)))
    series = s.polynomial([b / ((2 * n + 2) * (2 * n + 1)) for n, b in enumerate(BERNOULLI)])
    made = s("Subtract", s("Multiply", s("Subtract", s.at, 0.5), s("Log", s.at)), s.at)
    made = s("Add", s("Add", made, 0.5 * math.log(2 * math.pi)), s("Multiply", s.inverse, series))
    made = s("Subtract", made, s("Log", s("Select", s.is_small, product, 1.0)))
    made = s("Select", s("Equal", s.up, math.inf), math.inf, made)
    mirrored = s("Subtract", s("Log", s("Divide", math.pi, s("Abs", s("Sin", s.angle())))), made)
    mirrored = s("Select", s("Equal", s.x, -math.inf), math.inf, mirrored)
    return s.result(s("Select", s.below, mirrored, made))


def digamma(l: Lowering, a: Args) -> Any:
    """For x < 0.5 digamma(1 - x) - pi / tan(pi x). torch returns the opposite infinity at a zero, and NaN at other poles."""
    s = Series(l, a)
    series = s("Multiply", s.square, s.polynomial([b / (2 * n + 2) for n, b in enumerate(BERNOULLI)]))
    made = s("Subtract", s("Subtract", s("Log", s.at), s("Multiply", s.inverse, 0.5)), series)
    made = s("Subtract", made, s.shifted(lambda at: s("Reciprocal", at)))
    angle = s.angle()
    slope = s("Divide", s("Multiply", s("Cos", angle), math.pi), s("Sin", angle))
    made = s("Select", s.below, s("Subtract", made, slope), made)
    is_pole = s("LogicalAnd", s("LessEqual", s.x, 0.0), s("Equal", s.x, s("Round", s.x)))
    at_pole = s("Select", s("Less", s.x, 0.0), math.nan, s("Multiply", s("Reciprocal", s.x), -1.0))
    return s.result(s("Select", is_pole, at_pole, made))


def polygamma(l: Lowering, a: Args) -> Any:
    """The derivative of digamma; for x < 0.5 (pi / sin(pi x))^2 - trigamma(1 - x)."""
    if a.n != 1:
        raise Refused(f"derivative {a.n} of digamma")
    s = Series(l, a)
    series = s("Multiply", s("Multiply", s.square, s.inverse), s.polynomial(BERNOULLI))
    made = s("Add", s("Add", s.inverse, s("Multiply", s.square, 0.5)), series)
    made = s("Add", made, s.shifted(lambda at: s("Square", s("Reciprocal", at))))
    mirrored = s("Subtract", s("Square", s("Divide", math.pi, s("Sin", s.angle()))), made)
    return s.result(s("Select", s.below, mirrored, made))
