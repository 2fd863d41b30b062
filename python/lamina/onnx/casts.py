"""Casts, also to types that lamina lacks: small integers wrap around, and floats are rounded to the digits of their type. ONNX
defines the results for values outside of a type's range (Cast)."""

from __future__ import annotations

import math
from typing import Any

from lamina.onnx import types
from lamina.onnx.node import Node, Unfit
from lamina.onnx.types import FLOATS

_EIGHT_BITS = ("f8_e4m3", "f8_e5m2")
_MOST_BINADES = 8  # of a type that is rounded binade by binade


def cast(node: Node) -> Any:
    return to_type(node, node.tensor(0), node.attribute("to", 0), bool(node.attribute("saturate", 1)), node.attribute("round_mode", "up"))


def cast_like(node: Node) -> Any:
    return to_type(node, node.tensor(0), node.importer.number_of(node.tensor(1)), bool(node.attribute("saturate", 1)),
                   node.attribute("round_mode", "up"))


def to_type(node: Node, x: Any, number: int, saturate: bool = True, mode: str = "up") -> Any:
    """Returns x in the type of this number of ONNX. saturate: whether floats beyond the range of 8 bits become its ends. mode: the
    rounding to powers of two, of a type without digits."""
    dtype = types.held_in(number)
    if dtype is None:
        raise Unfit(f"a cast to {types.name_of(number)}")
    if node.importer.number_of(x) == number:
        return node.copy(x)
    if types.is_own(number) and dtype not in _EIGHT_BITS:
        return node.copy(x) if x.dtype == dtype else node.cast(x, dtype)
    if not types.is_float(number):
        made = _small_integer(node, x, number)
    elif types.limits_of(number).nmant == 0:
        made = _power_of_two(node, node.cast(x, "f64"), types.limits_of(number), saturate, mode)
    else:
        made = _small_float(node, x, number, saturate)
    return node.importer.as_held(node.cast(made, dtype), number)


def bit_cast(node: Node) -> Any:
    x, number = node.tensor(0), node.attribute("to", 0)
    dtype = types.held_in(number)
    if dtype is None or not types.is_own(number) or x.id in node.importer.held:
        raise Unfit(f"bits of {types.name_of(node.importer.number_of(x))} as {types.name_of(number)}")
    return node.copy(x) if x.dtype == dtype else node.op("BitCast", [x], dtype=dtype)


def _small_integer(node: Node, x: Any, number: int) -> Any:
    """The low bits of the integer, as an integer of 32 bits."""
    limits = types.limits_of(number)
    low = node.cast(x, "s32")
    low = node.op("BitwiseAnd", [low, node.scalar(limits.max - limits.min, low)])
    if not limits.min:
        return low
    half = node.scalar(-limits.min, low)
    return node.op("Subtract", [node.op("BitwiseXor", [low, half]), half])


def _small_float(node: Node, x: Any, number: int, saturate: bool) -> Any:
    limits = types.limits_of(number)
    largest = float(limits.max)
    wide = node.cast(x, "f32" if x.dtype in FLOATS and x.dtype != "f64" else "f64")
    has_nan = limits.bits == 8
    if saturate or not has_nan:
        wide = node.op("Clamp", [wide], min=-largest, max=largest)
    if types.is_own(number):
        return node.cast(wide, types.held_in(number))
    made = _rounded(node, wide, limits)
    if not has_nan:
        return node.op("Select", [node.op("Equal", [wide, wide]), made, node.scalar(0, wide)])
    if not saturate:
        fits = node.op("LessEqual", [node.op("Abs", [made]), node.scalar(largest, made)])
        made = node.op("Select", [fits, made, node.scalar(math.nan, made)])
    return node.op("Add", [made, node.scalar(0, made)])  # there is no -0


def _rounded(node: Node, x: Any, limits: Any) -> Any:
    """x rounded to the digits of the type: by a type of 8 bits with as many digits, which has the same normal numbers, or to
    multiples of a step in each binade."""
    same = next((name for name in _EIGHT_BITS if types.limits_of(types.ONNX_TYPES[name]).nmant == limits.nmant), None)
    first = limits.minexp
    if same is not None:
        made = node.cast(node.cast(x, same), x.dtype)
        return _in_binade(node, x, first, first - limits.nmant, made)
    binades = range(first, math.frexp(float(limits.max))[1])
    if len(binades) > _MOST_BINADES:
        raise Unfit(f"a cast to a type of {len(binades)} binades")
    made = _multiples(node, x, binades[-1] - limits.nmant)
    for binade in reversed(binades[:-1]):
        made = _in_binade(node, x, binade + 1, binade - limits.nmant, made)
    return made


def _in_binade(node: Node, x: Any, end: int, step: int, beyond: Any) -> Any:
    """Multiples of 2^step where |x| is less than 2^end."""
    return node.op("Select", [node.op("Less", [node.op("Abs", [x]), node.scalar(2.0**end, x)]), _multiples(node, x, step), beyond])


def _multiples(node: Node, x: Any, step: int) -> Any:
    return node.op("Multiply", [node.op("Round", [node.op("Multiply", [x, node.scalar(2.0**-step, x)])]), node.scalar(2.0**step, x)])


def _power_of_two(node: Node, x: Any, limits: Any, saturate: bool, mode: str) -> Any:
    """The power of two below x, next to it (2^n for 1.5 2^n and more) or above it. x is scaled to 1 or more, and its exponent is
    found bit by bit."""
    if mode not in ("up", "down", "nearest"):
        raise Unfit(f"round_mode {mode}, allowed is up, down or nearest")
    smallest, largest = float(limits.smallest_normal), float(limits.max)
    number = lambda value: node.scalar(value, x)
    inside = node.op("Clamp", [x], min=smallest, max=2 * largest)
    rest = node.op("Multiply", [inside, number(1 / smallest)])
    made = node.op("Add", [node.op("Multiply", [inside, number(0)]), number(smallest)])
    for bits in (2**i for i in reversed(range(limits.bits + 1))):
        is_more = node.op("GreaterEqual", [rest, number(2.0**bits)])
        rest = node.op("Select", [is_more, node.op("Multiply", [rest, number(2.0**-bits)]), rest])
        made = node.op("Select", [is_more, node.op("Multiply", [made, number(2.0**bits)]), made])
    if mode != "down":
        is_beyond = node.op("Greater" if mode == "up" else "GreaterEqual", [rest, number(1 if mode == "up" else 1.5)])
        made = node.op("Select", [is_beyond, node.op("Multiply", [made, number(2)]), made])
    if saturate:
        return node.op("Minimum", [made, number(largest)])
    fits = node.op("LogicalAnd", [node.op("GreaterEqual", [x, number(smallest)]), node.op("LessEqual", [made, number(largest)])])
    return node.op("Select", [fits, made, number(math.nan)])


RULES = {"Cast": cast, "CastLike": cast_like, "BitCast": bit_cast}
