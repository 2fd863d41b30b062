"""Sequences and optional values, as inputs, as outputs and inside of a model."""
import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import lamina  # noqa: E402

RNG = np.random.default_rng(0)
TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
SEQUENCE = helper.make_sequence_type_proto(TENSOR)


def run_of(nodes, inputs, outputs, constants=()):
    """inputs and outputs: dicts of types by name."""
    graph = helper.make_graph(nodes, "g", *([helper.make_value_info(name, kind) for name, kind in side.items()] for side in (inputs, outputs)), list(constants))
    return lamina.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def integer(name, value):
    return numpy_helper.from_array(np.array(value, np.int64), name)


def test_parts_of_a_tensor_are_computed_and_joined():
    """As torch exports split() and cat()."""
    nodes = [helper.make_node("SplitToSequence", ["x", "size"], ["parts"], axis=1), helper.make_node("SequenceAt", ["parts", "last"], ["tail"]),
             helper.make_node("Exp", ["tail"], ["e"]), helper.make_node("SequenceInsert", ["parts", "e"], ["more"]),
             helper.make_node("ConcatFromSequence", ["more"], ["y"], axis=1)]
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, (2, 7))
    run = run_of(nodes, {"x": kind}, {"y": TENSOR}, [integer("size", 3), integer("last", -1)])
    x = some(2, 7)
    np.testing.assert_allclose(run(x)[0], np.concatenate([x, np.exp(x[:, 6:])], 1), rtol=1e-6)


def test_a_sequence_goes_in_and_out_and_its_length_may_change():
    nodes = [helper.make_node("SequenceErase", ["s", "first"], ["rest"]), helper.make_node("SequenceLength", ["rest"], ["count"]),
             helper.make_node("SequenceAt", ["s", "first"], ["head"]), helper.make_node("Relu", ["head"], ["r"]),
             helper.make_node("SequenceInsert", ["rest", "r", "first"], ["t"])]
    run = run_of(nodes, {"s": SEQUENCE}, {"t": SEQUENCE, "count": helper.make_tensor_type_proto(TensorProto.INT64, ())}, [integer("first", 0)])
    for shapes in ([(2, 3)], [(2,), (3, 1), (4,)]):
        s = [some(*shape) for shape in shapes]
        t, count = run(s)
        assert count == len(s) - 1
        for made, wanted in zip(t, [np.maximum(s[0], 0), *s[1:]], strict=True):
            np.testing.assert_array_equal(made, wanted)
            assert not any(made is given for given in s)
    assert len(run._compiled) == 2


def test_new_axes_and_equal_parts_without_one():
    nodes = [helper.make_node("SplitToSequence", ["x"], ["parts"], axis=-1, keepdims=0), helper.make_node("ConcatFromSequence", ["parts"], ["y"], axis=-1, new_axis=1)]
    run = run_of(nodes, {"x": helper.make_tensor_type_proto(TensorProto.FLOAT, (3, 4))}, {"y": TENSOR})
    x = some(3, 4)
    np.testing.assert_array_equal(run(x)[0], x)


def test_an_optional_value_may_be_absent():
    """y = x + o, or x without it."""
    has, hasnt = (helper.make_graph(nodes, name, [], [helper.make_empty_tensor_value_info(out)]) for name, nodes, out in (
        ("has", [helper.make_node("OptionalGetElement", ["o"], ["v"]), helper.make_node("Add", ["x", "v"], ["a"])], "a"),
        ("hasnt", [helper.make_node("Identity", ["x"], ["b"])], "b")))
    nodes = [helper.make_node("OptionalHasElement", ["o"], ["is"]), helper.make_node("If", ["is"], ["y"], then_branch=has, else_branch=hasnt)]
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, (3,))
    run = run_of(nodes, {"x": kind, "o": helper.make_optional_type_proto(TENSOR)}, {"y": TENSOR})
    x, o = some(3), some(3)
    np.testing.assert_array_equal(run(x, None)[0], x)
    np.testing.assert_array_equal(run(x, o)[0], x + o)


def test_a_position_out_of_range_is_refused():
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"]), helper.make_node("SequenceAt", ["s", "i"], ["y"])]
    with pytest.raises(lamina.Error, match=r"\(SequenceAt, opset 20\): position 2, allowed is -2..1"):
        run_of(nodes, {"x": TENSOR}, {"y": TENSOR}, [integer("i", 2)])


def test_what_is_no_sequence_is_refused():
    run = run_of([helper.make_node("SequenceAt", ["s", "i"], ["y"])], {"s": SEQUENCE}, {"y": TENSOR}, [integer("i", 0)])
    with pytest.raises(lamina.Error, match="input 's' is dict, allowed is an array, a list of arrays or None"):
        run({"s": {}})


def test_outputs_may_be_inputs_and_each_other():
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, (2,))
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"]), helper.make_node("Neg", ["x"], ["y"])]
    run = run_of(nodes, {"x": kind}, {"x": kind, "s": SEQUENCE, "y": kind})
    x = some(2)
    made, s, y = run(x)
    for each in (made, *s, -y):
        np.testing.assert_array_equal(each, x)
    assert made is not x
