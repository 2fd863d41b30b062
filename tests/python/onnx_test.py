"""ONNX's own backend tests for the operators that lamina has, through lamina.onnx_backend. What is refused by name is skipped, with
the sentence as the reason; what is carried must be right."""
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
import numpy as np  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402
from onnx import helper, numpy_helper, TensorProto  # noqa: E402

import lamina  # noqa: E402
from lamina.onnx_backend import LaminaBackend  # noqa: E402

OPERATORS = """abs add averagepool basic_conv batchnorm cast clip concat conv default_axes div dropout elu exp flatten gelu gemm
group_normalization hardsigmoid hardswish identity instancenorm layer_normalization leakyrelu log logsoftmax matmul max maxpool mean
min mish mul pow prelu reciprocal reduce relu reshape rms_normalization round sigmoid softmax softplus sqrt squeeze sub sum swish tanh
transpose unsqueeze where""".split()


def chosen():
    for case in load_model_tests(kind="node"):
        name = case.name.removeprefix("test_")
        if any(name == op or name.startswith(op + "_") for op in OPERATORS) and "_expanded" not in name:
            yield case


CASES = list(chosen())


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_node(case):
    for inputs, outputs in case.data_sets:
        try:
            made = LaminaBackend.prepare(case.model).run(inputs)
        except lamina.Error as refused:
            assert refused.status == "unimplemented", refused
            pytest.skip(f"refused: {str(refused).removeprefix('model: ')}")
        assert len(made) == len(outputs)
        for made, wanted in zip(made, outputs):
            wanted = numpy_helper.to_array(wanted) if isinstance(wanted, onnx.TensorProto) else wanted
            assert made.dtype == wanted.dtype and made.shape == wanted.shape
            made, wanted = (a.astype(np.float64) if a.dtype.kind not in "biu" else a for a in (made, wanted))
            np.testing.assert_allclose(made, wanted, rtol=case.rtol, atol=max(case.atol, 1e-6))


def test_a_model_with_weights():
    weights = helper.make_tensor("w", TensorProto.FLOAT, (4, 3), np.arange(12, dtype=np.float32))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 4))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", 3))], [weights])
    run = lamina.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
    for rows in (1, 5):
        x = np.random.default_rng(0).standard_normal((rows, 4)).astype(np.float32)
        y, = run({"x": x})
        np.testing.assert_allclose(y, np.maximum(x @ np.arange(12, dtype=np.float32).reshape(4, 3), 0), rtol=1e-4, atol=1e-4)


def test_an_operator_that_is_not_carried_is_named():
    graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"], name="nz")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4,))],
                              [helper.make_tensor_value_info("y", TensorProto.INT64, (1, None))])
    with pytest.raises(lamina.Error, match=r"node 'nz' \(NonZero\)"):
        lamina.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
