"""Products of integers, also behind a dynamic quantisation, and arithmetic on integers."""
import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import lamina  # noqa: E402

RNG = np.random.default_rng(0)


def model_of(nodes, inputs, constants=None, opset=20):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in inputs.items()],
                              [helper.make_empty_tensor_value_info("y")], [numpy_helper.from_array(v, name) for name, v in (constants or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def integers(kind, *shape):
    return RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)


@pytest.mark.parametrize("k", [7, 300, 1100])
@pytest.mark.parametrize("zeros", [{}, {"za": (), "zb": ()}, {"za": (5,), "zb": (6,)}, {"za": (5, 1), "zb": (1, 6)}], ids=str)
@pytest.mark.parametrize("left, right", [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8)])
def test_products_of_integers_are_exact(k, zeros, left, right):
    inputs = {"a": integers(left, 5, k), "b": integers(right, k, 6)}
    constants = {name: integers(left if name == "za" else right, *shape) for name, shape in zeros.items()}
    node = helper.make_node("MatMulInteger", ["a", "b", *constants], ["y"])
    run = lamina.from_onnx(model_of([node], inputs, constants))
    wide = {name: v.astype(np.int64) for name, v in {**inputs, **constants}.items()}
    za, zb = wide.get("za", np.int64(0)), wide.get("zb", np.int64(0))
    wanted = (wide["a"] - (za[:, None] if za.ndim == 1 else za)) @ (wide["b"] - zb)
    made, = run(inputs)
    assert made.dtype == np.int32 and run.static_inputs == []
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("k", [7, 1100])
@pytest.mark.parametrize("of_left, of_right", [((5, 0), (0, 6)), ((0,), (0, 6)), ((5, 0), (0,)), ((0,), (0,)), ((2, 5, 0), (2, 0, 6)), ((5, 0), (2, 0, 6))], ids=str)
@pytest.mark.parametrize("left, is_constant", [(np.uint8, True), (np.int8, True), (np.uint8, False)])
def test_a_zero_point_that_is_data(k, of_left, of_right, left, is_constant):
    a, b = integers(left, *(e or k for e in of_left)), integers(np.int8, *(e or k for e in of_right))
    inputs, constants = {"a": a, "za": integers(left)}, {"b": b, "zb": np.array(-3, np.int8)}
    if not is_constant:
        inputs["b"] = constants.pop("b")
    run = lamina.from_onnx(model_of([helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])], inputs, constants))
    for za in (np.iinfo(left).min, 5, np.iinfo(left).max):
        inputs["za"] = np.array(za, left)
        made, = run(inputs)
        np.testing.assert_array_equal(made, (a.astype(np.int64) - int(za)) @ (b.astype(np.int64) + 3))
    assert run.static_inputs == []


@pytest.mark.parametrize("k", [64, 2048])
def test_a_dynamically_quantised_product(k):
    """The form in which quantisation tools write linear layers."""
    x, weights = RNG.standard_normal((9, k)).astype(np.float32), integers(np.int8, k, 16)
    scale = RNG.uniform(0.01, 0.02, 16).astype(np.float32)
    nodes = [helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "sx", "zx"]), helper.make_node("MatMulInteger", ["q", "w", "zx", "zw"], ["i"]),
             helper.make_node("Cast", ["i"], ["f"], to=1), helper.make_node("Mul", ["sx", "sw"], ["s"]), helper.make_node("Mul", ["f", "s"], ["y"])]
    model = model_of(nodes, {"x": x}, {"w": weights, "zw": np.zeros(16, np.int8), "sw": scale})
    wanted, = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(lamina.from_onnx(model)(x)[0], wanted, rtol=1e-5, atol=1e-4 * np.abs(wanted).max())


def steps(function):
    """The names of the steps that run."""
    return [kernel["name"] for partition in function.explain().data()["partitions"] for kernel in partition["kernels"]]


def dequantises_weights(step):
    return "dequantize_s8" in step


@pytest.fixture(scope="module")
def convolves_integers():
    """Whether this machine's convolutions multiply integers, as lamina says of a small one. Products do on every machine."""
    constants = {"w": integers(np.int8, 8, 8, 1, 1), "s": np.array(0.5, np.float32), "zx": np.array(128, np.uint8), "zw": np.array(0, np.int8)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "zx"], ["q"]), helper.make_node("QLinearConv", ["q", "s", "zx", "w", "s", "zw", "s", "zx"], ["y"])]
    x = np.ones((1, 8, 4, 4), np.float32)
    run = lamina.from_onnx(model_of(nodes, {"x": x}, constants))
    run(x)
    return not any(map(dequantises_weights, steps(run)))


@pytest.mark.parametrize("zero", [128, 121])
@pytest.mark.parametrize("kind", ["MatMul", "Conv", "QLinearMatMul", "QLinearConv", "dynamic"])
def test_quantised_products_are_computed_in_integers(kind, zero, convolves_integers):
    """No step dequantises weights: a kernel before the product, and one behind it. Convolutions, where they multiply integers."""
    shape, of_weights, axis = ((1, 32, 9, 9), (24, 32, 3, 3), 0) if "Conv" in kind else ((16, 64), (64, 24), 1)
    constants = {"w": integers(np.int8, *of_weights), "sw": RNG.uniform(0.01, 0.02, 24).astype(np.float32), "zw": np.zeros(24, np.int8),
                 "sx": np.array(0.03, np.float32), "zx": np.array(zero, np.uint8), "sy": np.array(0.5, np.float32), "zy": np.array(zero, np.uint8)}
    x = RNG.standard_normal(shape).astype(np.float32)
    node, scaled = helper.make_node, ["sx", "zx"]
    if kind == "dynamic":
        nodes = [node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), node("MatMulInteger", ["q", "w", "z", "zw"], ["i"]), node("Cast", ["i"], ["f"], to=1),
                 node("Mul", ["s", "sw"], ["scale"]), node("Mul", ["f", "scale"], ["y"])]
    elif kind.startswith("QLinear"):
        nodes = [node("QuantizeLinear", ["x", *scaled], ["q"]), node(kind, ["q", *scaled, "w", "sw", "zw", "sy", "zy"], ["p"]),
                 node("DequantizeLinear", ["p", "sy", "zy"], ["y"])]
    else:
        nodes = [node("QuantizeLinear", ["x", *scaled], ["q"]), node("DequantizeLinear", ["q", *scaled], ["d"]),
                 node("DequantizeLinear", ["w", "sw", "zw"], ["f"], axis=axis), node(kind, ["d", "f"], ["p"]),
                 node("QuantizeLinear", ["p", "sy", "zy"], ["r"]), node("DequantizeLinear", ["r", "sy", "zy"], ["y"])]
    model = model_of(nodes, {"x": x}, constants)
    run = lamina.from_onnx(model)
    made, wanted = run(x)[0], ReferenceEvaluator(model).run(None, {"x": x})[0]
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-4 if kind == "dynamic" else 0.51)  # halves may round to either side
    assert (np.abs(made - wanted) < 1e-3).mean() > 0.99
    names, dequantising = steps(run), int("Conv" in kind and not convolves_integers)
    assert len(names) == 3 + dequantising and sum(map(dequantises_weights, names)) == dequantising, names


@pytest.mark.parametrize("opset", [13, 20])
def test_a_residual_sum_leaves_convolutions_in_integers(opset, convolves_integers):
    """Both convolutions and the sum read the same Dequantize; the bias is dequantised when the model is read."""
    node, shape = helper.make_node, (1, 32, 9, 9)
    constants = {"sx": np.array(0.03, np.float32), "zx": np.array(128, np.uint8), "z": np.zeros(32, np.int8), "zb": np.zeros(32, np.int32)}
    nodes = [node("QuantizeLinear", ["x", "sx", "zx"], ["q"]), node("DequantizeLinear", ["q", "sx", "zx"], ["d"])]
    for name in "ab":
        constants |= {f"w{name}": integers(np.int8, 32, 32, 3, 3), f"b{name}": RNG.integers(-999, 999, 32).astype(np.int32),
                      f"s{name}": RNG.uniform(0.01, 0.02, 32).astype(np.float32), f"t{name}": np.full(32, 0.001, np.float32)}
        nodes += [node("DequantizeLinear", [f"w{name}", f"s{name}", "z"], [f"f{name}"], axis=0),
                  node("DequantizeLinear", [f"b{name}", f"t{name}", "zb"], [f"g{name}"], axis=0),
                  node("Conv", ["d", f"f{name}", f"g{name}"], [f"c{name}"], pads=[1, 1, 1, 1])]
    nodes += [node("Add", ["ca", "cb"], ["e"]), node("Add", ["e", "d"], ["y"])]
    x = RNG.standard_normal(shape).astype(np.float32)
    run = lamina.from_onnx(model_of(nodes, {"x": x}, constants, opset))
    wanted = ReferenceEvaluator(model_of(nodes, {"x": x}, constants, 20)).run(None, {"x": x})[0]
    np.testing.assert_allclose(run(x)[0], wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
    convolutions = [name for name in steps(run) if "onvolution" in name or "conv" in name]
    dequantising = sum(map(dequantises_weights, steps(run)))
    assert len(convolutions) == 2 and dequantising == (0 if convolves_integers else 2), steps(run)


@pytest.mark.parametrize("channels", [2, 48])
def test_convolutions_of_integers_are_exact(channels):
    inputs = {"x": integers(np.uint8, 1, channels, 6, 5), "zx": np.uint8(77)}
    weights, zeros = integers(np.int8, 4, channels, 3, 3), integers(np.int8, 4)
    node = helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], pads=[1, 1, 1, 1])
    made, = lamina.from_onnx(model_of([node], inputs, {"w": weights, "zw": zeros}))(inputs)
    x = np.pad(inputs["x"].astype(np.int64) - 77, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    wanted = np.einsum("nchwij,ocij->nohw", windows, weights.astype(np.int64) - zeros.astype(np.int64)[:, None, None, None])
    assert made.dtype == np.int32
    np.testing.assert_array_equal(made, wanted)


def computed(node, *given, constants=None):
    """The node on integers that a Cast of floats computes, so that they are never known when the model is read."""
    kind = helper.np_dtype_to_tensor_dtype(given[0].dtype)
    casts = [helper.make_node("Cast", [f"x{i}"], [name], to=kind) for i, name in enumerate(node.input[:len(given)])]
    inputs = {f"x{i}": x.astype(np.float64) for i, x in enumerate(given)}
    model = model_of([*casts, node], inputs, constants)
    run = lamina.from_onnx(model)
    wanted, = ReferenceEvaluator(model_of([node], dict(zip(node.input, given)), constants)).run(None, dict(zip(node.input, given)))
    made, = run(inputs)
    assert run.static_inputs == [] and made.dtype == wanted.dtype
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("kind", [np.int32, np.int8, np.uint8, np.int64])
@pytest.mark.parametrize("name", ["Abs", "Neg", "Sign", "Relu"])
def test_functions_of_integers(name, kind):
    if np.dtype(kind).kind == "u" and name in ("Neg", "Relu"):
        pytest.skip("ONNX does not take them")
    computed(helper.make_node(name, ["x"], ["y"]), RNG.integers(0, 200, (4, 5)).astype(kind) - np.array(100, kind) * (np.dtype(kind).kind == "i"))


@pytest.mark.parametrize("kind", [np.int32, np.int8, np.uint8, np.int64, np.uint64])
@pytest.mark.parametrize("name", ["ReduceSum", "ReduceMax", "ReduceMin"])
def test_reductions_of_integers(name, kind):
    if name == "ReduceSum" and kind in (np.int8, np.uint8):
        pytest.skip("ONNX does not take them")
    x = RNG.integers(0, 100, (3, 4, 50)).astype(kind) - np.array(50, kind) * (np.dtype(kind).kind == "i")
    for keepdims in (0, 1):
        computed(helper.make_node(name, ["x", "axes"], ["y"], keepdims=keepdims), x, constants={"axes": np.array([0, 2])})


def test_sums_of_long_integers_keep_every_bit():
    x = np.array([[2**53 + 1, 2**40], [3, -(2**62)]])
    nodes = [helper.make_node("Add", ["x", "x"], ["twice"]), helper.make_node("ReduceSum", ["twice"], ["y"], keepdims=0)]
    assert lamina.from_onnx(model_of(nodes, {"x": x}))(x)[0] == 2 * x.sum()


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
def test_integers_are_clipped(kind):
    x = RNG.integers(0, 100, (4, 5)).astype(kind)
    computed(helper.make_node("Clip", ["x", "low", "high"], ["y"]), x, constants={"low": np.array(30, kind), "high": np.array(60, kind)})
    computed(helper.make_node("Clip", ["x", "", "high"], ["y"]), x, constants={"high": np.array(60, kind)})


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("exponents", [np.array([0, 1, 2, 3, 5]), np.array([0, 0.5, 1.5, 2, -1], np.float32)], ids=str)
def test_powers_of_integers(kind, exponents):
    x = np.array([[3, -7, 10, 46, 90], [1, 2, 64, 81, 2], [5, 9, 100, 7, 1]]).astype(kind)
    model = model_of([helper.make_node("Cast", ["f"], ["x"], to=helper.np_dtype_to_tensor_dtype(x.dtype)), helper.make_node("Pow", ["x", "e"], ["y"])],
                     {"f": np.abs(x).astype(np.float64)}, {"e": exponents})
    exact = np.power(np.abs(x).astype(np.longdouble), exponents.astype(np.longdouble))
    kept = exact < np.iinfo(kind).max
    made, = lamina.from_onnx(model)(np.abs(x).astype(np.float64))
    assert made.dtype == kind
    np.testing.assert_array_equal(made[kept], exact[kept].astype(kind))


@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int32], ids=str)
def test_remainders_are_exact_for_quotients_of_any_size(kind, fmod):
    if kind == np.int32:
        x, y = RNG.integers(-1000, 1000, 200).astype(kind), np.where(RNG.integers(0, 2, 200), 7, -13).astype(kind)
    else:
        largest = float(np.finfo(kind).maxexp - 1)
        x = (RNG.choice([-1, 1], 200) * 2.0 ** RNG.uniform(-10, largest, 200)).astype(kind)
        y = (RNG.choice([-1, 1], 200) * 2.0 ** RNG.uniform(-12, 3, 200)).astype(kind)
    model = model_of([helper.make_node("Mod", ["x", "d"], ["y"], fmod=fmod)], {"x": x, "d": y}, opset=onnx.defs.onnx_opset_version())
    np.testing.assert_array_equal(lamina.from_onnx(model)(x, y)[0], (np.fmod if fmod else np.mod)(x, y))


@pytest.mark.parametrize("zero", [-128, -100, -3, 0, 7, 126])
def test_quantize_linear_has_any_zero_point_of_s8(zero):
    x = np.array([-1e9, -77.2, -1.5, -0.5, 0, 0.5, 1.5, 77.2, 1e9], "f")
    nodes = [onnx.helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])]
    constants = [onnx.numpy_helper.from_array(np.float32(0.5), "scale"), onnx.numpy_helper.from_array(np.int8(zero), "zero")]
    graph = onnx.helper.make_graph(nodes, "g", [onnx.helper.make_tensor_value_info("x", 1, x.shape)],
                                   [onnx.helper.make_tensor_value_info("y", 3, x.shape)], constants)
    y, = lamina.from_onnx(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]))(x)
    np.testing.assert_array_equal(y, np.clip(np.rint(x / 0.5) + zero, -128, 127).astype("int8"))
