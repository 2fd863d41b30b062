"""GridSample, RoiAlign and DeformConv beside ONNX's evaluator, with positions far outside of the image."""
import itertools

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import lamina  # noqa: E402

RNG = np.random.default_rng(0)


def model_of(node, inputs, opset=20):
    names = [name for name in node.input if name]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                                            for name, x in zip(names, inputs)], [helper.make_empty_tensor_value_info("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def check(node, inputs, opset=20, rtol=1e-4):
    model = model_of(node, inputs, opset)
    made, = lamina.from_onnx(model)(*inputs)
    wanted, = ReferenceEvaluator(model).run(None, dict(zip([name for name in node.input if name], inputs)))
    assert made.dtype == wanted.dtype
    np.testing.assert_allclose(made.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=rtol)


def grid_of(*shape):
    """Positions inside of the image, at its borders and far outside, and in the middle between pixels."""
    grid = RNG.uniform(-1.2, 1.2, shape).astype(np.float32)
    hard = np.array([-1, 1, 0, -3.7, 2.6, 0.5, -0.5, 9.1], np.float32)
    flat = grid.reshape(-1)
    flat[:: max(len(flat) // 12, 1)][:8] = hard[:len(flat[:: max(len(flat) // 12, 1)][:8])]
    return grid


@pytest.mark.parametrize("mode, padding, corners", itertools.product(["linear", "nearest", "cubic"], ["zeros", "border", "reflection"], [0, 1]))
def test_grid_sample(mode, padding, corners):
    if (mode, padding) == ("cubic", "border"):
        pytest.skip("ONNX's evaluator differs from PyTorch")
    x = RNG.standard_normal((2, 3, 5, 4)).astype(np.float32)
    check(helper.make_node("GridSample", ["x", "grid"], ["y"], mode=mode, padding_mode=padding, align_corners=corners), [x, grid_of(2, 6, 3, 2)])


@pytest.mark.parametrize("corners", [0, 1])
def test_a_cubic_beside_the_border_reads_the_border(corners):
    """As in PyTorch and ONNX Runtime: the image continues with the elements of its border."""
    x, grid, wide = RNG.standard_normal((2, 3, 5, 4)).astype(np.float32), grid_of(2, 6, 3, 2), 40
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], mode="cubic", padding_mode="border", align_corners=corners)
    made, = lamina.from_onnx(model_of(node, [x, grid]))(x, grid)
    extents = np.array([4, 5]) - corners
    inside = grid.astype(np.float64) * extents / (extents + 2 * wide)  # the same places in the larger image
    larger = np.pad(x, [(0, 0), (0, 0), (wide, wide), (wide, wide)], mode="edge").astype(np.float64)
    plain = helper.make_node("GridSample", ["x", "grid"], ["y"], mode="cubic", align_corners=corners)
    wanted, = ReferenceEvaluator(model_of(plain, [larger, inside])).run(None, {"x": larger, "grid": inside})
    np.testing.assert_allclose(made, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(1, 2, 7), (2, 1, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_grid_sample_of_other_ranks(shape, mode):
    rank = len(shape) - 2
    x, grid = RNG.standard_normal(shape).astype(np.float32), grid_of(shape[0], *range(2, 2 + rank), rank)
    check(helper.make_node("GridSample", ["x", "grid"], ["y"], mode=mode, padding_mode="reflection", align_corners=1), [x, grid])


@pytest.mark.parametrize("x_type, grid_type", [(np.float64, np.float64), (np.float16, np.float16), (np.float64, np.float32), (np.int32, np.float32)], ids=str)
def test_grid_sample_of_other_types(x_type, grid_type):
    x = (RNG.standard_normal((1, 2, 4, 4)) * 10).astype(x_type)
    mode = "nearest" if x.dtype.kind == "i" else "linear"
    check(helper.make_node("GridSample", ["x", "grid"], ["y"], mode=mode), [x, grid_of(1, 3, 3, 2).astype(grid_type)], rtol=2e-2 if x_type == np.float16 else 1e-4)


def test_pixels_outside_of_the_image_are_zero_also_beside_infinities():
    x = np.full((1, 1, 2, 2), np.inf, np.float32)
    grid = np.array([[[[5, 5], [np.inf, 0], [-np.inf, np.inf], [np.nan, 0]]]], np.float32)
    made, = lamina.from_onnx(model_of(helper.make_node("GridSample", ["x", "grid"], ["y"]), [x, grid]))(x, grid)
    np.testing.assert_array_equal(made, np.zeros((1, 1, 1, 4)))


def test_a_grid_without_positions():
    x, grid = np.ones((1, 2, 3, 3), np.float32), np.ones((1, 0, 4, 2), np.float32)
    made, = lamina.from_onnx(model_of(helper.make_node("GridSample", ["x", "grid"], ["y"]), [x, grid]))(x, grid)
    assert made.shape == (1, 2, 0, 4)


@pytest.mark.parametrize("mode, transformation", itertools.product(["avg", "max"], ["half_pixel", "output_half_pixel"]))
def test_roi_align(mode, transformation):
    x = RNG.standard_normal((2, 3, 8, 6)).astype(np.float32)
    regions = np.array([[0, 0, 5, 7], [1.5, 2.5, 1.6, 2.6], [-9, -9, 20, 20], [3, 1, 2, 0.5], [4, 4, 90, 90]], np.float32)
    node = helper.make_node("RoiAlign", ["x", "rois", "batch"], ["y"], mode=mode, coordinate_transformation_mode=transformation, output_height=3,
                            output_width=2, sampling_ratio=2, spatial_scale=0.75)
    check(node, [x, regions, np.array([0, 1, 1, 0, 1])])


def test_roi_align_whose_number_of_samples_depends_on_data_is_refused():
    node = helper.make_node("RoiAlign", ["x", "rois", "batch"], ["y"])
    with pytest.raises(lamina.Error, match="sampling_ratio 0"):
        lamina.from_onnx(model_of(node, [np.ones((1, 1, 4, 4), np.float32), np.ones((1, 4), np.float32), np.zeros(1, np.int64)]))


@pytest.mark.parametrize("groups, offset_groups", [(1, 1), (2, 1), (1, 2), (2, 4)])
def test_deformable_convolution(groups, offset_groups):
    x, weights = RNG.standard_normal((2, 4, 6, 5)).astype(np.float32), RNG.standard_normal((6, 4 // groups, 3, 2)).astype(np.float32)
    node = helper.make_node("DeformConv", ["x", "w", "offset", "b", "mask"], ["y"], group=groups, offset_group=offset_groups, pads=[1, 0, 1, 1],
                            strides=[2, 1], dilations=[1, 2])
    sizes = (3, 4)
    offset = RNG.uniform(-3, 3, (2, offset_groups * 12, *sizes)).astype(np.float32)
    mask, bias = RNG.uniform(0, 1, (2, offset_groups * 6, *sizes)).astype(np.float32), RNG.standard_normal(6).astype(np.float32)
    check(node, [x, weights, offset, bias, mask])
