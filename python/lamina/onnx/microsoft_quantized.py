"""Rules for ONNX Runtime's quantised operators: each is the operator on dequantised inputs, whose result is quantised."""

from __future__ import annotations

from typing import Any, Callable, Optional

from lamina.onnx import windows
from lamina.onnx.node import Node, Unfit, given
from lamina.onnx.quantized import RULES as OF_ONNX, dequantized, matrix_product_of_integers, quantized
from lamina.onnx.reductions import Replaced


def _of(node: Node, position: int) -> Any:
    """Dequantises an input, which its scale and its zero point follow."""
    return dequantized(node, node.tensor(position), node.tensor(position + 1), given(node, position + 2))


def _result(node: Node, made: Any, position: int, dtype: str) -> Any:
    """Quantises a result by the scale and the zero point at this position."""
    return quantized(node, made, node.tensor(position), given(node, position + 1), dtype)


def of_two(kind: str) -> Callable:
    def rule(node: Node) -> Any:
        return _result(node, node.op(kind, [_of(node, 0), _of(node, 3)]), 6, node.tensor(0).dtype)

    return rule


def of_one(form: Callable) -> Callable:
    """form(node, x) is the operator on floats."""
    def rule(node: Node) -> Any:
        return _result(node, form(node, _of(node, 0)), 3, node.tensor(0).dtype)

    return rule


def _pooled(rule: Callable) -> Callable:
    def form(node: Node, x: Any) -> Any:
        if not node.attribute("channels_last", 0):
            return rule(Replaced(node, x))
        rank = node.rank(x)
        made = rule(Replaced(node, node.transpose(x, [0, rank - 1, *range(1, rank - 1)])))
        return node.transpose(made, [0, *range(2, rank), 1])

    return form


def concat(node: Node) -> Any:
    parts = [_of(node, position) for position in range(2, len(node), 3)]
    made = node.op("Concat", parts, axis=node.attribute("axis", 0)) if len(parts) > 1 else parts[0]
    return _result(node, made, 0, node.tensor(2).dtype)


def product_to_float(node: Node) -> Any:
    """MatMulIntegerToFloat: a product of integers times both scales, plus a bias."""
    zeros = [given(node, i) for i in (4, 5)]
    scales = [node.tensor(i) for i in (2, 3)]
    made = matrix_product_of_integers(node, [node.tensor(0), node.tensor(1)], zeros, "f32")
    return _scaled(node, made, scales, given(node, 6))


def _scaled(node: Node, made: Any, scales: list, bias: Optional[Any]) -> Any:
    for scale in scales:
        if node.rank(scale) > 1:
            raise Unfit(f"scales of shape {node.shape(scale)}, allowed is one, or one per column")
    made = node.op("Multiply", [made, node.op("Multiply", scales)])
    return made if bias is None else node.op("Add", [made, bias])


RULES = {
    "QuantizeLinear": OF_ONNX["QuantizeLinear"], "DequantizeLinear": OF_ONNX["DequantizeLinear"], "MatMulIntegerToFloat": product_to_float,
    "QLinearAdd": of_two("Add"), "QLinearMul": of_two("Multiply"), "QLinearConcat": concat,
    "QLinearSigmoid": of_one(lambda node, x: node.op("Sigmoid", [x])),
    "QLinearLeakyRelu": of_one(lambda node, x: node.op("LeakyReLU", [x], alpha=node.attribute("alpha", 0.01))),
    "QLinearSoftmax": of_one(lambda node, x: node.op("SoftMax", [x], axis=node.attribute("axis", -1), outputs=(True, False))[0]),
    "QLinearAveragePool": of_one(_pooled(windows.average_pool)), "QLinearGlobalAveragePool": of_one(_pooled(windows.over_all("ReduceMean"))),
}
