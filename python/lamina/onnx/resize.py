"""Resize: per axis, a product with a matrix of weights or, for the nearest mode, a gather. ONNX's own evaluator computes the
matrix when the model is read, by resizing unit vectors. This covers every mode, rounding and border rule, because all of them
are linear."""

from __future__ import annotations

from typing import Any

import numpy
from onnx import helper

from lamina.onnx.folding import fold
from lamina.onnx.node import Node, Unfit

_OF_EACH_AXIS = ("coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "mode", "nearest_mode", "antialias")


def resize(node: Node) -> Any:
    x = node.tensor(0)
    node.floating(x)
    if node.attribute("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        raise Unfit("coordinate_transformation_mode 'tf_crop_and_resize'")
    if node.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Unfit(f"keep_aspect_ratio_policy {node.attribute('keep_aspect_ratio_policy', 'stretch')!r}")
    shape = node.shape(x)
    axes = [a % len(shape) for a in node.attribute("axes", None) or range(len(shape))]
    scales, sizes = node.known(2), node.known(3)
    made = x
    for i, axis in enumerate(axes):
        scale = None if scales is None or not scales.size else float(scales[i])
        size = None if sizes is None else int(sizes[i])
        if scale == 1 or size == shape[axis]:
            continue
        made = _along(node, made, axis, _weights(node, shape[axis], scale, size))
    return node.copy(x) if made is x else made


def _weights(node: Node, extent: int, scale: Any, size: Any) -> numpy.ndarray:
    """Returns the weights [extent, size] of each input entry in each output entry."""
    attributes = [a for a in node.proto.attribute if a.name in _OF_EACH_AXIS]
    inputs = ["units", "", "" if scale is None else "scales", "" if size is None else "sizes"]
    one = helper.make_node("Resize", inputs[:3] if size is None else inputs, ["made"])
    one.attribute.extend([helper.make_attribute("axes", [1]), *attributes])
    values = {"units": numpy.eye(extent, dtype="float64"), "scales": numpy.array([scale or 0], "float32"), "sizes": numpy.array([size or 0], "int64")}
    made = fold(one, values, max(node.importer.opset, 18))
    if made is None:
        raise Unfit("more weights than are computed when a model is read")
    return made[0]


def _along(node: Node, x: Any, axis: int, weights: numpy.ndarray) -> Any:
    chosen = weights.argmax(0)
    if node.attribute("mode", "nearest") == "nearest" and (weights[chosen, numpy.arange(weights.shape[1])] == 1).all():
        return node.take(x, chosen, axis)
    rank = node.rank(x)
    order = [i for i in range(rank) if i != axis] + [axis]
    made = node.op("MatMul", [node.transpose(x, order), node.array(weights, x.dtype)])
    return node.transpose(made, numpy.argsort(order))


RULES = {"Resize": resize}
