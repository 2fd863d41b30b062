"""Models with results whose size, and with values that shapes need, that data determine: they run in several stages."""
import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import lamina  # noqa: E402

RNG = np.random.default_rng(0)
NODE = helper.make_node


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def model_of(nodes, inputs, outputs, constants=None, opset=20):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in inputs.items()],
                              [helper.make_empty_tensor_value_info(name) for name in outputs],
                              [numpy_helper.from_array(np.asarray(v), name) for name, v in (constants or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def check(nodes, sets, outputs=("y",), constants=None):
    """sets: dicts of inputs of the same shapes."""
    model = model_of(nodes, sets[0], outputs, constants)
    run, evaluator = lamina.from_onnx(model), ReferenceEvaluator(model)
    for inputs in sets:
        for made, wanted in zip(run(inputs), evaluator.run(None, inputs), strict=True):
            assert made.dtype == wanted.dtype and made.shape == wanted.shape
            np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5)
    return run


def boxes_and_scores(boxes, batches=2, kinds=3):
    corners = RNG.uniform(0, 1, (batches, boxes, 2, 2)).astype(np.float32)
    return {"boxes": corners.reshape(batches, boxes, 4), "scores": RNG.uniform(0, 1, (batches, kinds, boxes)).astype(np.float32)}


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("limits", [(5, 0.2, 0.4), (3, 0.5, None), (100, 0.0, 0.9), (0, 0.5, 0.1)], ids=str)
def test_boxes_are_selected_as_onnx_says(limits, centred):
    constants = {name: np.array([v], np.int64 if name == "most" else np.float32) for name, v in zip(("most", "overlap", "least"), limits) if v is not None}
    node = NODE("NonMaxSuppression", ["boxes", "scores", *constants], ["y"], center_point_box=centred)
    check([node], [boxes_and_scores(30), boxes_and_scores(30)], constants=constants)


def test_boxes_of_a_detector():
    """Both stages read the same weights; the second one reads boxes that the first one has computed."""
    nodes = [NODE("MatMul", ["x", "w"], ["b"]), NODE("Reshape", ["b", "shape"], ["boxes"]), NODE("Sigmoid", ["s"], ["scores"]),
             NODE("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["found"]), NODE("Slice", ["found", "two", "three", "one"], ["numbers"]),
             NODE("Squeeze", ["numbers", "one"], ["flat"]), NODE("Squeeze", ["boxes", "zero"], ["all"]), NODE("Gather", ["all", "flat"], ["chosen"]),
             NODE("MatMul", ["chosen", "w"], ["y"])]
    constants = {"w": some(4, 4), "shape": np.array([1, 20, 4]), "most": np.array([4]), "overlap": np.array([0.3], np.float32), "one": np.array([1]),
                 "two": np.array([2]), "three": np.array([3]), "zero": np.array([0])}
    run = check(nodes, [{"x": some(20, 4), "s": some(1, 2, 20)} for _ in range(3)], ["y", "found", "boxes"], constants)
    assert "MatMul" in str(run.explain())


def test_places_that_are_not_zero():
    nodes = [NODE("Relu", ["x"], ["r"]), NODE("NonZero", ["r"], ["places"]), NODE("Transpose", ["places"], ["rows"]), NODE("GatherND", ["r", "rows"], ["v"]),
             NODE("Exp", ["v"], ["y"])]
    run = check(nodes, [{"x": some(4, 5)} for _ in range(4)])
    assert run.static_inputs == []


def test_integers_that_are_not_zero_are_data():
    run = check([NODE("NonZero", ["x"], ["y"])], [{"x": RNG.integers(0, 2, (3, 4))} for _ in range(3)])
    assert run.static_inputs == []


def test_one_result_after_the_other():
    nodes = [NODE("NonZero", ["x"], ["a"]), NODE("Cast", ["a"], ["f"], to=TensorProto.FLOAT), NODE("Sub", ["f", "one"], ["s"]), NODE("NonZero", ["s"], ["b"]),
             NODE("ReduceSum", ["b"], ["y"])]
    check(nodes, [{"x": (some(6) > 0).astype(np.float32)} for _ in range(3)], constants={"one": np.float32(1)})


def test_the_compressed_elements():
    nodes = [NODE("Greater", ["x", "zero"], ["is"]), NODE("Compress", ["x", "is"], ["y"])]
    check(nodes, [{"x": some(9)} for _ in range(3)], constants={"zero": np.float32(0)})


def test_unique_elements_and_their_counts():
    nodes = [NODE("Round", ["x"], ["r"]), NODE("Unique", ["r"], ["u", "first", "inverse", "counts"]), NODE("Gather", ["u", "inverse"], ["y"])]
    check(nodes, [{"x": 2 * some(20)} for _ in range(3)], ["y", "u", "counts"])


def test_a_number_of_elements_that_data_determine():
    """k of TopK, computed from x: the part behind it is compiled for each value."""
    nodes = [NODE("Greater", ["x", "zero"], ["is"]), NODE("Cast", ["is"], ["n"], to=TensorProto.INT64), NODE("ReduceSum", ["n", "axis"], ["k"]),
             NODE("TopK", ["x", "k"], ["values", "places"]), NODE("Mul", ["values", "values"], ["y"])]
    constants = {"zero": np.float32(0), "axis": np.array([0])}
    check(nodes, [{"x": some(8)} for _ in range(4)], ["y", "places"], constants)


def test_a_result_that_is_also_the_last():
    check([NODE("NonZero", ["x"], ["y"])], [{"x": some(3, 3)}])
    check([NODE("Abs", ["x"], ["a"]), NODE("NonZero", ["a"], ["y"])], [{"x": some(3, 3)}], ["a", "y"])


def test_inside_of_a_branch_it_is_refused_by_name():
    branch = helper.make_graph([NODE("NonZero", ["x"], ["u"], name="nz")], "b", [], [helper.make_empty_tensor_value_info("u")])
    nodes = [NODE("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    with pytest.raises(lamina.Error, match=r"\(If, opset 20\): node 'nz' \(NonZero, opset 20\): the size of its result depends on data"):
        lamina.from_onnx(model_of(nodes, {"x": some(3)}, ["y"], {"c": np.array(True)}))
