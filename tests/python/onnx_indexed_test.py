"""Elements by indices that are data: the graph is compiled once for all of them, and reports those out of range."""
import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import lamina  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)


def model_of(node, inputs, opset=20, outputs=("y",)):
    names = [name for name in node.input if name]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                                            for name, x in zip(names, inputs)], [helper.make_empty_tensor_value_info(name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def check(node, *sets, opset=20):
    """Each set is a list of inputs of the same shapes."""
    model = model_of(node, sets[0], opset)
    run = lamina.from_onnx(model)
    for inputs in sets:
        wanted, = ReferenceEvaluator(model).run(None, dict(zip([name for name in node.input if name], inputs)))
        made, = run(*inputs)
        assert made.dtype == wanted.dtype
        np.testing.assert_allclose(made, wanted, rtol=1e-6)
    assert run.static_inputs == [] and len(run._compiled) == 1
    return run


@pytest.mark.parametrize("axis, shape", [(0, (6, 4, 2)), (1, (3, 9, 5)), (-1, (1, 4, 3))])
@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_gathered_elements(axis, shape, kind):
    """The other axes of the indices may be shorter, which ONNX's evaluator does not take."""
    extent, node = X.shape[axis], helper.make_node("GatherElements", ["x", "i"], ["y"], axis=axis)
    run = lamina.from_onnx(model_of(node, [X, np.zeros(shape, kind)]))
    for _ in range(3):
        indices = RNG.integers(-extent, extent, shape).astype(kind)
        part = X[tuple(slice(None) if i == axis % 3 else slice(n) for i, n in enumerate(shape))]
        np.testing.assert_array_equal(run(X, indices)[0], np.take_along_axis(part, indices % extent, axis))
    assert run.static_inputs == [] and len(run._compiled) == 1


@pytest.mark.parametrize("batch, shape", [(0, (7, 2)), (0, (2, 3, 3)), (1, (3, 6, 2)), (2, (3, 4, 1)), (1, (3, 1))])
def test_gathered_slices(batch, shape):
    extents = X.shape[batch:batch + shape[-1]]
    indices = [np.stack([RNG.integers(-e, e, shape[:-1]) for e in extents], -1) for _ in range(2)]
    check(helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=batch), *([X, i] for i in indices))


@pytest.mark.parametrize("values", [np.array([0, 1], np.float32), np.array([3, -2], np.int64)], ids=str)
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis, values):
    node = helper.make_node("OneHot", ["i", "depth", "v"], ["y"], axis=axis)
    model = model_of(node, [np.zeros((2, 3), np.int64), np.array(4), values])
    run = lamina.from_onnx(model)
    for i in (RNG.integers(-4, 4, (2, 3)), np.array([[7, -9, 4], [3, -4, 0]])):
        wanted, = ReferenceEvaluator(model).run(None, {"i": np.where((i < -4) | (i > 3), 77, i), "depth": np.array(4), "v": values})
        np.testing.assert_array_equal(run(i, np.array(4), values)[0], wanted)
    assert run.static_inputs == ["depth"]


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("kind", [np.float32, np.int32], ids=str)
def test_scattered_elements(reduction, kind):
    if reduction == "add" and kind == np.int32:
        pytest.skip("sums by index are of floats")
    x, updates = (X * 9).astype(kind), (RNG.standard_normal((3, 2, 5)) * 9).astype(kind)
    indices = [np.stack([RNG.permutation(4)[:2] - 4 * RNG.integers(0, 2) for _ in range(15)]).reshape(3, 5, 2).transpose(0, 2, 1) for _ in range(2)]
    check(helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1, reduction=reduction), *([x, i, updates] for i in indices))


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scattered_slices(reduction):
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction)
    updates = RNG.standard_normal((2, 5)).astype(np.float32)
    updates[0, 0] = np.inf
    check(node, *([X, np.array(i), updates] for i in ([[0, 1], [2, 3]], [[-1, -1], [0, 0]])))


@pytest.mark.parametrize("node, inputs", [
    (helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1), [X, np.full((3, 1, 5), 4)]),
    (helper.make_node("GatherND", ["x", "i"], ["y"]), [X, np.array([[0, -5]])]),
    (helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1), [X, np.full((1, 1, 1), -5), np.ones((1, 1, 1), np.float32)]),
    (helper.make_node("ScatterND", ["x", "i", "u"], ["y"]), [X, np.array([[3]]), np.ones((1, 4, 5), np.float32)]),
    (helper.make_node("ScatterND", ["x", "i", "u"], ["y"]), [X, np.array([[1], [1]]), np.ones((2, 4, 5), np.float32)]),
    (helper.make_node("TensorScatter", ["x", "u", "i"], ["y"]), [X, X[:, :2], np.array([0, 3, 0])])], ids=lambda v: getattr(v, "op_type", ""))
def test_indices_out_of_range_and_two_updates_of_one_place_are_reported(node, inputs):
    run = lamina.from_onnx(model_of(node, inputs, 24))
    with pytest.raises(lamina.Error, match="allowed"):
        run(*inputs)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis, length", [(-2, 2), (1, 4), (2, 1)])
def test_a_cache_is_written_at_data(mode, axis, length):
    update = RNG.standard_normal([length if i == axis % 3 else e for i, e in enumerate(X.shape)]).astype(np.float32)
    last = X.shape[axis] - length if mode == "linear" else 3 * X.shape[axis]
    starts = ([0, last, last // 2], [last // 3, 0, last])
    node = helper.make_node("TensorScatter", ["x", "u", "i"], ["y"], axis=axis, mode=mode)
    check(node, *([X, update, np.array(start)] for start in starts), opset=24)


@pytest.mark.parametrize("attributes", [{"kernel_shape": [2, 2], "strides": [2, 2]}, {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "dilations": [1, 2]},
                                        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 1, 1]}], ids=str)
@pytest.mark.parametrize("order", [0, 1])
def test_the_places_of_the_largest_elements(attributes, order):
    x = RNG.standard_normal((2, 3, 7, 6)).astype(np.float32)
    node = helper.make_node("MaxPool", ["x"], ["y", "places"], storage_order=order, **attributes)
    y, places = lamina.from_onnx(model_of(node, [x], 20, ("y", "places")))(x)
    flat = x.transpose(0, 1, 3, 2).reshape(-1) if order else x.reshape(-1)
    np.testing.assert_array_equal(flat[places], y)


@pytest.mark.parametrize("strides", [[2, 2], [1, 1]], ids=str)
def test_pooling_is_undone(strides):
    x = RNG.standard_normal((2, 2, 6, 4)).astype(np.float32)
    nodes = [helper.make_node("MaxPool", ["x"], ["p", "i"], kernel_shape=[2, 2], strides=strides),
             helper.make_node("MaxUnpool", ["p", "i"], ["y"], kernel_shape=[2, 2], strides=strides)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, x.shape)], [helper.make_empty_tensor_value_info("y")])
    made, = lamina.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))(x)
    places = made != 0
    np.testing.assert_allclose(made[places], x[places], rtol=1e-6)
    assert places.reshape(2, 2, -1).any(-1).all()
