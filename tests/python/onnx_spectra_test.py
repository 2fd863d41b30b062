"""DFT, STFT and Col2Im beside numpy's transforms and ONNX's evaluator."""
import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import lamina  # noqa: E402

RNG = np.random.default_rng(0)


def model_of(node, x, constants, opset=20):
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
                              [helper.make_empty_tensor_value_info("y")], [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def dft(x, length=None, axis=1, opset=20, **attributes):
    constants = {} if length is None else {"length": np.int64(length)}
    constants["axis"] = np.int64(axis)
    node = helper.make_node("DFT", ["x", "" if length is None else "length", "axis"], ["y"], **attributes)
    return lamina.from_onnx(model_of(node, x, constants, opset))(x)[0]


def parts(z, axis=-1):
    return np.stack([z.real, z.imag], axis)


def close(made, wanted, length, dtype):
    assert made.dtype == dtype and made.shape == wanted.shape
    np.testing.assert_allclose(made, wanted, atol=(1e-12 if dtype == np.float64 else 1e-6) * length**0.5 * np.abs(wanted).max(initial=1))


@pytest.mark.parametrize("length", [1, 2, 3, 64, 65, 97, 128, 360, 1000, 4096])
@pytest.mark.parametrize("inverse", [0, 1])
def test_transforms_of_complex_numbers(length, inverse):
    dtype = np.float64 if length == 360 else np.float32
    z = RNG.standard_normal((2, length)) + 1j * RNG.standard_normal((2, length))
    wanted = (np.fft.ifft if inverse else np.fft.fft)(z)
    close(dft(parts(z).astype(dtype), inverse=inverse), parts(wanted), length, dtype)


@pytest.mark.parametrize("length", [1, 2, 7, 100, 1024])
@pytest.mark.parametrize("onesided", [0, 1])
def test_transforms_of_real_numbers(length, onesided):
    x = RNG.standard_normal((3, length)).astype(np.float32)
    close(dft(x[..., None], onesided=onesided), parts((np.fft.rfft if onesided else np.fft.fft)(x)), length, np.float32)


@pytest.mark.parametrize("length", [2, 7, 8, 75, 300])
def test_a_real_signal_of_half_its_frequencies(length):
    """The imaginary parts of the first and the middle frequency are not read."""
    z = RNG.standard_normal((3, length // 2 + 1)) + 1j * RNG.standard_normal((3, length // 2 + 1))
    made = dft(parts(z).astype(np.float32), length=length, inverse=1, onesided=1)
    close(made, np.fft.irfft(z, length)[..., None], length, np.float32)


@pytest.mark.parametrize("length", [5, 12])
def test_a_signal_is_cut_or_followed_by_zeros(length):
    z = RNG.standard_normal((2, 8, 3)) + 1j * RNG.standard_normal((2, 8, 3))
    close(dft(parts(z).astype(np.float32), length=length, axis=-3), parts(np.fft.fft(z, length, 1)), length, np.float32)


def test_the_axis_is_an_attribute_before_opset_20():
    x = RNG.standard_normal((2, 3, 5, 1)).astype(np.float32)
    node = helper.make_node("DFT", ["x"], ["y"], axis=2)
    close(lamina.from_onnx(model_of(node, x, {}, 17))(x)[0], parts(np.fft.fft(x[..., 0])), 5, np.float32)


def test_a_long_prime_length_is_refused():
    with pytest.raises(lamina.Error, match=r"\(DFT, opset 20\): a transform with the prime factor 2053"):
        dft(np.zeros((1, 2053, 1), np.float32))


@pytest.mark.parametrize("parts_in, onesided", [(1, 1), (1, 0), (2, 0)])
def test_short_time_transforms(parts_in, onesided):
    x, window = RNG.standard_normal((2, 150, parts_in)).astype(np.float32), np.hanning(80).astype(np.float32)
    node = helper.make_node("STFT", ["x", "step", "window", "length"], ["y"], onesided=onesided)
    made, = lamina.from_onnx(model_of(node, x, {"step": 30, "window": window, "length": 80}))(x)
    z = x[..., 0] + 1j * x[..., 1] if parts_in == 2 else x[..., 0]
    frames = np.stack([z[:, start:start + 80] * window for start in range(0, 71, 30)], 1)
    close(made, parts((np.fft.rfft if onesided else np.fft.fft)(frames)), 80, np.float32)


@pytest.mark.parametrize("image, block, attributes", [([5, 6], [2, 3], {"pads": [1, 0, 1, 2], "strides": [2, 1]}), ([7, 5], [3, 2], {"dilations": [2, 2]}),
                                                      ([9, 8], [2, 2], {"strides": [3, 3]}), ([4, 4, 5], [2, 1, 3], {})])
def test_columns_become_an_image(image, block, attributes):
    spatial = len(image)
    strides, dilations, pads = (attributes.get(name, default) for name, default in (("strides", [1] * spatial), ("dilations", [1] * spatial), ("pads", [0] * 2 * spatial)))
    blocks = [(e + pads[i] + pads[spatial + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i, e in enumerate(image)]
    x = RNG.standard_normal((2, 3 * np.prod(block), np.prod(blocks))).astype(np.float32)
    model = model_of(helper.make_node("Col2Im", ["x", "image", "block"], ["y"], **attributes), x, {"image": np.array(image), "block": np.array(block)})
    wanted, = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(lamina.from_onnx(model)(x)[0], wanted, rtol=1e-5, atol=1e-5)
