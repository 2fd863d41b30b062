"""Rules for elementwise operators."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy
from onnx import numpy_helper

from lamina.onnx.node import Node, Unfit
from lamina.onnx.types import FLOATS, SMALL_FLOATS

Rule = Callable[[Node], Any]


def unary(kind: str, **attributes: Any) -> Rule:
    """A pair (name, default) means that the attribute is read from the node."""
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        node.floating(x)
        return node.op(kind, [x], **{name: node.attribute(*value) if isinstance(value, tuple) else value for name, value in attributes.items()})

    return rule


def binary(kind: str) -> Rule:
    def rule(node: Node) -> Any:
        return _of_one_type(node, kind, node.tensor(0), node.tensor(1))

    return rule


def _of_one_type(node: Node, kind: str, left: Any, right: Any) -> Any:
    if left.dtype != right.dtype:
        raise Unfit(f"elements of {left.dtype} and {right.dtype}")
    return node.op(kind, [left, right])


def compare(kind: str) -> Rule:
    def rule(node: Node) -> Any:
        return node.op(kind, [node.tensor(0), node.tensor(1)])

    return rule


def folded(kind: str) -> Rule:
    """An operator with any number of inputs, as a chain of binary ops."""
    def rule(node: Node) -> Any:
        made, *rest = node.tensors()
        for other in rest:
            made = _of_one_type(node, kind, made, other)
        return made if rest else node.copy(made)

    return rule


def modulo(node: Node) -> Any:
    """The remainder of a division cut off at the point: it has the sign of x, or of y if fmod is 0."""
    x, y = node.tensor(0), node.tensor(1)
    rest = _remainder(node, x, y)
    if node.attribute("fmod", 0) or x.dtype.startswith("u"):
        return rest
    zero = node.scalar(0, x)
    differ = node.op("NotEqual", [node.op("Less", [rest, zero]), node.op("Less", [y, zero])])
    moves = node.op("LogicalAnd", [differ, node.op("NotEqual", [rest, zero])])
    return node.op("Select", [moves, _of_one_type(node, "Add", rest, y), rest])


def _remainder(node: Node, x: Any, y: Any) -> Any:
    if x.dtype != y.dtype:
        raise Unfit(f"elements of {x.dtype} and {y.dtype}")
    if x.dtype in FLOATS:
        return node.op("Fmod", [x, y])
    return node.op("Subtract", [x, node.op("Multiply", [node.op("Divide", [x, y]), y])])


def shift(node: Node) -> Any:
    return _of_one_type(node, "ShiftLeft" if node.attribute("direction", "") == "LEFT" else "ShiftRight", node.tensor(0), node.tensor(1))


def bitwise_not(node: Node) -> Any:
    x = node.tensor(0)
    if x.dtype in FLOATS:
        raise Unfit(f"elements of {x.dtype}, allowed is integers")
    return node.op("Subtract", [node.op("Subtract", [node.op("Subtract", [x, x]), node.scalar(1, x)]), x])  # -1 - x


def mean(node: Node) -> Any:
    node.floating(node.tensor(0))
    total = folded("Add")(node)
    return node.op("Multiply", [total, node.scalar(1 / len(node), total)])


def negative(node: Node) -> Any:
    x = node.tensor(0)
    if x.dtype not in FLOATS:
        return node.op("Subtract", [node.scalar(0, x), x])
    return node.op("Multiply", [x, node.scalar(-1, x)])


def with_integers(rule: Rule, of_integers: Callable) -> Rule:
    """A rule for floats, and one for integers, of_integers(node, x)."""
    def either(node: Node) -> Any:
        x = node.tensor(0)
        return rule(node) if x.dtype in FLOATS or x.dtype == "boolean" else of_integers(node, x)

    return either


def _sign_of_integers(node: Node, x: Any) -> Any:
    zero = node.scalar(0, x)
    return node.op("Subtract", [node.cast(node.op(kind, [x, zero]), x.dtype) for kind in ("Greater", "Less")])


def _absolute_integers(node: Node, x: Any) -> Any:
    return node.op("Maximum", [x, node.op("Subtract", [node.scalar(0, x), x])]) if x.dtype.startswith("s") else node.copy(x)


def tangent(node: Node) -> Any:
    x = node.tensor(0)
    node.floating(x)
    return node.op("Divide", [node.op("Sin", [x]), node.op("Cos", [x])])


def rounded(kind: str, correction: str) -> Rule:
    """Floor or ceil: the nearest integer, corrected by one if it is on the wrong side."""
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        node.floating(x)
        return _rounded(node, x, kind, correction)

    return rule


def _rounded(node: Node, x: Any, kind: str, correction: str) -> Any:
    nearest = node.op("Round", [x])
    return node.op(correction, [nearest, node.cast(node.op(kind, [nearest, x]), x.dtype)])


def is_nan(node: Node) -> Any:
    x = node.tensor(0)
    node.floating(x)
    return node.op("NotEqual", [x, x])


def erf(node: Node) -> Any:
    """Computes erf from GELU(z) = z * (1 + erf(z / sqrt 2)) / 2."""
    x = node.tensor(0)
    node.floating(x)
    wide = node.cast(x, "f32") if x.dtype in SMALL_FLOATS else x
    z = node.op("Multiply", [wide, node.scalar(math.sqrt(2), wide)])
    twice = node.op("Multiply", [node.op("Divide", [node.op("GELU", [z], mode="gelu_erf"), z]), node.scalar(2, z)])
    # Near 0 the quotient is 0 / 0 or loses digits, so the Taylor series is used. Beyond +-8, GELU is 0 or z, so the limits
    # are used.
    small = _odd_series(node, wide, [(-1) ** i * 2 / (math.sqrt(math.pi) * math.factorial(i) * (2 * i + 1)) for i in range(11)])
    made = node.op("Select", [node.op("Less", [node.op("Abs", [wide]), node.scalar(0.5, wide)]), small,
                              node.op("Subtract", [twice, node.scalar(1, z)])])
    made = node.op("Select", [node.op("Greater", [node.op("Abs", [wide]), node.scalar(8, wide)]), node.op("Clamp", [wide], min=-1.0, max=1.0), made])
    return node.cast(made, x.dtype)


def _odd_series(node: Node, x: Any, factors: list) -> Any:
    """Returns x * (factors[0] + factors[1] * x^2 + ...)."""
    square, made = node.op("Square", [x]), None
    for factor in reversed(factors):
        made = node.scalar(factor, x) if made is None else node.op("Add", [node.op("Multiply", [square, made]), node.scalar(factor, x)])
    return node.op("Multiply", [x, made])


def hyperbolic(sign: str) -> Rule:
    """(e^x + e^-x) / 2, or (e^x - e^-x) / 2 with the Taylor series near 0."""
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        node.floating(x)
        wide = node.cast(x, "f32") if x.dtype in SMALL_FLOATS else x
        grown = node.op("Exp", [wide])
        made = node.op("Multiply", [node.op(sign, [grown, node.op("Reciprocal", [grown])]), node.scalar(0.5, wide)])
        if sign == "Subtract":
            series = _odd_series(node, wide, [1 / math.factorial(2 * i + 1) for i in range(7)])
            made = node.op("Select", [node.op("Less", [node.op("Abs", [wide]), node.scalar(1, wide)]), series, made])
        return node.cast(made, x.dtype)

    return rule


def arcus(form: Callable) -> Rule:
    """An inverse trigonometric or hyperbolic function; form(node, x) is its formula for f32 or f64."""
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        node.floating(x)
        wide = node.cast(x, "f32") if x.dtype in SMALL_FLOATS else x
        return node.cast(form(node, wide), x.dtype)

    return rule


def _cathetus(node: Node, x: Any) -> Any:
    """Returns sqrt(1 - x^2) without cancellation."""
    one = node.scalar(1, x)
    return node.op("Sqrt", [node.op("Multiply", [node.op("Subtract", [one, x]), node.op("Add", [one, x])])])


def _signed(node: Node, x: Any, of_size: Callable) -> Any:
    """Returns sign(x) * of_size(|x|)."""
    return node.op("Multiply", [node.op("Sign", [x]), of_size(node.op("Abs", [x]))])


def _of_large(node: Node, x: Any, made: Any) -> Any:
    """asinh(x) and acosh(x) are ln(2 x) where x^2 may overflow."""
    large = node.op("Add", [node.op("Log", [x]), node.scalar(math.log(2), x)])
    return node.op("Select", [node.op("Greater", [x, node.scalar(1e9, x)]), large, made])


def _asinh_of_size(node: Node, a: Any) -> Any:
    """log1p(a + a^2 / (1 + sqrt(a^2 + 1)))"""
    one, square = node.scalar(1, a), node.op("Square", [a])
    root = node.op("Sqrt", [node.op("Add", [square, one])])
    rest = node.op("Divide", [square, node.op("Add", [root, one])])
    return _of_large(node, a, node.op("Log1p", [node.op("Add", [a, rest])]))


def _acosh(node: Node, x: Any) -> Any:
    """log1p(t + sqrt(t (x + 1))) with t = x - 1"""
    t = node.op("Subtract", [x, node.scalar(1, x)])
    root = node.op("Sqrt", [node.op("Multiply", [t, node.op("Add", [x, node.scalar(1, x)])])])
    return _of_large(node, x, node.op("Log1p", [node.op("Add", [t, root])]))


def _atanh_of_size(node: Node, a: Any) -> Any:
    """log1p(2 a / (1 - a)) / 2"""
    twice = node.op("Multiply", [a, node.scalar(2, a)])
    made = node.op("Log1p", [node.op("Divide", [twice, node.op("Subtract", [node.scalar(1, a), a])])])
    return node.op("Multiply", [made, node.scalar(0.5, a)])


def clip(node: Node) -> Any:
    x = node.tensor(0)
    low, high = (node.value(i) for i in (1, 2))
    bounds = [-math.inf if low is None else float(low), math.inf if high is None else float(high)]
    if x.dtype in FLOATS and (low is None) == (not node.has(1)) and (high is None) == (not node.has(2)) and bounds[0] <= bounds[1]:
        return node.op("Clamp", [x], min=bounds[0], max=bounds[1])
    made = node.op("Maximum", [x, node.tensor(1)]) if node.has(1) else x
    made = node.op("Minimum", [made, node.tensor(2)]) if node.has(2) else made
    return node.copy(x) if made is x else made


def power(node: Node) -> Any:
    x, exponent = node.tensor(0), node.value(1)
    if x.dtype not in FLOATS:
        return _power_of_integers(node, x, node.tensor(1))
    if exponent is not None and numpy.unique(exponent).size == 1 and exponent.ndim <= node.rank(x):
        made = node.op("Pow", [x], beta=float(exponent.flat[0]))
        return made if exponent.size == 1 else node.expand(made, numpy.broadcast_shapes(node.shape(x), exponent.shape))
    return _general_power(node, x, node.tensor(1))


def _power_of_integers(node: Node, x: Any, exponent: Any) -> Any:
    """The power in f64, without its fraction. Powers next to an integer are that integer: f64 has errors."""
    made = _general_power(node, node.cast(x, "f64"), exponent)
    nearest = node.op("Round", [made])
    distance = node.op("Abs", [node.op("Subtract", [made, nearest])])
    bound = node.op("Multiply", [node.op("Abs", [made]), node.scalar(1e-11, made)])
    return node.cast(node.op("Select", [node.op("LessEqual", [distance, bound]), nearest, node.op("Trunc", [made])]), x.dtype)


def _general_power(node: Node, x: Any, exponent: Any) -> Any:
    """exp(b ln |a|) with these corrections: a negative a keeps its sign if b is odd and results in NaN if b is not an
    integer; b = 0 or a = 1 results in 1."""
    wide = "f64" if x.dtype == "f64" else "f32"
    a, b = node.cast(x, wide), node.cast(exponent, wide)
    shape = numpy.broadcast_shapes(node.shape(a), node.shape(b))
    a, b = node.expand(a, shape), node.expand(b, shape)
    zero, one = node.scalar(0, a), node.scalar(1, a)
    size = node.op("Exp", [node.op("Multiply", [b, node.op("Log", [node.op("Abs", [a])])])])
    half = node.op("Multiply", [b, node.scalar(0.5, b)])
    is_even = node.op("Equal", [half, node.op("Round", [half])])
    is_integer = node.op("Equal", [b, node.op("Round", [b])])
    nothing = node.op("Divide", [node.op("Subtract", [a, a]), node.op("Subtract", [a, a])])  # 0 / 0
    of_negative = node.op("Select", [is_even, size, node.op("Select", [is_integer, node.op("Multiply", [size, node.scalar(-1, a)]), nothing])])
    made = node.op("Select", [node.op("Less", [a, zero]), of_negative, size])
    ones = node.expand(node.array(numpy.ones([1] * max(len(shape), 1)), wide), shape or [1]) if shape else one
    made = node.op("Select", [node.op("LogicalOr", [node.op("Equal", [b, zero]), node.op("Equal", [a, one])]), ones, made])
    return node.cast(made, x.dtype)


def prelu(node: Node) -> Any:
    x, slope = node.tensor(0), node.tensor(1)
    return node.op("PReLU", [x, slope], data_format="NCX", per_channel_broadcast=False)


def gelu(node: Node) -> Any:
    x = node.tensor(0)
    node.floating(x)
    return node.op("GELU", [x], mode="gelu_tanh" if node.attribute("approximate", "none") == "tanh" else "gelu_erf")


def where(node: Node) -> Any:
    condition, left, right = (node.tensor(i) for i in range(3))
    known = all(t.shape is not None and None not in t.shape for t in (condition, left, right))
    if known:  # the condition broadcasts to the values, but not the values to the condition
        shape = numpy.broadcast_shapes(condition.shape, left.shape, right.shape)
        if tuple(shape) != numpy.broadcast_shapes(left.shape, right.shape):
            left = node.expand(left, shape)
    return node.op("Select", [condition, left, right])


def constant(node: Node) -> numpy.ndarray:
    for name, value in node.attributes.items():
        if name == "value":
            return numpy_helper.to_array(value)
        if name in ("value_float", "value_floats"):
            return numpy.array(value, "float32")
        if name in ("value_int", "value_ints"):
            return numpy.array(value, "int64")
    raise Unfit("a constant that is not a numeric tensor")


def identity(node: Node) -> Any:
    return node.copy(node.tensor(0))


def dropout(node: Node) -> Any:
    if node.has(2) and bool(node.known(2)):
        ratio = node.known(1)
        if ratio is None or float(ratio) != 0:
            raise Unfit(f"training_mode true with ratio {0.5 if ratio is None else float(ratio)}, allowed is 0")
    x = node.tensor(0)
    made = node.copy(x)
    return [made, numpy.ones(node.shape(x), bool)] if node.wants(1) else made


def softmax(kind: str) -> Rule:
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        node.floating(x)
        made = node.op(kind, [x], axis=node.attribute("axis", -1), **({"outputs": (True, False)} if kind == "SoftMax" else {}))
        return made[0] if isinstance(made, tuple) else made

    return rule


RULES = {
    "Abs": with_integers(unary("Abs"), _absolute_integers), "Sign": with_integers(unary("Sign"), _sign_of_integers), "Neg": negative,
    "Relu": with_integers(unary("ReLU"), lambda node, x: node.op("Maximum", [x, node.scalar(0, x)])),
    "Exp": unary("Exp"), "Log": unary("Log"), "Reciprocal": unary("Reciprocal"),
    "Sigmoid": unary("Sigmoid"), "Sqrt": unary("Sqrt"), "Tanh": unary("Tanh"), "Round": unary("Round"), "Softplus": unary("SoftPlus"),
    "Mish": unary("Mish"), "HardSwish": unary("HardSwish"), "Elu": unary("Elu", alpha=("alpha", 1.0)), "Sin": unary("Sin"), "Cos": unary("Cos"),
    "LeakyRelu": unary("LeakyReLU", alpha=("alpha", 0.01)), "Swish": unary("Swish", alpha=("alpha", 1.0)),
    "HardSigmoid": unary("HardSigmoid", alpha=("alpha", 0.2), beta=("beta", 0.5)), "Gelu": gelu, "Tan": tangent,
    "Sinh": hyperbolic("Subtract"), "Cosh": hyperbolic("Add"),
    "Floor": rounded("Greater", "Subtract"), "Ceil": rounded("Less", "Add"), "Erf": erf, "IsNaN": is_nan,
    "Add": binary("Add"), "Sub": binary("Subtract"), "Mul": binary("Multiply"), "Div": binary("Divide"), "Mod": modulo, "BitShift": shift,
    "BitwiseAnd": binary("BitwiseAnd"), "BitwiseOr": binary("BitwiseOr"), "BitwiseXor": binary("BitwiseXor"), "BitwiseNot": bitwise_not, "Pow": power,
    "Max": folded("Maximum"), "Min": folded("Minimum"), "Sum": folded("Add"), "Mean": mean, "Clip": clip, "PRelu": prelu, "Where": where,
    "Less": compare("Less"), "LessOrEqual": compare("LessEqual"), "Greater": compare("Greater"), "GreaterOrEqual": compare("GreaterEqual"),
    "Equal": compare("Equal"), "And": compare("LogicalAnd"), "Or": compare("LogicalOr"), "Xor": compare("NotEqual"),
    "Not": lambda node: node.op("LogicalNot", [node.tensor(0)]),
    "Softmax": softmax("SoftMax"), "LogSoftmax": softmax("LogSoftmax"), "Constant": constant,
    "Identity": identity, "Dropout": dropout,
    "Atan": arcus(lambda node, x: node.op("Atan2", [x, node.scalar(1, x)])),
    "Asin": arcus(lambda node, x: node.op("Atan2", [x, _cathetus(node, x)])), "Acos": arcus(lambda node, x: node.op("Atan2", [_cathetus(node, x), x])),
    "Asinh": arcus(lambda node, x: _signed(node, x, lambda a: _asinh_of_size(node, a))), "Acosh": arcus(_acosh),
    "Atanh": arcus(lambda node, x: _signed(node, x, lambda a: _atanh_of_size(node, a))),
}
