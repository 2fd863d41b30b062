"""Constant folding: nodes whose inputs are all known when a model is read, mostly shapes, are computed then, by ONNX's own
evaluator."""

from __future__ import annotations

from typing import Any, Optional

import numpy
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from lamina.onnx.node import Unfit

# Operators that are not folded: those with random results, and loops.
_NOT_FOLDED = ("Bernoulli", "Dropout", "Loop", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Scan")
_LARGEST = 1 << 24  # maximum element count of a result


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def _constant_of_shape(node: onnx.NodeProto, inputs: list) -> numpy.ndarray:
    value = _attribute(node, "value", None)
    value = numpy.zeros(1, "float32") if value is None else numpy_helper.to_array(value)
    return numpy.full([int(extent) for extent in inputs[0]], value.flat[0], value.dtype)


def elements_of(data: numpy.ndarray, indices: numpy.ndarray, axis: int) -> numpy.ndarray:
    """GatherElements: the other axes of `indices` may be shorter than those of `data`."""
    axis, extent = axis % data.ndim, data.shape[axis]
    if numpy.any(indices >= extent) or numpy.any(indices < -extent):
        raise Unfit(f"an index outside of {-extent}..{extent - 1}")
    beside = tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))
    return numpy.take_along_axis(data[beside], numpy.where(indices < 0, indices + extent, indices), axis)


# Operators that the evaluator computes wrongly, or whose results may be weights, which are larger than shapes.
_BY_NUMPY = {"ConstantOfShape": _constant_of_shape, "GatherElements": lambda node, inputs: elements_of(*inputs, _attribute(node, "axis", 0))}


# The first opset that the evaluator has. For the types of the ones before, it computes the same.
_LEAST_OPSET = {"DequantizeLinear": 19}


def fold(node: onnx.NodeProto, values: dict, opset: int) -> Optional[list]:
    """Returns the node's outputs; None if an input is unknown, or the operator is not folded."""
    inputs = [name for name in node.input if name]
    if node.op_type in _NOT_FOLDED or node.domain not in ("", "ai.onnx") or any(name not in values for name in inputs):
        return None
    if any(attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for attribute in node.attribute):
        return None
    if node.op_type == "DequantizeLinear" and values[inputs[0]].ndim > 1:
        return None  # weights stay integers
    if node.op_type in _BY_NUMPY:
        return [_BY_NUMPY[node.op_type](node, [values[name] for name in inputs])]
    opset = max(opset, _LEAST_OPSET.get(node.op_type, 1))
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
