"""Resize: an Interpolate where that op has the same weights; else, per axis, a product with a matrix of weights or, for the
nearest mode, a gather. ONNX's own evaluator computes the matrix when the model is read, by resizing unit vectors. This covers
every mode, rounding and border rule, because all of them are linear."""

from __future__ import annotations

from typing import Any, Optional

import numpy
from onnx import helper

from lamina.onnx.folding import fold
from lamina.onnx.node import Node, Unfit

_OF_EACH_AXIS = ("coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "mode", "nearest_mode", "antialias")

_SAME_WEIGHT = 1e-6  # the error that Interpolate's own sums may have


class _Axis:
    """What determines the resizing of one axis."""

    def __init__(self, extent: int, scale: Optional[float], size: Optional[int], region: Optional[tuple]) -> None:
        self.extent, self.scale, self.size, self.region = extent, scale, size, region

    @property
    def ratio(self) -> float:
        return self.scale if self.size is None else self.size / self.extent


def resize(node: Node) -> Any:
    x = node.tensor(0)
    node.floating(x)
    shape = node.shape(x)
    numbers = [a % len(shape) for a in node.attribute("axes", None) or range(len(shape))]
    axes = _axes(node, [shape[number] for number in numbers])
    leading = _leading(node, axes)
    weights = {number: _weights(node, axis, leading) for number, axis in zip(numbers, axes)
               if axis.region is not None or (leading or axis).ratio != 1}
    if not weights:
        return node.copy(x)
    outside = node.attribute("extrapolation_value", 0.0) if _crops(node) else 0.0
    inside = numpy.ones([1] * len(shape), bool)
    for number, of_axis in weights.items():
        inside = inside & of_axis.any(0).reshape([-1 if i == number else 1 for i in range(len(shape))])
    made = _interpolated(node, x, weights) or _along_each(node, x, weights)
    if outside and not inside.all():
        made = node.op("Select", [node.array(inside, "boolean"), made, node.scalar(outside, made)])
    return made


def _crops(node: Node) -> bool:
    return node.attribute("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"


def _axes(node: Node, extents: list) -> list:
    regions = node.known(1) if _crops(node) else None
    scales, sizes = node.known(2), node.known(3)
    count, axes = len(extents), []
    for i, extent in enumerate(extents):
        scale = None if scales is None or not scales.size else float(scales[i])
        region = None if regions is None else (float(regions[i]), float(regions[count + i]))
        axes.append(_Axis(extent, scale, None if sizes is None else int(sizes[i]), region))
    return axes


def _leading(node: Node, axes: list) -> Optional[_Axis]:
    """Returns the axis whose scale all axes have; None if each axis has its own."""
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch" or any(axis.size is None for axis in axes):
        return None
    return (min if policy == "not_larger" else max)(axes, key=lambda axis: axis.ratio)


def _weights(node: Node, axis: _Axis, leading: Optional[_Axis]) -> numpy.ndarray:
    """Returns the weights [extent, size] of each input entry in each output entry. The leading axis is resized too, to give the
    scale; along it, all entries are equal."""
    attributes = [a for a in node.proto.attribute if a.name in _OF_EACH_AXIS]
    units, number, sizes = numpy.eye(axis.extent, dtype="float64"), [1], [axis.size or 0]
    if leading is not None:
        attributes.append(helper.make_attribute("keep_aspect_ratio_policy", node.attribute("keep_aspect_ratio_policy", "stretch")))
        units = numpy.repeat(units[..., None], leading.extent, axis=2)
        number, sizes = [1, 2], [axis.size, leading.size]
    inputs = ["units", "" if axis.region is None else "region", "" if axis.scale is None else "scales", "" if axis.size is None else "sizes"]
    one = helper.make_node("Resize", inputs[:3] if axis.size is None else inputs, ["made"])
    one.attribute.extend([helper.make_attribute("axes", number), *attributes])
    values = {"units": units, "region": numpy.array(axis.region or (0, 1), "float32"), "scales": numpy.array([axis.scale or 0], "float32"),
              "sizes": numpy.array(sizes, "int64")}
    made = fold(one, values, max(node.importer.opset, 18))
    if made is None:
        raise Unfit("more weights than are computed when a model is read")
    return made[0] if leading is None else made[0][..., 0]


def _interpolated(node: Node, x: Any, weights: dict) -> Any:
    """Returns an Interpolate of x if it has these weights; else None."""
    shape, mode = node.shape(x), node.attribute("mode", "nearest")
    if mode not in ("nearest", "linear") or min(weights) < 2 or x.dtype not in ("f32", "bf16", "f16"):
        return None
    sizes = [weights[i].shape[1] if i in weights else shape[i] for i in range(2, len(shape))]
    for positions in ("half_pixel", "align_corners"):
        made = [_weights_of_interpolate(*of_axis.shape, mode, positions) for of_axis in weights.values()]
        if all(numpy.abs(ours - theirs).max() <= _SAME_WEIGHT for ours, theirs in zip(made, weights.values())):
            return node.op("Interpolate", [x], mode=mode, sizes=sizes, data_format="NCX", coordinate_transformation_mode=positions)
    return None


def _weights_of_interpolate(extent: int, size: int, mode: str, positions: str) -> numpy.ndarray:
    """Returns the weights [extent, size] of lamina's op, whose positions are quotients of the extents."""
    made, o, last = numpy.zeros((extent, size)), numpy.arange(size), extent - 1
    if positions == "half_pixel":
        above, divisor = (2 * o + 1) * extent - size, 2 * size
    else:
        above, divisor = 2 * o * last, max(2 * (size - 1), 1)
    if mode == "nearest":
        made[numpy.clip((2 * above + divisor) // (2 * divisor), 0, last), o] = 1
        return made
    at = numpy.clip(above / divisor, 0, last)
    below = at.astype(int)
    numpy.add.at(made, (below, o), 1 - (at - below))
    numpy.add.at(made, (numpy.minimum(below + 1, last), o), at - below)
    return made


def _along_each(node: Node, x: Any, weights: dict) -> Any:
    for number, of_axis in weights.items():
        x = _along(node, x, number, of_axis)
    return x


def _along(node: Node, x: Any, axis: int, weights: numpy.ndarray) -> Any:
    chosen = weights.argmax(0)
    if node.attribute("mode", "nearest") == "nearest" and (weights[chosen, numpy.arange(weights.shape[1])] == 1).all():
        return node.take(x, chosen, axis)
    rank = node.rank(x)
    order = [i for i in range(rank) if i != axis] + [axis]
    made = node.op("MatMul", [node.transpose(x, order), node.array(weights, x.dtype)])
    return node.transpose(made, numpy.argsort(order))


RULES = {"Resize": resize}
