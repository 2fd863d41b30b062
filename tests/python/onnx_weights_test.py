"""ONNX models whose weights have 4 or 8 bits: against dequantising in NumPy, in 64 bits, and as one step of lamina."""
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import lamina  # noqa: E402

RNG = np.random.default_rng(11)


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def model_of(nodes, inputs, constants):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items()],
                              [helper.make_empty_tensor_value_info("y")], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])


def steps(function):
    """The names of the steps that run."""
    return [kernel["name"] for partition in function.explain().data()["partitions"] for kernel in partition["kernels"]]


def dequantizing_steps(function):
    return [name for name in steps(function) if name.startswith("product by ")]


def nibbles(values):
    """Two integers per byte along the last axis, which is filled up with zeros."""
    if values.shape[-1] % 2:
        values = np.concatenate([values, np.zeros_like(values[..., :1])], -1)
    return (values[..., 0::2] | values[..., 1::2] << 4).astype(np.uint8)


def n_bits(x, values, scales, bits, size, zeros=None, bias=None, order=None, **attributes):
    """Runs MatMulNBits with weights `values` [n, blocks * size], of which the first k columns count."""
    n, k, blocks = values.shape[0], x.shape[-1], scales.shape[1]
    packed = (nibbles(values) if bits == 4 else values.astype(np.uint8)).reshape(n, blocks, -1)
    constants = {"b": packed, "s": scales.astype(x.dtype)}
    if zeros is not None:
        constants["z"] = zeros if zeros.dtype == x.dtype else (nibbles(zeros) if bits == 4 else zeros).reshape(-1)
    if order is not None:
        constants["g"] = order
    if bias is not None:
        constants["c"] = bias
    names = ["x", "b", "s", *(name if name in constants else "" for name in ("z", "g", "c"))]
    node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", K=k, N=n, bits=bits, block_size=size, **attributes)
    function = lamina.from_onnx(model_of([node], {"x": x}, [numpy_helper.from_array(v, name) for name, v in constants.items()]))
    return function(x)[0], function


@pytest.mark.parametrize("bits, size, k, zeros", [
    (4, 32, 96, None), (4, 32, 96, "integers"), (4, 16, 50, "integers"), (4, 128, 200, "floats"), (8, 32, 96, None), (8, 64, 100, "integers"), (4, 32, 64, "halves")])
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_matmul_nbits(bits, size, k, zeros, rows):
    n, blocks = 24, -(-k // size)
    values, scales, x = RNG.integers(0, 1 << bits, (n, blocks * size)), RNG.uniform(0.01, 0.02, (n, blocks)).astype(np.float32), some(2, rows, k)
    given = {None: None, "integers": RNG.integers(0, 1 << bits, (n, blocks)).astype(np.uint8), "halves": np.full((n, blocks), 7.5, np.float32),
             "floats": RNG.uniform(0, 1 << bits, (n, blocks)).astype(np.float32)}[zeros]
    shift = np.full((n, blocks), 1 << bits - 1) if given is None else given
    bias = some(n) if rows == 5 else None
    made, function = n_bits(x, values, scales, bits, size, given, bias, accuracy_level=4)
    weights = ((values.reshape(n, blocks, size) - shift[..., None].astype(np.float64)) * scales[..., None]).reshape(n, -1)[:, :k]
    wanted = x.astype(np.float64) @ weights.T + (0 if bias is None else bias)
    np.testing.assert_allclose(made, wanted, rtol=2e-5, atol=2e-5)
    assert len(dequantizing_steps(function)) == 1
    assert ("s4" if bits == 4 else "s8") in dequantizing_steps(function)[0] or given is not None


def test_matmul_nbits_of_f16():
    values, scales, x = RNG.integers(0, 16, (24, 64)), RNG.uniform(0.01, 0.02, (24, 2)).astype(np.float16), some(3, 64).astype(np.float16)
    made, function = n_bits(x, values, scales, 4, 32)
    weights = ((values.reshape(24, 2, 32) - 8.0) * scales[..., None].astype(np.float64)).reshape(24, -1)
    np.testing.assert_allclose(made.astype(np.float64), x.astype(np.float64) @ weights.T, rtol=4e-3, atol=4e-3)
    assert len(dequantizing_steps(function)) == 1


def test_matmul_nbits_names_what_is_not_carried():
    x, scales = some(3, 64), np.full((8, 2), 0.1, np.float32)
    values = RNG.integers(0, 4, (8, 64))
    n_bits(x, values, scales, 4, 32, order=np.repeat(np.arange(2), 32).astype(np.int32))
    with pytest.raises(lamina.Error, match="MatMulNBits.*g_idx"):
        n_bits(x, values, scales, 4, 32, order=np.tile(np.arange(2), 32).astype(np.int32))
    with pytest.raises(lamina.Error, match="MatMulNBits.*bits 2, allowed is 4 or 8"):
        n_bits(x, values, scales, 2, 32)
    with pytest.raises(lamina.Error, match="bytes per column"):
        n_bits(x, values[:, :32], scales, 4, 32)


@pytest.mark.parametrize("kind, low, high", [(TensorProto.INT4, -8, 8), (TensorProto.UINT4, 0, 16), (TensorProto.INT8, -128, 128), (TensorProto.UINT8, 0, 256)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("with_zeros", [False, True])
def test_dequantize_linear_by_blocks_is_a_part_of_the_product(kind, low, high, axis, with_zeros):
    k, n, size = 64, 32, 16
    shape = [k // size, n] if axis == 0 else [k, n // size]
    values, scales, x = RNG.integers(low, high, (k, n)), RNG.uniform(0.01, 0.02, shape).astype(np.float32), some(4, k)
    zeros = RNG.integers(low, high, shape) if with_zeros else np.zeros(shape, int)
    typed = lambda v, name: numpy_helper.from_array(v.astype(helper.tensor_dtype_to_np_dtype(kind)), name)
    constants = [typed(values, "q"), numpy_helper.from_array(scales, "s"), *([typed(zeros, "z")] if with_zeros else [])]
    nodes = [helper.make_node("DequantizeLinear", ["q", "s", *(["z"] if with_zeros else [])], ["w"], axis=axis, block_size=size),
             helper.make_node("MatMul", ["x", "w"], ["y"])]
    function = lamina.from_onnx(model_of(nodes, {"x": x}, constants))
    weights = (values - np.repeat(zeros, size, axis)) * np.repeat(scales, size, axis).astype(np.float64)
    np.testing.assert_allclose(function(x)[0], x.astype(np.float64) @ weights, rtol=2e-5, atol=2e-5)
    assert len(dequantizing_steps(function)) == 1


def test_dequantize_linear_with_an_odd_row_of_4_bits():
    values = RNG.integers(-8, 8, (3, 5))
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["w"]), helper.make_node("Add", ["x", "w"], ["y"])]
    constants = [numpy_helper.from_array(values.astype(helper.tensor_dtype_to_np_dtype(TensorProto.INT4)), "q"), numpy_helper.from_array(np.float32(0.5), "s")]
    x = some(3, 5)
    np.testing.assert_allclose(lamina.from_onnx(model_of(nodes, {"x": x}, constants))(x)[0], x + values * 0.5, rtol=1e-6)


def test_packed_integers_of_a_graph():
    """Two elements a byte, the first in the low four bits."""
    for dtype, shift in (("u4", 0), ("s4", 8)):
        g = lamina.Graph()
        x, w, s = g.input((2, 8)), g.input((6, 8), dtype, constant=True), g.input((6,))
        run = g.compile([g.op("MatMul", [x, g.op("DynamicDequantize", [w, s], qtype="per_channel", axis=0)], transpose_b=True)])
        values, scales, data = RNG.integers(0, 16, (6, 8)) - shift, RNG.uniform(0.1, 1, 6).astype(np.float32), some(2, 8)
        made = run(data, nibbles(values & 15), scales)
        np.testing.assert_allclose(made, data @ (values * scales[:, None]).T, rtol=1e-5, atol=1e-5)
    with pytest.raises(lamina.Error, match=r"s4\[2, 16\], allowed is .* s4\[6, 8\]"):
        run(data, data, scales)


def test_a_loaded_model_is_not_changed_and_inference_gets_no_large_weights(monkeypatch):
    seen, infer = [], onnx.shape_inference.infer_shapes

    def inferred(model, **how):
        seen.append(model.ByteSize())
        return infer(model, **how)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", inferred)
    weights, x = some(64, 96), some(3, 64)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Reshape", ["p", "shape"], ["y"])]
    model = model_of(nodes, {"x": x}, [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.array([3, 4, 24]), "shape")])
    before = model.SerializeToString()
    y, = lamina.from_onnx(model)(x)
    assert model.SerializeToString() == before
    assert seen and max(seen) < weights.nbytes
    np.testing.assert_allclose(y, (x @ weights).reshape(3, 4, 24), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("opset", [11, 21])
def test_files_and_bytes_have_the_results_of_a_loaded_model(tmp_path, opset):
    # NonZero splits the model, whose second part has weights, too; version 11 is converted.
    weights, x = some(64, 96), some(3, 64)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("NonZero", ["mask"], ["places"]),
             helper.make_node("GatherND", ["p", "places_by_row"], ["y"]), helper.make_node("Transpose", ["places"], ["places_by_row"], perm=[1, 0])]
    nodes[2], nodes[3] = nodes[3], nodes[2]
    mask = RNG.random((3, 96)) > 0.5
    model = model_of(nodes, {"x": x}, [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(mask, "mask")])
    model.opset_import[0].version = opset
    model.ir_version = 7
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    outputs = [lamina.from_onnx(given)(x)[0] for given in (model, path, path.read_bytes())]
    np.testing.assert_allclose(outputs[0], (x @ weights)[mask], rtol=1e-4, atol=1e-4)
    for output in outputs[1:]:
        np.testing.assert_array_equal(outputs[0], output)


def test_weights_beside_a_file_and_of_few_bits_are_read(tmp_path):
    weights, x = some(64, 96), some(3, 64)
    few = numpy_helper.from_array(RNG.integers(-8, 8, (96, 32)).astype(helper.tensor_dtype_to_np_dtype(TensorProto.INT4)), "q")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("DequantizeLinear", ["q", "s"], ["d"]),
             helper.make_node("MatMul", ["p", "d"], ["y"])]
    model = model_of(nodes, {"x": x}, [numpy_helper.from_array(weights, "w"), few, numpy_helper.from_array(np.float32(0.5), "s")])
    expected, = lamina.from_onnx(model)(x)
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    y, = lamina.from_onnx(tmp_path / "model.onnx")(x)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_a_part_of_a_file_is_refused_as_protobuf_refuses_it(tmp_path, kept):
    data = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": some(3, 64)}, [numpy_helper.from_array(some(64, 96), "w")]).SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(data[:int(len(data) * kept)])
    for given in (path, path.read_bytes()):
        with pytest.raises(Exception, match="(?i)pars"):
            lamina.from_onnx(given)
