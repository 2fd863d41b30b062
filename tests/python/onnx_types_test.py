"""Element types of models that lamina holds in others: casts beside ml_dtypes' conversions, and ONNX's rules for values out of range."""
import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
import ml_dtypes  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import lamina  # noqa: E402
from lamina._program import scalar_bytes  # noqa: E402
from lamina.onnx import types  # noqa: E402

HARD = np.array([0.0, -0.0, 1, -1, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -5, 6, 7, -7.5, 17, 26, 29, 100, 231, 232, 239, 240, 247, 248, 448, 463, 464,
                 465, 1e4, 57344, 61439, 61440, 61441, -61440, 1e6, 2**-6, 2**-7, 3 * 2**-9, 2**-9, 2**-10, 3 * 2**-11, 2**-11, 2**-14, 3 * 2**-17,
                 2**-16, 2**-17, 2**-18, 3 * 2**-19, -(2**-20), 1e-30, np.inf, -np.inf, np.nan], np.float32)
NUMBERS = [number for name, number in TensorProto.DataType.items() if types.held_in(number) is not None]
CAST = [number for number in NUMBERS if types.is_float(number) and types.limits_of(number).bits <= 8 and number != TensorProto.FLOAT8E8M0]
INTEGERS = [TensorProto.INT2, TensorProto.UINT2, TensorProto.INT4, TensorProto.UINT4]


def name_of(number):
    return types.name_of(number)


def numpy_of(number):
    return helper.tensor_dtype_to_np_dtype(number)


def run(nodes, x, kind, result, constants=(), opset=onnx.defs.onnx_opset_version()):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
                              [helper.make_tensor_value_info("y", kind, result)], list(constants))
    made, = lamina.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))(x)
    return made


def same(made, wanted):
    """Equal, with the signs of zeros; a NaN is equal to any other."""
    assert made.dtype == wanted.dtype and made.shape == wanted.shape
    made, wanted = made.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(made, wanted)
    finite = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(made[finite]), np.signbit(wanted[finite]))


def as_onnx_says(x, number, saturate):
    limits = types.limits_of(number)
    return (np.clip(x, float(limits.min), float(limits.max)) if saturate else x).astype(numpy_of(number))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("number", CAST, ids=name_of)
def test_a_cast_to_a_small_float_rounds_once_and_follows_onnx_out_of_range(number, source, saturate):
    with np.errstate(over="ignore"):
        x = HARD.astype(source)
    made = run([helper.make_node("Cast", ["x"], ["y"], to=number, saturate=saturate)], x, number, x.shape)
    wanted = as_onnx_says(x, number, saturate)
    if types.limits_of(number).bits < 8:  # types without NaN
        made, wanted = made[:-1], wanted[:-1]
    same(made, wanted)


@pytest.mark.parametrize("number", CAST + [TensorProto.FLOAT8E8M0], ids=name_of)
def test_all_values_of_a_small_float_are_read(number):
    x = np.arange(256, dtype=np.uint8).view(numpy_of(number))
    same(run([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], x, TensorProto.FLOAT, x.shape), x.astype(np.float32))


@pytest.mark.parametrize("number", CAST, ids=name_of)
def test_what_was_cast_is_read_with_its_type(number):
    """-0 becomes 0 in a type without it."""
    nodes = [helper.make_node("Cast", ["x"], ["small"], to=number), helper.make_node("Cast", ["small"], ["y"], to=TensorProto.FLOAT)]
    x = HARD[:-1]
    same(run(nodes, x, TensorProto.FLOAT, x.shape), as_onnx_says(x, number, True).astype(np.float32))


@pytest.mark.parametrize("mode, saturate, wanted", [
    ("up", 1, [2**-127, 2**-127, 2**-126, 1, 2, 2, 2, 4, 2.0**127, 2.0**127, 2.0**127, np.nan]),
    ("down", 1, [2**-127, 2**-127, 2**-127, 1, 1, 1, 1, 2, 2.0**127, 2.0**127, 2.0**127, np.nan]),
    ("nearest", 1, [2**-127, 2**-127, 2**-126, 1, 1, 2, 2, 4, 2.0**127, 2.0**127, 2.0**127, np.nan]),
    ("nearest", 0, [np.nan, np.nan, 2**-126, 1, 1, 2, 2, 4, 2.0**127, np.nan, np.nan, np.nan])])
def test_powers_of_two(mode, saturate, wanted):
    x = np.array([0, 2**-130, 1.5 * 2**-127, 1, 1.25, 1.5, 1.75, 3, 2.0**127, 1.75 * 2.0**127, np.inf, np.nan], np.float32)
    kind = TensorProto.FLOAT8E8M0
    made = run([helper.make_node("Cast", ["x"], ["y"], to=kind, saturate=saturate, round_mode=mode)], x, kind, x.shape)
    np.testing.assert_array_equal(made.astype(np.float64), wanted)


@pytest.mark.parametrize("source", [np.float32, np.int8, np.int64, np.bool_], ids=str)
@pytest.mark.parametrize("number", INTEGERS, ids=name_of)
def test_a_cast_to_a_small_integer_keeps_the_low_bits(number, source):
    x = np.arange(-20, 21).astype(source)
    made = run([helper.make_node("Cast", ["x"], ["y"], to=number)], x, number, x.shape)
    limits = types.limits_of(number)
    wanted = (x.astype(np.int64) - int(limits.min)) % (int(limits.max) - int(limits.min) + 1) + int(limits.min)
    assert made.dtype == numpy_of(number)
    np.testing.assert_array_equal(made.astype(np.int64), wanted)


@pytest.mark.parametrize("number", [number for number in NUMBERS if not types.is_own(number)], ids=name_of)
def test_operators_that_move_elements_keep_the_type(number):
    x = np.arange(12).astype(np.float32).astype(numpy_of(number)).reshape(3, 4)
    if f"tensor({name_of(number).lower()})" not in onnx.defs.get_schema("Transpose").inputs[0].types:
        pytest.skip("ONNX's Transpose does not take it")
    shape = numpy_helper.from_array(np.array([2, 6]), "shape")
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Reshape", ["t", "shape"], ["r"]),
             helper.make_node("Identity", ["r"], ["y"])]
    same(run(nodes, x, number, (2, 6), [shape]), x.T.reshape(2, 6))


@pytest.mark.parametrize("dtype", [name for name, kind in lamina._core.type_kinds().items() if kind in ("real", "small_float")])
def test_constants_of_a_graph_are_rounded_to_their_type(dtype):
    of_numpy = types.of_numpy(dtype)
    hard = HARD.astype(np.float64)
    if dtype not in ("f32", "f64"):
        hard = np.concatenate([hard, np.arange(2**(8 * of_numpy.itemsize) - 1, step=max(1, 2**(8 * of_numpy.itemsize) // 512),
                                               dtype=f"u{of_numpy.itemsize}").view(of_numpy).astype(np.float64)])
    with np.errstate(over="ignore"):
        wanted = hard.astype(of_numpy)
    for value, each in zip(hard, wanted):
        made = np.frombuffer(scalar_bytes(float(value), dtype), of_numpy)[0]
        same(np.array([made]), np.array([each]))


def test_an_operator_that_does_not_take_a_type_is_named_with_it():
    x = np.ones(4, ml_dtypes.float8_e4m3fnuz)
    with pytest.raises(lamina.Error, match=r"\(Sin, opset .*\): input 0 is FLOAT8E4M3FNUZ"):
        run([helper.make_node("Sin", ["x"], ["y"])], x, TensorProto.FLOAT8E4M3FNUZ, (4,))


@pytest.mark.parametrize("scale_type", [np.float32, np.float16], ids=str)
@pytest.mark.parametrize("number", [TensorProto.INT16, TensorProto.UINT4, TensorProto.INT2, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E4M3FNUZ], ids=name_of)
def test_blocks_are_quantised_and_dequantised(number, scale_type):
    x = np.random.default_rng(0).uniform(-8, 8, (3, 8)).astype(scale_type)
    scales = np.random.default_rng(1).uniform(0.5, 2, (3, 2)).astype(scale_type)
    zero = np.ones((3, 2)).astype(numpy_of(number)) if not types.is_float(number) else np.zeros((3, 2)).astype(numpy_of(number))
    constants = [numpy_helper.from_array(scales, "s"), numpy_helper.from_array(zero, "z")]
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1, block_size=4),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1, block_size=4)]
    made = run(nodes, x, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape, constants)
    steps = x / np.repeat(scales, 4, 1)
    if types.is_float(number):
        wanted = steps.astype(numpy_of(number)).astype(np.float32)
    else:
        limits = types.limits_of(number)
        wanted = np.clip(np.rint(steps.astype(np.float64)) + 1, int(limits.min), int(limits.max)) - 1
    np.testing.assert_allclose(made.astype(np.float64), (wanted * np.repeat(scales, 4, 1)).astype(scale_type), rtol=1e-3)


@pytest.mark.parametrize("source, target", [(np.float32, np.int32), (np.float64, np.uint64), (ml_dtypes.bfloat16, np.uint16), (np.float16, np.int16),
                                            (np.int32, np.float32), (np.uint8, ml_dtypes.float8_e5m2), (np.bool_, np.uint8)], ids=str)
def test_bits_are_read_as_another_type(source, target):
    """Behind another op, since an input alone could be known when the model is read."""
    x = np.arange(-4, 8).reshape(3, 4).astype(source)
    number = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    made = run([helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("BitCast", ["t"], ["y"], to=number)], x, number, (4, 3))
    assert made.dtype == target
    np.testing.assert_array_equal(made.view(f"u{made.dtype.itemsize}"), np.ascontiguousarray(x.T).view(f"u{made.dtype.itemsize}"))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("number", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ], ids=name_of)
def test_quantised_floats_out_of_range(number, saturate):
    """(x / scale) + zero point, in the type of the zero point."""
    x = HARD[np.abs(HARD) < 1e30]
    scale, zero = np.array(0.5, np.float32), np.array(1.5, np.float32).astype(numpy_of(number))
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], saturate=saturate)
    made = run([node], x, number, x.shape, [numpy_helper.from_array(scale, "s"), numpy_helper.from_array(zero, "z")])
    same(made, as_onnx_says(x / scale + np.float32(1.5), number, saturate))
