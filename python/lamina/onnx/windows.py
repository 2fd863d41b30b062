"""Rules for convolutions and pools."""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple

import numpy

from lamina.onnx.node import Node, Unfit
from lamina.onnx.types import FLOATS


class Window(NamedTuple):
    """The window of a pool or convolution, per spatial axis, with explicit pads and sizes rounded down."""

    kernel: list
    strides: list
    dilations: list
    begin: list
    end: list  # end pads of the model
    reach: list  # end pads that result in the model's number of windows; may differ from `end`
    sizes: list  # extents of the result


def window(node: Node, extents: list, kernel: list) -> Window:
    spatial = len(kernel)
    strides, dilations = (list(node.attribute(name, None) or [1] * spatial) for name in ("strides", "dilations"))
    auto = node.attribute("auto_pad", "NOTSET")
    pads = list(node.attribute("pads", None) or [0] * (2 * spatial))
    begin, end = pads[:spatial], pads[spatial:]
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel)]
    if auto == "VALID":
        begin, end = [0] * spatial, [0] * spatial
    elif auto in ("SAME_UPPER", "SAME_LOWER"):
        total = [max((-(-e // s) - 1) * s + span - e, 0) for e, s, span in zip(extents, strides, spans)]
        begin = [t // 2 if auto == "SAME_UPPER" else -(-t // 2) for t in total]
        end = [t - b for t, b in zip(total, begin)]
    sizes = []
    for i in range(spatial):
        last_start = extents[i] + begin[i] + end[i] - spans[i]
        size = (-(-last_start // strides[i]) if node.attribute("ceil_mode", 0) else last_start // strides[i]) + 1
        if node.attribute("ceil_mode", 0) and (size - 1) * strides[i] >= extents[i] + begin[i]:
            size -= 1  # a last window that starts after the data does not count
        sizes.append(size)
    reach = [(size - 1) * s + span - e - b for size, s, span, e, b in zip(sizes, strides, spans, extents, begin)]
    return Window(kernel, strides, dilations, begin, end, reach, sizes)


def convolution(node: Node) -> Any:
    inputs = node.tensors()
    node.floating(*inputs)
    return convolved(node, inputs)


def convolved(node: Node, inputs: list) -> Any:
    """Returns the convolution of these inputs with the node's attributes."""
    spatial = node.rank(inputs[0]) - 2
    auto = node.attribute("auto_pad", "NOTSET")
    pads = list(node.attribute("pads", None) or [0] * (2 * spatial))
    at = {"pads_begin": pads[:spatial], "pads_end": pads[spatial:]}
    if auto not in ("NOTSET", "VALID"):
        at = {"auto_pad": auto, "pads_begin": [0] * spatial, "pads_end": [0] * spatial}
    return node.op("Convolution", inputs, strides=list(node.attribute("strides", [1] * spatial)), groups=node.attribute("group", 1),
                   dilations=list(node.attribute("dilations", [1] * spatial)), data_format="NCX", weights_format="OIX", **at)


def transposed_convolution(node: Node) -> Any:
    inputs = node.tensors()
    node.floating(*inputs)
    spatial, extents = node.rank(inputs[0]) - 2, node.shape(inputs[0])[2:]
    kernel = node.shape(inputs[1])[2:]
    strides, dilations, more = (list(node.attribute(name, None) or [default] * spatial)
                                for name, default in (("strides", 1), ("dilations", 1), ("output_padding", 0)))
    pads = list(node.attribute("pads", None) or [0] * (2 * spatial))
    begin, end, auto = pads[:spatial], pads[spatial:], node.attribute("auto_pad", "NOTSET")
    wanted = node.attribute("output_shape", None)
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [e * s for e, s in zip(extents, strides)]
    if wanted is not None:
        total = [s * (e - 1) + m + (k - 1) * d + 1 - w
                 for s, e, m, k, d, w in zip(strides, extents, more, kernel, dilations, wanted[-spatial:])]
        more = [m - min(t, 0) for m, t in zip(more, total)]  # enlarges outputs that are too small even without pads
        total = [max(t, 0) for t in total]
        begin = [-(-t // 2) if auto == "SAME_LOWER" else t // 2 for t in total]
        if auto == "NOTSET":
            begin = [t - t // 2 for t in total]
        end = [t - b for t, b in zip(total, begin)]
    return node.op("ConvTranspose", inputs, strides=strides, dilations=dilations, groups=node.attribute("group", 1), pads_begin=begin,
                   pads_end=end, output_padding=more, data_format="NCX", weights_format="IOX")


def max_pool(node: Node) -> Any:
    x = node.tensor(0)
    if x.dtype not in (*FLOATS, "s8", "u8"):
        raise Unfit(f"elements of {x.dtype}")
    at = window(node, node.shape(x)[2:], list(node.attribute("kernel_shape", [])))
    made = node.op("MaxPool", [x], kernel=at.kernel, strides=at.strides, dilations=at.dilations, pads_begin=at.begin, pads_end=at.reach,
                   data_format="NCX", rounding_type="floor")
    if not node.wants(1):
        return made
    return [made, _places_of_largest(node, x if x.dtype in FLOATS else node.cast(x, "f32"), at)]


def _places_of_largest(node: Node, x: Any, at: Window) -> Any:
    """The place of the first largest element of each window, in all of x. With storage_order 1, the axes of an image are counted in
    the reverse order."""
    shape = node.shape(x)
    images, pixels, spatial = shape[0] * shape[1], math.prod(shape[2:]), len(at.sizes)
    sources, inside = numpy.zeros([1] * (2 * spatial), int), numpy.ones([1] * (2 * spatial), bool)
    for i, extent in enumerate(shape[2:]):  # axes: taps of the window, then windows
        along = numpy.arange(at.kernel[i])[:, None] * at.dilations[i] + numpy.arange(at.sizes[i]) * at.strides[i] - at.begin[i]
        along = along.reshape([(at.kernel[i], at.sizes[i])[k // spatial] if k % spatial == i else 1 for k in range(2 * spatial)])
        sources, inside = sources * extent + numpy.clip(along, 0, extent - 1), inside & (along >= 0) & (along < extent)
    sources, inside = (numpy.broadcast_to(a, [*at.kernel, *at.sizes]).reshape(math.prod(at.kernel), -1) for a in (sources, inside))
    taps = node.take(node.reshape(x, [images, pixels]), sources, 1)
    taps = node.op("Select", [node.array(inside, "boolean"), taps, node.scalar(-math.inf, taps)])
    is_largest = node.op("LogicalAnd", [node.op("Equal", [taps, node.op("ReduceMax", [taps], axes=[1], keep_dims=True)]), node.array(inside, "boolean")])
    numbers = node.array(numpy.where(inside, sources, pixels - 1), "f64")
    first = node.op("ReduceMin", [node.op("Select", [is_largest, node.expand(numbers, [images, *sources.shape]), node.scalar(pixels - 1, numbers)])],
                    axes=[1], keep_dims=False)
    place = node.cast(first, "s64")
    if node.attribute("storage_order", 0):
        place = node.op("Gather", [node.array(numpy.arange(pixels).reshape(shape[2:][::-1]).transpose().reshape(-1), "s64"), place], axis=0)
    return node.reshape(node.op("Add", [place, node.array(numpy.arange(images)[:, None] * pixels, "s64")]), [*shape[:2], *at.sizes])


def average_pool(node: Node) -> Any:
    x = node.tensor(0)
    node.floating(x)
    at = window(node, node.shape(x)[2:], list(node.attribute("kernel_shape", [])))
    with_pads = bool(node.attribute("count_include_pad", 0))
    is_plain = all(d == 1 for d in at.dilations) and not (with_pads and any(r > e for r, e in zip(at.reach, at.end)))
    if is_plain:
        return node.op("AvgPool", [x], kernel=at.kernel, strides=at.strides, pads_begin=at.begin, pads_end=at.reach, data_format="NCX",
                       rounding_type="floor", exclude_pad=not with_pads)
    counts = _pixels(at, node.shape(x)[2:], with_pads)
    return node.op("Multiply", [_sums(node, x, at), node.array(1 / counts, x.dtype)])


def _sums(node: Node, x: Any, at: Window) -> Any:
    """Sums each window per channel, as a depthwise convolution with ones."""
    channels = node.shape(x)[1]
    ones = node.array(numpy.ones([channels, 1, *at.kernel]), x.dtype)
    if any(r < 0 for r in at.reach):
        starts = [0] * len(at.reach)
        ends = [e + min(r, 0) for e, r in zip(node.shape(x)[2:], at.reach)]
        x = node.op("Slice", [x], starts=starts, ends=ends, axes=list(range(2, 2 + len(starts))))
    return node.op("Convolution", [x, ones], strides=at.strides, dilations=at.dilations, groups=channels, pads_begin=at.begin,
                   pads_end=[max(r, 0) for r in at.reach], data_format="NCX", weights_format="OIX")


def _pixels(at: Window, extents: list, with_pads: bool) -> numpy.ndarray:
    """Counts the pixels of each window on the data, optionally including the pads."""
    counts = numpy.ones([1, 1] + [1] * len(extents))
    for i, extent in enumerate(extents):
        low, high = (-at.begin[i], extent + at.end[i]) if with_pads else (0, extent)
        first = numpy.arange(at.sizes[i])[:, None] * at.strides[i] - at.begin[i]
        pixels = first + numpy.arange(at.kernel[i]) * at.dilations[i]
        along = ((pixels >= low) & (pixels < high)).sum(1)
        counts = counts * along.reshape([1, 1] + [-1 if k == i else 1 for k in range(len(extents))])
    return counts


def lp_pool(node: Node) -> Any:
    x, p = node.tensor(0), node.attribute("p", 2)
    node.floating(x)
    at = window(node, node.shape(x)[2:], list(node.attribute("kernel_shape", [])))
    return _root(node, _sums(node, _powers(node, x, p), at), p)


def _powers(node: Node, x: Any, p: int) -> Any:
    return node.op("Square", [x]) if p == 2 else node.op("Pow", [node.op("Abs", [x])], beta=float(p))


def _root(node: Node, x: Any, p: int) -> Any:
    return node.op("Sqrt", [x]) if p == 2 else node.op("Pow", [x], beta=1 / p)


def over_all(kind: str) -> Callable:
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        node.floating(x)
        return node.op(kind, [x], axes=list(range(2, node.rank(x))), keep_dims=True)

    return rule


def global_lp_pool(node: Node) -> Any:
    x, p = node.tensor(0), node.attribute("p", 2)
    node.floating(x)
    return _root(node, node.op("ReduceSum", [_powers(node, x, p)], axes=list(range(2, node.rank(x))), keep_dims=True), p)


def response_norm(node: Node) -> Any:
    """LRN: the sum of squares over neighbouring channels, as the mean over a window of channels times its size."""
    x, size = node.tensor(0), node.attribute("size", 1)
    node.floating(x)
    shape = node.shape(x)
    if len(shape) < 3:
        raise Unfit(f"rank {len(shape)}, allowed is 3 or more")
    alpha, beta, bias = (node.attribute(name, default) for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    plane = node.reshape(node.op("Square", [x]), [shape[0], 1, shape[1], math.prod(shape[2:])])
    begin = (size - 1) // 2
    mean = node.op("AvgPool", [plane], kernel=[size, 1], strides=[1, 1], pads_begin=[begin, 0], pads_end=[size - 1 - begin, 0],
                   data_format="NCX", rounding_type="floor", exclude_pad=False)
    base = node.op("Add", [node.op("Multiply", [node.reshape(mean, shape), node.scalar(alpha, x)]), node.scalar(bias, x)])
    return node.op("Multiply", [x, node.op("Pow", [base], beta=-beta)])


def columns_to_image(node: Node) -> Any:
    """Col2Im: the sum of overlapping blocks is a transposed convolution whose weights copy each entry of a block to its place."""
    x, image, block = node.tensor(0), node.integers(1), node.integers(2)
    node.floating(x)
    spatial, (count, rows, columns) = len(image), node.shape(x)
    strides, dilations = (list(node.attribute(name, None) or [1] * spatial) for name in ("strides", "dilations"))
    pads = list(node.attribute("pads", None) or [0] * (2 * spatial))
    begin, end, taps = pads[:spatial], pads[spatial:], math.prod(block)
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, block)]
    blocks = [(e + b + a - span) // s + 1 for e, b, a, span, s in zip(image, begin, end, spans, strides)]
    if math.prod(blocks) != columns or rows % taps:
        raise Unfit(f"input {[count, rows, columns]}, allowed is {math.prod(blocks)} columns and a multiple of {taps} rows")
    rest = [e + b + a - (n - 1) * s - span for e, b, a, n, s, span in zip(image, begin, end, blocks, strides, spans)]
    images = node.reshape(x, [count * (rows // taps), taps, *blocks])
    weights = node.array(numpy.eye(taps).reshape([taps, 1, *block]), x.dtype)
    made = node.op("ConvTranspose", [images, weights], strides=strides, dilations=dilations, pads_begin=begin, pads_end=end, output_padding=rest,
                   data_format="NCX", weights_format="IOX")
    return node.reshape(made, [count, rows // taps, *image])


RULES = {"Col2Im": columns_to_image, "Conv": convolution, "ConvTranspose": transposed_convolution, "MaxPool": max_pool,
         "AveragePool": average_pool, "LpPool": lp_pool, "GlobalAveragePool": over_all("ReduceMean"), "GlobalMaxPool": over_all("ReduceMax"), "GlobalLpPool": global_lp_pool, "LRN": response_norm}
