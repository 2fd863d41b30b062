"""Rules for the optimisers of ONNX's domain ai.onnx.preview.training. The inputs are the learning rate R, the number of updates T,
and then groups of tensors: parameters, gradients, and one or two states of each parameter."""

from __future__ import annotations

from typing import Any, Callable

from lamina.onnx.node import Node
from lamina.onnx.sampling import plus, times

DOMAIN = "ai.onnx.preview.training"


def _update(states: int, step: Callable) -> Callable:
    """step(node, rate, count, parameter, gradient, *states) returns the new parameter and its new states."""
    def rule(node: Node) -> list:
        tensors = node.tensors()
        rate, count, rest = tensors[0], tensors[1], tensors[2:]
        node.floating(rate, *rest)
        each = len(rest) // (2 + states)
        groups = [rest[i * each:(i + 1) * each] for i in range(2 + states)]
        made = []
        for parameter, gradient, *state in zip(*groups):
            gradient = node.op("Add", [times(node, parameter, node.attribute("norm_coefficient", 0.0)), gradient])
            made.append(step(node, rate, node.cast(count, rate.dtype), parameter, gradient, *state))
        return [result for group in zip(*made) for result in group]

    return rule


def _average(node: Node, old: Any, new: Any, share: float) -> Any:
    return node.op("Add", [times(node, old, share), times(node, new, 1 - share)])


def _adagrad(node: Node, rate: Any, count: Any, parameter: Any, gradient: Any, squares: Any) -> tuple:
    decayed = node.op("Divide", [rate, plus(node, times(node, count, node.attribute("decay_factor", 0.0)), 1)])
    squares = node.op("Add", [squares, node.op("Square", [gradient])])
    return _moved(node, parameter, decayed, gradient, squares, node.attribute("epsilon", 0.0)), squares


def _moved(node: Node, parameter: Any, rate: Any, direction: Any, squares: Any, epsilon: float) -> Any:
    step = node.op("Divide", [node.op("Multiply", [rate, direction]), plus(node, node.op("Sqrt", [squares]), epsilon)])
    return node.op("Subtract", [parameter, step])


def _adam(node: Node, rate: Any, count: Any, parameter: Any, gradient: Any, mean: Any, squares: Any) -> tuple:
    alpha, beta = node.attribute("alpha", 0.9), node.attribute("beta", 0.999)
    mean, squares = _average(node, mean, gradient, alpha), _average(node, squares, node.op("Square", [gradient]), beta)
    correction = node.op("Divide", [node.op("Sqrt", [_rest_of_power(node, beta, count)]), _rest_of_power(node, alpha, count)])
    later = node.op("Greater", [count, node.scalar(0, count)])
    rate = node.op("Select", [later, node.op("Multiply", [rate, correction]), rate])
    moved = _moved(node, parameter, rate, mean, squares, node.attribute("epsilon", 0.0))
    return times(node, moved, 1 - node.attribute("norm_coefficient_post", 0.0)), mean, squares


def _rest_of_power(node: Node, base: float, exponent: Any) -> Any:
    """1 - base^exponent, without cancellation."""
    return times(node, node.op("Expm1", [node.op("Multiply", [exponent, node.op("Log", [node.scalar(base, exponent)])])]), -1)


def _momentum(node: Node, rate: Any, count: Any, parameter: Any, gradient: Any, velocity: Any) -> tuple:
    alpha, beta = node.attribute("alpha", 0.0), node.attribute("beta", 0.0)
    later = node.op("Greater", [count, node.scalar(0, count)])
    share = node.op("Select", [later, node.scalar(beta, rate), plus(node, times(node, rate, 0), 1)])
    velocity = node.op("Add", [times(node, velocity, alpha), node.op("Multiply", [share, gradient])])
    direction = node.op("Add", [gradient, times(node, velocity, alpha)]) if node.attribute("mode", "") == "nesterov" else velocity
    return node.op("Subtract", [parameter, node.op("Multiply", [rate, direction])]), velocity


RULES = {"Adagrad": _update(1, _adagrad), "Adam": _update(2, _adam), "Momentum": _update(1, _momentum)}
