"""Resize: what has the weights of lamina's Interpolate becomes this op; all other forms are products or gathers."""
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import lamina  # noqa: E402

RNG = np.random.default_rng(3)
SHAPE = (1, 5, 6, 7)


def kinds_of(sizes, shape=SHAPE, scales=None, **attributes):
    """Compares a Resize with ONNX's evaluator, and returns the kinds of its ops."""
    x = RNG.standard_normal(shape).astype(np.float32)
    constants = [numpy_helper.from_array(np.array(sizes, np.int64), "sizes") if scales is None
                 else numpy_helper.from_array(np.array(scales, np.float32), "scales")]
    node = helper.make_node("Resize", ["x", "", "", "sizes"] if scales is None else ["x", "", "scales"], ["y"], **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_empty_tensor_value_info("y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    run, wanted = lamina.from_onnx(model), ReferenceEvaluator(model).run(None, {"x": x})[0]
    made = run(x)[0]
    assert made.shape == wanted.shape and np.abs(made - wanted).max() <= 1e-6 * np.abs(x).max() * 4
    return {op["kind"] for op in run.explain().data()["ops"]} - {"End"}


@pytest.mark.parametrize("sizes", [(1, 5, 12, 14), (1, 5, 3, 4), (1, 5, 9, 7), (1, 5, 6, 1), (1, 5, 1, 1)])
@pytest.mark.parametrize("positions", ["half_pixel", "align_corners"])
def test_linear(sizes, positions):
    assert kinds_of(sizes, mode="linear", coordinate_transformation_mode=positions) == {"Interpolate"}


def test_linear_along_three_axes():
    assert kinds_of((2, 3, 8, 6, 5), shape=(2, 3, 4, 3, 5), mode="linear") == {"Interpolate"}


@pytest.mark.parametrize("factor", [2, 3])
def test_nearest_by_a_factor(factor):
    scales = [1, 1, factor, factor]
    assert kinds_of(None, scales=scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor") == {"Interpolate"}


# What differs from Interpolate in one respect.
@pytest.mark.parametrize("attributes", [
    dict(mode="cubic"), dict(mode="linear", coordinate_transformation_mode="asymmetric"), dict(mode="linear", antialias=1, sizes=(1, 5, 3, 4)),
    dict(mode="linear", sizes=(1, 10, 6, 14)), dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="ceil")], ids=str)
def test_others(attributes):
    sizes = attributes.pop("sizes", (1, 5, 12, 14))
    assert "Interpolate" not in kinds_of(sizes, **attributes)
