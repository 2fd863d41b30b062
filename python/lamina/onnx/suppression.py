"""NonMaxSuppression in NumPy: boxes in the order of their scores, without those that overlap one before them."""

from __future__ import annotations

from typing import Any

import numpy
import onnx
from onnx import helper


def non_max_suppression(node: onnx.NodeProto, inputs: list) -> numpy.ndarray:
    """Returns [selected, 3]: batch, class and box."""
    boxes, scores, *limits = inputs
    most, overlap, least = ([*limits, None, None, None][i] for i in range(3))
    most = 0 if most is None else int(most.reshape(-1)[0])
    overlap = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    least = None if least is None else float(least.reshape(-1)[0])
    is_centred = next((helper.get_attribute_value(a) for a in node.attribute if a.name == "center_point_box"), 0)
    corners = _corners(boxes.astype("float64"), is_centred)
    found = [(batch, kind, box) for batch in range(scores.shape[0]) for kind in range(scores.shape[1])
             for box in _selected(corners[batch], scores[batch, kind], most, overlap, least)]
    return numpy.array(found, "int64").reshape(-1, 3)


def _corners(boxes: numpy.ndarray, is_centred: Any) -> numpy.ndarray:
    """Returns the lowest and the highest corner of each box, which may be given by any two opposite ones."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if is_centred:
        first, second = first - second / 2, first + second / 2
    return numpy.concatenate([numpy.minimum(first, second), numpy.maximum(first, second)], -1)


def _selected(corners: numpy.ndarray, scores: numpy.ndarray, most: int, overlap: float, least: Any) -> list:
    order = numpy.argsort(-scores, kind="stable")
    if least is not None:
        order = order[scores[order] > least]
    areas, kept = numpy.prod(corners[:, 2:] - corners[:, :2], -1), []
    while order.size and len(kept) < most:
        best, order = order[0], order[1:]
        kept.append(int(best))
        sides = numpy.minimum(corners[best, 2:], corners[order, 2:]) - numpy.maximum(corners[best, :2], corners[order, :2])
        shared = numpy.prod(numpy.maximum(sides, 0), -1)
        union = areas[best] + areas[order] - shared
        order = order[shared <= overlap * union]
    return kept
