"""Constant folding: ONNX's own evaluator computes nodes whose inputs are all known when a model is read, mostly shapes."""

from __future__ import annotations

from typing import Optional

import numpy
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from lamina.onnx.node import Unfit

# Operators that are not folded: those with random results, and loops.
_NOT_FOLDED = ("Bernoulli", "Dropout", "Loop", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Scan")
_LARGEST = 1 << 24  # maximum element count of a result


def fold(node: onnx.NodeProto, values: dict, opset: int) -> Optional[list]:
    """Returns the node's outputs; None if an input is unknown, or the operator is not folded."""
    inputs = [name for name in node.input if name]
    if node.op_type in _NOT_FOLDED or node.domain not in ("", "ai.onnx") or any(name not in values for name in inputs):
        return None
    if any(attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for attribute in node.attribute):
        return None
    body = helper.make_function("lamina", "folded", list(dict.fromkeys(inputs)), [name for name in node.output if name], [node],
                                [helper.make_opsetid("", opset)])
    try:
        made = ReferenceEvaluator(body).run(None, {name: values[name] for name in inputs}, {})
    except Exception as error:
        raise Unfit(f"its value cannot be computed: {type(error).__name__} {error}") from None
    results = dict(zip(body.output, made))
    if any(not isinstance(value, (numpy.ndarray, numpy.generic)) or value.size > _LARGEST for value in made):
        return None
    return [numpy.asarray(results[name]) if name else None for name in node.output]
