"""Scales and shifts behind convolutions: which are folded into the weights, and that results stay the same."""

import numpy
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import lamina  # noqa: E402
from lamina.onnx.scales import fold_scales  # noqa: E402

RNG = numpy.random.default_rng(0)
CHANNELS = {"gamma": (6,), "beta": (6,), "mean": (6,), "one": (), "row": (6, 1, 1), "image": (1, 1, 5, 5), "batch": (2, 6, 1, 1)}
VALUES = {"w": RNG.standard_normal((6, 2, 3, 3)).astype("f"), "b": RNG.standard_normal(6).astype("f"), "variance": RNG.random(6).astype("f") + 0.5,
          **{name: RNG.standard_normal(shape).astype("f") for name, shape in CHANNELS.items()}}
CONV = helper.make_node("Conv", ["x", "w", "b"], ["c"], group=2, pads=[1, 1, 1, 1])
NORM = helper.make_node("BatchNormalization", ["c", "gamma", "beta", "mean", "variance"], ["n"], epsilon=1e-3)


def folded(*nodes, outputs=("y",)):
    return fold_scales(list(nodes), dict(VALUES), set(outputs))


def kinds(nodes):
    return [node.op_type for node in nodes]


def model_of(*nodes):
    graph = helper.make_graph(list(nodes), "g", [helper.make_tensor_value_info("x", 1, (2, 4, 5, 5))],
                              [helper.make_tensor_value_info("y", 1, None)], [numpy_helper.from_array(v, name) for name, v in VALUES.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("factor", ["one", "row"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_chain_of_scales_becomes_one_convolution_with_the_same_result(factor, is_first):
    nodes = [CONV, NORM, helper.make_node("Mul", ["n", factor] if is_first else [factor, "n"], ["m"]), helper.make_node("Add", ["m", "row"], ["a"]),
             helper.make_node("Relu", ["a"], ["y"])]
    assert kinds(folded(*nodes)) == ["Conv", "Relu"]
    x = RNG.standard_normal((2, 4, 5, 5)).astype("f")
    (sums,) = ReferenceEvaluator(model_of(helper.make_node("Conv", ["x", "w", "b"], ["y"], group=2, pads=[1, 1, 1, 1]))).run(None, {"x": x})
    gamma, beta, mean, variance = (VALUES[name].reshape(-1, 1, 1) for name in ("gamma", "beta", "mean", "variance"))
    norm = gamma * (sums - mean) / numpy.sqrt(variance + 1e-3) + beta
    wanted = numpy.maximum(norm * VALUES[factor] + VALUES["row"], 0)
    (made,) = lamina.from_onnx(model_of(*nodes))(x)
    numpy.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)


def test_a_convolution_without_bias_gets_one():
    conv = helper.make_node("Conv", ["x", "w"], ["c"], group=2)
    (made,) = folded(conv, helper.make_node("Add", ["c", "row"], ["y"]))
    assert len(made.input) == 3 and made.output == ["y"]


@pytest.mark.parametrize("second", [helper.make_node("Relu", ["c"], ["z"]), helper.make_node("If", ["x"], ["z"], then_branch=helper.make_graph(
    [helper.make_node("Relu", ["c"], ["r"])], "t", [], [helper.make_tensor_value_info("r", 1, None)]))], ids=["node", "subgraph"])
def test_a_result_that_is_also_read_elsewhere_stays(second):
    assert kinds(folded(CONV, helper.make_node("Mul", ["c", "row"], ["y"]), second)) == ["Conv", "Mul", second.op_type]


def test_a_result_that_is_an_output_stays():
    assert kinds(folded(CONV, helper.make_node("Mul", ["c", "row"], ["y"]), outputs=("y", "c"))) == ["Conv", "Mul"]


@pytest.mark.parametrize("operand", ["x", "image", "batch"])
def test_an_operand_that_is_unknown_or_varies_along_other_axes_is_not_folded(operand):
    assert kinds(folded(CONV, helper.make_node("Mul", ["c", operand], ["y"]))) == ["Conv", "Mul"]


def test_a_result_times_itself_is_not_folded():
    assert kinds(folded(CONV, helper.make_node("Mul", ["c", "c"], ["y"]))) == ["Conv", "Mul"]


def test_a_norm_of_the_batch_is_not_folded():
    norm = helper.make_node("BatchNormalization", ["c", "gamma", "beta", "mean", "variance"], ["y", "m", "v"], training_mode=1)
    assert kinds(folded(CONV, norm)) == ["Conv", "BatchNormalization"]


def test_weights_of_16_bits_stay():
    values = {**VALUES, "w": VALUES["w"].astype("float16"), "b": VALUES["b"].astype("float16"), "row": VALUES["row"].astype("float16")}
    assert kinds(fold_scales([CONV, helper.make_node("Mul", ["c", "row"], ["y"])], values, {"y"})) == ["Conv", "Mul"]
