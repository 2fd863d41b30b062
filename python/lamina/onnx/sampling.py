"""Rules for operators that read images at positions that data determine: GridSample, RoiAlign and DeformConv. A sample is a sum of
rows of the image, each a Gather with computed indices; positions are tensors of floats, one per spatial axis, with one element
per sample."""

from __future__ import annotations

import itertools
import math
from typing import Any, Callable, NamedTuple, Sequence

import numpy

from lamina.onnx.node import Node, Unfit
from lamina.onnx.types import SMALL_FLOATS

_LARGEST_S32 = 2**31 - 1


class Tap(NamedTuple):
    """An entry of an axis for each sample: where it is, an integer, and its weight (None: 1)."""

    place: Any
    weight: Any


class Image:
    """Images [count, C, *extents] as rows of C elements. `base` has the number of each sample's image, as s32 or s64."""

    def __init__(self, node: Node, x: Any, base: Any) -> None:
        shape = node.shape(x)
        self.node, self.extents, self.channels = node, shape[2:], shape[1]
        order = [0, *range(2, len(shape)), 1]
        self._rows = node.reshape(node.transpose(x, order), [shape[0] * math.prod(self.extents), self.channels])
        self._base, self._wide = base, "f32" if x.dtype in SMALL_FLOATS else x.dtype

    def terms(self, taps: Sequence[Sequence[Tap]], zeros: bool) -> list:
        """Returns [samples, C], the weighted rows in f32 or f64, of each combination of one tap per axis. zeros: places outside
        of the image count as 0; else there are none."""
        return [self._term(chosen, zeros) for chosen in itertools.product(*taps)]

    def _term(self, chosen: Sequence[Tap], zeros: bool) -> Any:
        node, index, inside, weight = self.node, self._base, None, None
        for tap, extent in zip(chosen, self.extents):
            place = tap.place
            if zeros:
                inside = both(node, inside, within(node, place, 0, extent - 1))
                place = node.op("Clamp", [place], min=0.0, max=float(extent - 1))
            index = node.op("Add", [node.op("Multiply", [index, node.scalar(extent, index)]), node.cast(place, index.dtype)])
            if tap.weight is not None:
                weight = tap.weight if weight is None else node.op("Multiply", [weight, tap.weight])
        made, (count,) = node.cast(node.op("Gather", [self._rows, index], axis=0), self._wide), node.shape(index)
        if weight is not None:
            made = node.op("Multiply", [made, node.cast(node.reshape(weight, [count, 1]), made.dtype)])
        return made if inside is None else node.op("Select", [node.reshape(inside, [count, 1]), made, node.scalar(0, made)])


def both(node: Node, left: Any, right: Any) -> Any:
    return right if left is None else node.op("LogicalAnd", [left, right])


def within(node: Node, x: Any, low: float, high: float) -> Any:
    return node.op("LogicalAnd", [node.op("GreaterEqual", [x, node.scalar(low, x)]), node.op("LessEqual", [x, node.scalar(high, x)])])


def total(node: Node, terms: Sequence[Any]) -> Any:
    made = terms[0]
    for term in terms[1:]:
        made = node.op("Add", [made, term])
    return made


def floor(node: Node, x: Any) -> Any:
    nearest = node.op("Round", [x])
    return node.op("Subtract", [nearest, node.cast(node.op("Greater", [nearest, x]), x.dtype)])


def plus(node: Node, x: Any, number: float) -> Any:
    return node.op("Add", [x, node.scalar(number, x)]) if number else x


def times(node: Node, x: Any, number: float) -> Any:
    return node.op("Multiply", [x, node.scalar(number, x)]) if number != 1 else x


def image_numbers(node: Node, count: int, samples: int, pixels: int) -> Any:
    """Returns 0 for the first `samples` samples, 1 for the next, and so on."""
    numbers = numpy.repeat(numpy.arange(count), samples)
    return node.array(numbers, index_type(count * pixels))


def index_type(rows: int) -> str:
    return "s32" if rows <= _LARGEST_S32 else "s64"


# ---- taps of a position

def linear_taps(node: Node, x: Any) -> list:
    first = floor(node, x)
    part = node.op("Subtract", [x, first])
    return [Tap(first, plus(node, times(node, part, -1), 1)), Tap(plus(node, first, 1), part)]


def _cubic_taps(node: Node, x: Any) -> list:
    """The weights of Keys' cubic convolution, whose parameter is -0.75."""
    first = floor(node, x)
    part, alpha = node.op("Subtract", [x, first]), -0.75

    def polynomial(t: Any, *factors: float) -> Any:
        made = node.scalar(factors[0], t)
        for factor in factors[1:]:
            made = node.op("Add", [node.op("Multiply", [made, t]), node.scalar(factor, t)])
        return made

    near, far = (alpha + 2, -(alpha + 3), 0, 1), (alpha, -5 * alpha, 8 * alpha, -4 * alpha)
    rest = plus(node, times(node, part, -1), 1)
    return [Tap(plus(node, first, place), polynomial(t, *factors)) for place, t, factors in (
        (-1, plus(node, part, 1), far), (0, part, near), (1, rest, near), (2, plus(node, rest, 1), far))]


def _nearest_taps(node: Node, x: Any) -> list:
    return [Tap(node.op("Round", [x]), None)]


# ---- GridSample

_MODES = {"nearest": _nearest_taps, "linear": linear_taps, "bilinear": linear_taps, "cubic": _cubic_taps, "bicubic": _cubic_taps}


def _in_pixels(node: Node, x: Any, extent: int, corners: bool) -> Any:
    """-1 and 1 become the centres of the first and last pixel, or their outer borders."""
    if corners:
        return times(node, times(node, plus(node, x, 1), 0.5), extent - 1)
    return times(node, plus(node, times(node, plus(node, x, 1), extent), -1), 0.5)


def _range(extent: int, corners: bool) -> tuple:
    return (0.0, extent - 1.0) if corners else (-0.5, extent - 0.5)


def _clamped(node: Node, x: Any, extent: int, corners: bool) -> Any:
    return node.op("Clamp", [x], min=0.0, max=float(extent - 1))


def _reflected(node: Node, x: Any, extent: int, corners: bool) -> Any:
    """Reflects at the centres of the border pixels, or at their outer borders, until x is between them."""
    low, high = _range(extent, corners)
    if high == low:
        return times(node, x, 0)
    distance = node.op("Abs", [plus(node, x, -low)])
    turns = floor(node, node.op("Divide", [distance, node.scalar(high - low, x)]))
    rest = node.op("Subtract", [distance, times(node, turns, high - low)])
    half = times(node, turns, 0.5)
    is_even = node.op("Equal", [half, node.op("Round", [half])])
    made = node.op("Select", [is_even, plus(node, rest, low), plus(node, times(node, rest, -1), high)])
    return _clamped(node, made, extent, corners) if corners else made


_BORDERS: dict = {"border": _clamped, "reflection": _reflected}


def grid_sample(node: Node) -> Any:
    x, grid = node.tensor(0), node.tensor(1)
    node.floating(grid)
    mode, padding, corners = node.attribute("mode", "linear"), node.attribute("padding_mode", "zeros"), bool(node.attribute("align_corners", 0))
    if mode != "nearest":
        node.floating(x)
    shape, places = node.shape(x), node.shape(grid)
    rank, samples, border = len(shape) - 2, places[0] * math.prod(places[1:-1]), _BORDERS.get(padding)
    flat = node.reshape(node.cast(grid, "f32") if grid.dtype in SMALL_FLOATS else grid, [samples, rank])
    taps = []
    for i, extent in enumerate(shape[2:]):  # the last axis comes first in the grid
        along = node.op("Slice", [flat], starts=[rank - 1 - i], ends=[rank - i], axes=[1])
        position = _in_pixels(node, node.reshape(along, [samples]), extent, corners)
        taps.append(_taps_inside(node, position, _MODES[mode], border, extent, corners))
    image = Image(node, x, image_numbers(node, shape[0], samples // max(shape[0], 1), math.prod(shape[2:])))
    made = node.cast(total(node, image.terms(taps, zeros=border is None)), x.dtype)
    return node.transpose(node.reshape(made, [shape[0], *places[1:-1], shape[1]]), [0, rank + 1, *range(1, rank + 1)])


def _taps_inside(node: Node, position: Any, taps_of: Callable, border: Any, extent: int, corners: bool) -> list:
    """The taps of a position, moved into the image by `border` (None: they may be outside of it)."""
    if taps_of is _nearest_taps:
        position = node.op("Round", [position])
    if border is None:
        return taps_of(node, position)
    # The weights of a cubic are those of the position itself, as in PyTorch and ONNX Runtime; ONNX's evaluator moves it first.
    is_kept = taps_of is _cubic_taps and border is _clamped
    taps = taps_of(node, position if is_kept else border(node, position, extent, corners))
    moved = [tap._replace(place=border(node, tap.place, extent, corners)) for tap in taps]
    return [tap._replace(place=_clamped(node, node.op("Trunc", [tap.place]), extent, corners)) for tap in moved]


# ---- RoiAlign

def roi_align(node: Node) -> Any:
    """The mean, or the largest weighted pixel, of samples on a regular grid in each bin of each region."""
    x, regions, numbers = (node.tensor(i) for i in range(3))
    node.floating(x, regions)
    shape, (count, _) = node.shape(x), node.shape(regions)
    ratio, mode = node.attribute("sampling_ratio", 0), node.attribute("mode", "avg")
    if ratio <= 0:
        raise Unfit(f"sampling_ratio {ratio}, whose number of samples depends on data; allowed is 1 or more")
    bins = [node.attribute("output_height", 1), node.attribute("output_width", 1)]
    corners = times(node, node.cast(regions, "f32") if regions.dtype in SMALL_FLOATS else regions, node.attribute("spatial_scale", 1.0))
    half_pixel = node.importer.opset >= 16 and node.attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    # The order of samples: region, sample in a bin along both axes, bin along both axes.
    grid = [count, ratio, ratio, *bins]
    taps, inside = [], None
    for i, axis in enumerate("yx"):
        start, end = (plus(node, node.op("Slice", [corners], starts=[k], ends=[k + 1], axes=[1]), -0.5 * half_pixel) for k in (1 - i, 3 - i))
        size = node.op("Subtract", [end, start])
        size = size if half_pixel else node.op("Maximum", [size, node.scalar(1, size)])
        offsets = (numpy.arange(ratio)[:, None] + 0.5) / ratio + numpy.arange(bins[i])
        steps = node.op("Multiply", [size, node.array(offsets.reshape(1, -1) / bins[i], size.dtype)])
        one_axis = [ratio if k == i else 1 for k in range(2)] + [bins[i] if k == i else 1 for k in range(2)]
        along = node.reshape(node.op("Add", [start, steps]), [count, *one_axis])
        position = node.reshape(node.expand(along, grid), [math.prod(grid)])
        inside = both(node, inside, within(node, position, -1, shape[2 + i]))
        taps.append(linear_taps(node, _clamped(node, position, shape[2 + i], False)))
    taps = [[tap._replace(place=_clamped(node, tap.place, extent, False)) for tap in each] for each, extent in zip(taps, shape[2:])]
    base = node.cast(numbers, index_type(shape[0] * math.prod(shape[2:])))
    base = node.reshape(node.expand(node.reshape(base, [count, 1, 1, 1, 1]), grid), [math.prod(grid)])
    terms = Image(node, x, base).terms(taps, zeros=False)
    made = total(node, terms) if mode == "avg" else _largest(node, terms)
    made = node.op("Select", [node.reshape(inside, [math.prod(grid), 1]), made, node.scalar(0, made)])
    made = node.op("ReduceMean" if mode == "avg" else "ReduceMax", [node.reshape(made, [count, ratio * ratio, *bins, shape[1]])], axes=[1], keep_dims=False)
    return node.cast(node.transpose(made, [0, 3, 1, 2]), x.dtype)


def _largest(node: Node, terms: Sequence[Any]) -> Any:
    made = terms[0]
    for term in terms[1:]:
        made = node.op("Maximum", [made, term])
    return made


# ---- DeformConv

def deformable_convolution(node: Node) -> Any:
    """A product of the weights with samples at positions that the offsets move."""
    x, weights, offset = (node.tensor(i) for i in range(3))
    node.floating(x, weights, offset)
    shape, of_weights = node.shape(x), node.shape(weights)
    count, channels, extents = shape[0], shape[1], shape[2:]
    rank, kernel, sizes = len(extents), of_weights[2:], node.shape(offset)[2:]
    groups, of_offsets = node.attribute("group", 1), node.attribute("offset_group", 1)
    strides, dilations = (list(node.attribute(name, None) or [1] * rank) for name in ("strides", "dilations"))
    begin = list(node.attribute("pads", None) or [0] * (2 * rank))[:rank]
    window, pixels = math.prod(kernel), math.prod(sizes)
    wide = "f32" if offset.dtype in SMALL_FLOATS else offset.dtype
    moved = node.reshape(node.cast(offset, wide), [count * of_offsets, *kernel, rank, *sizes])
    samples = count * of_offsets * window * pixels
    taps = []
    for i in range(rank):
        along = node.op("Slice", [moved], starts=[i], ends=[i + 1], axes=[1 + rank])
        start = (numpy.arange(kernel[i]) * dilations[i] - begin[i])[:, None] + numpy.arange(sizes[i]) * strides[i]
        start = start.reshape([1, *(kernel[i] if k == i else 1 for k in range(rank)), 1, *(sizes[i] if k == i else 1 for k in range(rank))])
        taps.append(linear_taps(node, node.reshape(node.op("Add", [along, node.array(start, wide)]), [samples])))
    per_image = channels // of_offsets
    images = node.reshape(x, [count * of_offsets, per_image, *extents])
    base = image_numbers(node, count * of_offsets, window * pixels, math.prod(extents))
    made = total(node, Image(node, images, base).terms(taps, zeros=True))
    if node.has(4):
        made = node.op("Multiply", [made, node.cast(node.reshape(node.tensor(4), [samples, 1]), made.dtype)])
    # [N, offset group, tap, pixel, channel of the group] -> [N, group, channel of the group and tap, pixel]
    made = node.transpose(node.reshape(made, [count, of_offsets, window, pixels, per_image]), [0, 1, 4, 2, 3])
    made = node.reshape(node.cast(made, x.dtype), [count, groups, channels // groups * window, pixels])
    factor = node.reshape(weights, [1, groups, of_weights[0] // groups, channels // groups * window])
    made = node.reshape(node.op("MatMul", [factor, made]), [count, of_weights[0], *sizes])
    if not node.has(3):
        return made
    return node.op("Add", [made, node.reshape(node.tensor(3), [of_weights[0]] + [1] * rank)])


RULES = {"GridSample": grid_sample, "RoiAlign": roi_align, "DeformConv": deformable_convolution}
