"""ONNX's own backend tests, through lamina.onnx_backend. What is refused by name is skipped, with the sentence as the reason; what
is carried must be right."""
import math
import pathlib

import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
import numpy as np  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402
from onnx import helper, numpy_helper, TensorProto  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import lamina  # noqa: E402
from lamina.onnx.inputs import Form  # noqa: E402
from lamina.onnx_backend import LaminaBackend  # noqa: E402

FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
NARROW = {kind for name, kind in TensorProto.DataType.items() if name.startswith(("FLOAT8", "FLOAT4", "INT4", "UINT4", "INT2", "UINT2"))
          or name in ("INT8", "UINT8")}
LEAST_SHARE = 0.98  # minimum share of the floating-point cases
LEAST_SHARE_OF_ALL = 0.96  # minimum share of all cases, also of operators without a rule


def is_of_floats(case):
    """It takes a tensor of floats of 16 bits or more, no numbers of fewer bits and no sequences, and gives such floats alone."""
    taken, given = ([value.type.tensor_type.elem_type for value in side] for side in (case.model.graph.input, case.model.graph.output))
    return any(kind in FLOATS for kind in taken) and all(kind in FLOATS for kind in given) and not any(kind in NARROW for kind in taken)


def error_of(case, wanted):
    """Relative; in 16 bits two units in the last place, since what is rounded between ops is nobody's word."""
    return max(case.rtol, {"float16": 2**-9, "bfloat16": 2**-6}.get(str(wanted.dtype), 0))


def elements(results):
    """Of sequences, their elements."""
    return [element for result in results for element in (result if isinstance(result, list) else [result])]


CASES = [case for case in load_model_tests(kind="node") if "_expanded" not in case.name]
refusals: dict = {}  # the message of each case that ran, None if it was accepted


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_node(case):
    refusals[case.name] = None
    for inputs, outputs in case.data_sets:
        try:
            made = LaminaBackend.prepare(case.model).run(inputs)
        except lamina.Error as refused:
            assert refused.status == "unimplemented", refused
            refusals[case.name] = str(refused).removeprefix("model: ")
            pytest.skip(f"refused: {refusals[case.name]}")
        assert [len(each) if isinstance(each, list) else None for each in made] == [len(each) if isinstance(each, list) else None for each in outputs]
        for made, wanted in zip(elements(made), elements(outputs)):
            wanted = numpy_helper.to_array(wanted) if isinstance(wanted, onnx.TensorProto) else wanted
            assert made.dtype == wanted.dtype and made.shape == wanted.shape
            rtol = error_of(case, wanted)
            made, wanted = (a.astype(np.float64) if a.dtype.kind not in "biu" else a for a in (made, wanted))
            np.testing.assert_allclose(made, wanted, rtol=rtol, atol=max(case.atol, 1e-6))


def test_the_share_of_cases_of_floats_that_are_carried():
    ran = [case for case in CASES if case.name in refusals and is_of_floats(case)]
    if len(refusals) < len(CASES):
        pytest.skip("not all cases ran")
    carried = sum(refusals[case.name] is None for case in ran)
    assert carried >= LEAST_SHARE * len(ran), f"{carried} of {len(ran)} cases of floats"
    accepted = sum(refusal is None for refusal in refusals.values())
    assert accepted >= LEAST_SHARE_OF_ALL * len(CASES), f"{accepted} of {len(CASES)} cases"


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
    graph = helper.make_graph([helper.make_node("RandomNormalLike", ["x"], ["y"], name="nz")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4,))],
                              [helper.make_tensor_value_info("y", TensorProto.INT64, (1, None))])
    with pytest.raises(lamina.Error, match=r"node 'nz' \(RandomNormalLike, opset 20\): no rule"):
        lamina.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))


def model_of(nodes, inputs, outputs, weights=(), opset=20):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*value) for value in inputs],
                              [helper.make_tensor_value_info(*value) for value in outputs], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def test_shapes_are_computed_when_the_model_is_read():
    """x [2, 3, 4] reshaped to [its first extent, -1], by Shape, Gather and Concat."""
    constants = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("zero", [0]), ("rest", [-1]))]
    run = lamina.from_onnx(model_of(
        [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["first"]),
         helper.make_node("Concat", ["first", "rest"], ["target"], axis=0), helper.make_node("Reshape", ["x", "target"], ["y"])],
        [("x", TensorProto.FLOAT, (2, 3, 4))], [("y", TensorProto.FLOAT, (2, 12))], constants))
    assert run.static_inputs == []
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(run(x)[0], x.reshape(2, 12))


def test_integers_are_compiled_in_only_where_they_must_be():
    gather = model_of([helper.make_node("Gather", ["x", "i"], ["y"])],
                      [("x", TensorProto.FLOAT, (4, 2)), ("i", TensorProto.INT64, (3,))], [("y", TensorProto.FLOAT, (3, 2))])
    run, x = lamina.from_onnx(gather), np.arange(8, dtype=np.float32).reshape(4, 2)
    for indices in ([0, 3, 3], [2, -1, 1]):
        np.testing.assert_array_equal(run(x, np.array(indices, np.int64))[0], x[indices])
    assert run.static_inputs == [] and len(run._compiled) == 1
    reshape = model_of([helper.make_node("Reshape", ["x", "shape"], ["y"])],
                       [("x", TensorProto.FLOAT, (4, 2)), ("shape", TensorProto.INT64, (2,))], [("y", TensorProto.FLOAT, None)])
    run = lamina.from_onnx(reshape)
    for target in ([2, 4], [8, 1]):
        assert run(x, np.array(target, np.int64))[0].shape == tuple(target)
    assert run.static_inputs == ["shape"] and len(run._compiled) == 2


def test_the_graphs_for_the_values_used_least_recently_are_dropped(monkeypatch):
    monkeypatch.setattr("lamina.onnx.function.MOST_COMPILED", 2)
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Relu", ["r"], ["y"])]
    run = lamina.from_onnx(model_of(nodes, [("x", TensorProto.FLOAT, (4, 2)), ("shape", TensorProto.INT64, (2,))], [("y", TensorProto.FLOAT, None)]))
    x, shapes = np.ones((4, 2), np.float32), {rows: np.array([rows, 8 // rows], np.int64) for rows in (1, 2, 8)}
    run(x, shapes[1])
    first, = run._compiled.values()
    for rows in (2, 1, 8, 1):
        assert run(x, shapes[rows])[0].shape == (rows, 8 // rows)
        assert len(run._compiled) <= 2
    assert list(run._compiled.values())[-1] is first  # it is the most recent one, and was not compiled again
    text = str(run.explain())
    assert "[1, 8]" in text and "[8, 1]" not in text


def test_outputs_that_follow_from_static_inputs_alone_are_computed_when_the_model_is_read():
    run = lamina.from_onnx(model_of([helper.make_node("Range", ["a", "b", "c"], ["y"])],
                                    [(name, TensorProto.INT64, ()) for name in "abc"], [("y", TensorProto.INT64, (None,))]))
    for bounds in ((0, 5, 1), (4, -4, -2)):
        np.testing.assert_array_equal(run(*(np.array(v, np.int64) for v in bounds))[0], np.arange(*bounds))
    assert set(run.static_inputs) == {"a", "b", "c"}


def test_everything_that_is_refused_is_named_at_once():
    """But not what reads its results; nodes of one operator and reason are in one sentence."""
    nodes = [*(helper.make_node("RandomNormalLike", ["x"], [f"n{i}"]) for i in range(5)), helper.make_node("Sign", ["n0"], ["d"]),
             helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Mystery", ["r"], ["y"], name="last", domain="com.example")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 2)),
                                           helper.make_tensor_value_info("s", TensorProto.STRING, (2,))],
                              [helper.make_empty_tensor_value_info("y")])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("com.example", 3)]
    with pytest.raises(lamina.Error) as refused:
        lamina.from_onnx(helper.make_model(graph, opset_imports=imports))
    first, *rest = str(refused.value).split("; ")
    assert first.startswith("model: input 's': STRING, allowed is a tensor of FLOAT")
    assert rest == ["nodes 'n0', 'n1', 'n2' and 2 more (RandomNormalLike, opset 20): no rule", "node 'last' (Mystery, opset 3): domain 'com.example': no rule"]
    assert refused.value.status == "unimplemented"


def test_a_node_is_refused_also_where_another_needs_the_value_of_an_input():
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("RandomNormalLike", ["x"], ["n"])]
    inputs = [("x", TensorProto.FLOAT, (4, 2)), ("shape", TensorProto.INT64, (2,))]
    with pytest.raises(lamina.Error, match="RandomNormalLike"):
        lamina.from_onnx(model_of(nodes, inputs, [("r", TensorProto.FLOAT, None), ("n", TensorProto.FLOAT, None)]))


def test_graphs_are_dropped_before_their_weights_fill_the_memory(monkeypatch):
    weights = np.ones((16, 3), np.float32)
    run = lamina.from_onnx(model_of([helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])],
                                    [("x", TensorProto.FLOAT, ("n", 4, 4))], [("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(weights, "w")]))
    for bytes_for_weights, kept in ((10 * weights.nbytes, 5), (2 * weights.nbytes, 2), (1, 1)):
        monkeypatch.setattr("lamina.onnx.function.memory_for_weights", lambda: bytes_for_weights)
        run._compiled.clear()
        for batch in range(1, 6):
            assert run(np.ones((batch, 4, 4), np.float32))[0].shape == (batch, 3)
        assert len(run._compiled) == kept


@pytest.mark.parametrize("base, exponent", [(-2.0, 3.0), (-2.0, 2.0), (-2.0, 0.5), (0.0, 0.0), (0.0, 2.0), (0.0, -1.0), (1.0, np.inf), (7.5, -3.25),
                                            (-0.5, -3.0), (np.inf, -1.0)])
def test_powers_are_numpys(base, exponent):
    run = lamina.from_onnx(model_of([helper.make_node("Pow", ["x", "e"], ["y"])], [(n, TensorProto.FLOAT, (2,)) for n in "xe"],
                                    [("y", TensorProto.FLOAT, (2,))]))
    x, e = np.array([base, 3], np.float32), np.array([exponent, 2], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(run(x, e)[0], np.power(x, e), rtol=1e-5)


@pytest.mark.parametrize("name, exact, points", [
    ("Erf", np.vectorize(math.erf), [0, 1e-20, -1e-4, 0.01, 0.019, 0.021, -0.5, 1, 3, -8.5, np.inf, -np.inf]),
    ("Floor", np.floor, [0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e30, -3]), ("Ceil", np.ceil, [0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e30, -3]),
    ("Sinh", np.sinh, [0, 1e-10, -0.3, 0.99, 1.01, -5, 20]), ("Sign", np.sign, [0, -3, 2, np.inf])])
def test_functions_made_of_others_hold_where_they_change_their_form(name, exact, points):
    run = lamina.from_onnx(model_of([helper.make_node(name, ["x"], ["y"])], [("x", TensorProto.FLOAT, (len(points),))],
                                    [("y", TensorProto.FLOAT, (len(points),))]))
    x = np.array(points, np.float32)
    np.testing.assert_allclose(run(x)[0], exact(x.astype(np.float64)), rtol=3e-6, atol=1e-30)


def test_older_models_are_converted_by_onnx():
    older = model_of([helper.make_node("Squeeze", ["x"], ["y"], axes=[1])], [("x", TensorProto.FLOAT, (2, 1, 3))],
                     [("y", TensorProto.FLOAT, (2, 3))], opset=11)
    assert lamina.from_onnx(older)(np.ones((2, 1, 3), np.float32))[0].shape == (2, 3)


LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
def test_onnxs_light_models(path):
    """Image models whose weights are computed by ConstantOfShape, with ONNX's own results."""
    model, wanted = onnx.load(path), onnx.load_tensor(path.with_name(path.stem + "_output_0.pb"))
    weights = {tensor.name for tensor in model.graph.initializer}
    image, = (value for value in model.graph.input if value.name not in weights)
    shape = [dim.dim_value for dim in image.type.tensor_type.shape.dim]
    made, = lamina.from_onnx(model)((np.arange(math.prod(shape)).reshape(shape) / math.prod(shape)).astype(np.float32))
    np.testing.assert_allclose(made, numpy_helper.to_array(wanted), rtol=1e-3, atol=1e-5)


def test_gathered_elements_of_constants_are_computed_when_the_model_is_read():
    """The indices may be shorter along the other axes, too; torch.onnx exports BERT so."""
    data, places = np.arange(20, dtype=np.float32).reshape(4, 5), np.array([[4, -1, 0], [1, 1, 2]])
    nodes = [helper.make_node("GatherElements", ["data", "places"], ["taken"], axis=1), helper.make_node("Add", ["x", "taken"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3))],
                              [numpy_helper.from_array(data, "data"), numpy_helper.from_array(places, "places")])
    made, = lamina.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(made, 1 + np.array([[4, 4, 0], [6, 6, 7]]))


def looped(condition, inputs):
    """y = x + 3 rows of v, and the sums after each row; `condition` names the tensor that ends the loop."""
    body = helper.make_graph(
        [helper.make_node("Add", ["sum", "v"], ["next"]), helper.make_node("Identity", ["next"], ["row"]), helper.make_node("Identity", [condition], ["on"])],
        "body", [helper.make_tensor_value_info("i", TensorProto.INT64, ()), helper.make_tensor_value_info("going", TensorProto.BOOL, ()),
                 helper.make_tensor_value_info("sum", TensorProto.FLOAT, (2,))],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, ()), helper.make_tensor_value_info("next", TensorProto.FLOAT, (2,)),
         helper.make_tensor_value_info("row", TensorProto.FLOAT, (2,))])
    nodes = [helper.make_node("Loop", ["count", "", "x"], ["y", "rows"], body=body)]
    if condition != "going":
        nodes.insert(0, helper.make_node("Less", ["a", "b"], ["is less"]))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,) if name in "xv" else ()) for name in inputs],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2,)), helper.make_tensor_value_info("rows", TensorProto.FLOAT, (3, 2))],
                              [numpy_helper.from_array(np.array(3), "count")])
    return lamina.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))


def test_a_loop_reads_the_graph_around_it():
    x, v = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    y, rows = looped("going", "xv")(x, v)
    np.testing.assert_array_equal(y, x + 3 * v)
    np.testing.assert_array_equal(rows, [x + v, x + 2 * v, x + 3 * v])


def test_a_loop_that_data_end_is_refused_by_name():
    with pytest.raises(lamina.Error, match="Loop.*its condition depends on data"):
        looped("is less", "xvab")


def test_a_node_inside_a_branch_is_named_once():
    branch = helper.make_graph([helper.make_node("Unique", ["x"], ["u"])], "b", [], [helper.make_empty_tensor_value_info("u")])
    graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2,))], [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(np.array(True), "c")])
    with pytest.raises(lamina.Error, match="Unique") as refused:
        lamina.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
    assert str(refused.value).count("model: ") == 1


@pytest.mark.parametrize("equation, shapes", [
    ("ij,jk->ik", [(3, 4), (4, 5)]), ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("...ij,...jk->...ki", [(2, 1, 3, 4), (5, 4, 6)]),
    ("ii->i", [(4, 4)]), ("ij->ji", [(3, 5)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]), ("ij,kl", [(2, 3), (4, 5)]), ("i,i->", [(7,), (7,)]),
    ("bij,bj->bi", [(2, 3, 4), (1, 4)]), ("ij->", [(3, 4)])])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_einsum_is_numpys(equation, shapes, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    values = [np.random.default_rng(i).standard_normal(shape).astype(dtype) for i, shape in enumerate(shapes)]
    wanted = np.einsum(equation, *values)
    names = [f"x{i}" for i in range(len(shapes))]
    graph = helper.make_graph([helper.make_node("Einsum", names, ["y"], equation=equation)], "g",
                              [helper.make_tensor_value_info(name, kind, shape) for name, shape in zip(names, shapes)],
                              [helper.make_tensor_value_info("y", kind, wanted.shape)])
    made, = lamina.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))(*values)
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind, of_numpy", [("ArgMax", np.argmax), ("ArgMin", np.argmin)])
def test_the_place_of_an_extreme_is_numpys_also_beside_nan(kind, of_numpy):
    x = np.array([[3, 1, 3, 0, 0], [1, np.nan, 7, np.nan, -7], [-np.inf, -np.inf, np.inf, np.inf, 0]], np.float32)
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"], axis=1, keepdims=0)], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.INT64, (3,))])
    made, = lamina.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))(x)
    np.testing.assert_array_equal(made, of_numpy(x, 1))


@pytest.mark.parametrize("reverse", [0, 1])
def test_a_running_product_does_not_overflow_in_between(reverse):
    x = np.array([1e-30, 1e30, 1e30, 2], np.float32)[::-1 if reverse else 1].copy()
    run = lamina.from_onnx(model_of([helper.make_node("CumProd", ["x", "axis"], ["y"], reverse=reverse)], [("x", TensorProto.FLOAT, (4,))],
                                    [("y", TensorProto.FLOAT, (4,))], [numpy_helper.from_array(np.array(0), "axis")], opset=26))
    wanted = np.cumprod(x[::-1])[::-1] if reverse else np.cumprod(x)
    np.testing.assert_array_equal(run(x)[0], wanted)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("batch", [(), (4, 2)], ids=str)
def test_determinants_are_numpys(rows, batch):
    x = np.random.default_rng(rows).standard_normal((*batch, rows, rows))
    run = lamina.from_onnx(model_of([helper.make_node("Det", ["x"], ["y"])], [("x", TensorProto.DOUBLE, x.shape)], [("y", TensorProto.DOUBLE, batch)]))
    np.testing.assert_allclose(run(x)[0], np.linalg.det(x), rtol=1e-10, atol=1e-12)


def test_an_identity_matrix_reads_no_values():
    run = lamina.from_onnx(model_of([helper.make_node("EyeLike", ["x"], ["e"], k=1), helper.make_node("Add", ["x", "e"], ["y"])],
                                    [("x", TensorProto.FLOAT, (2, 3))], [("y", TensorProto.FLOAT, (2, 3))]))
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run(x)[0], x + np.eye(2, 3, 1))
    assert run.static_inputs == []


@pytest.mark.parametrize("nodes, weights", [
    ([helper.make_node("Flatten", ["x"], ["y"])], {}), ([helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2])], {}),
    ([helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["n"]), helper.make_node("Concat", ["n", "rest"], ["t"], axis=0),
      helper.make_node("Reshape", ["x", "t"], ["y"])], {"zero": np.array([0]), "rest": np.array([-1])}),
    ([helper.make_node("ArgMax", ["x"], ["y"], axis=1)], {})], ids=lambda v: v[-1].op_type if isinstance(v, list) else "")
def test_extents_that_the_model_leaves_open_are_those_of_the_call(nodes, weights):
    """Batches of any size: an operator that needs shapes is compiled for each of them."""
    run = lamina.from_onnx(model_of(nodes, [("x", TensorProto.FLOAT, ("n", 3, 4, 4))], [("y", TensorProto.FLOAT, None)],
                                    [numpy_helper.from_array(v, name) for name, v in weights.items()]))
    evaluator = ReferenceEvaluator(run._model)
    for batch in (2, 5, 1):
        x = np.random.default_rng(batch).standard_normal((batch, 3, 4, 4)).astype(np.float32)
        np.testing.assert_allclose(run(x)[0], evaluator.run(None, {"x": x})[0], rtol=1e-6)
    assert run.by_shapes and len(run._compiled) == 3


def test_what_a_model_is_compiled_for_is_logged(monkeypatch):
    lines = []
    monkeypatch.setattr("lamina.onnx.function.log.info", lambda line, *parts: lines.append(line % parts))
    run = lamina.from_onnx(model_of([helper.make_node("Tile", ["x", "r"], ["y"])], [("x", TensorProto.FLOAT, ("n",)), ("r", TensorProto.INT64, (1,))],
                                    [("y", TensorProto.FLOAT, None)]))
    assert run(np.ones(3, np.float32), np.array([2]))[0].shape == (6,)
    assert "model is compiled for each value of input 'r'" in lines and "model is compiled for each set of shapes of its inputs" in lines


def test_open_extents_that_no_operator_needs_are_compiled_once():
    run = lamina.from_onnx(model_of([helper.make_node("Relu", ["x"], ["y"])], [("x", TensorProto.FLOAT, ("n", 3))], [("y", TensorProto.FLOAT, None)]))
    for batch in (2, 5):
        assert run(np.ones((batch, 3), np.float32))[0].shape == (batch, 3)
    assert not run.by_shapes and len(run._compiled) == 1


def test_weights_are_shared_by_all_shapes():
    weights = np.random.default_rng(0).standard_normal((48, 5)).astype(np.float32)
    run = lamina.from_onnx(model_of([helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])],
                                    [("x", TensorProto.FLOAT, ("n", 3, 4, 4))], [("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(weights, "w")]))
    imported = [run._imported({}, {"x": Form(None, ((batch, 3, 4, 4),))}) for batch in (1, 2)]
    kept = [next(array for array in made.values.values() if array.shape == weights.shape) for made in imported]
    assert np.shares_memory(*kept)
    x = np.ones((2, 3, 4, 4), np.float32)
    np.testing.assert_allclose(run(x)[0], x.reshape(2, 48) @ weights, rtol=1e-4, atol=1e-4)


def test_a_static_input_that_changes_after_the_call_is_not_compiled_in():
    run = lamina.from_onnx(model_of([helper.make_node("Tile", ["x", "r"], ["t"]), helper.make_node("Gather", ["t", "r"], ["y"])],
                                    [("x", TensorProto.FLOAT, (4,)), ("r", TensorProto.INT64, (1,))], [("y", TensorProto.FLOAT, None)]))
    x, r = np.arange(4, dtype=np.float32), np.array([2])
    assert run(x, r)[0] == 2
    r[0] = 3
    assert run(x, r)[0] == 3 and run(x, np.array([2]))[0] == 2


@pytest.mark.parametrize("updates", [0, 3])
@pytest.mark.parametrize("mode", ["standard", "nesterov"])
def test_two_parameters_are_moved_by_momentum(mode, updates):
    """The results are all parameters, and then all velocities."""
    rng = np.random.default_rng(0)
    values = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in
              (("x1", (3,)), ("x2", (2, 2)), ("g1", (3,)), ("g2", (2, 2)), ("v1", (3,)), ("v2", (2, 2)))}
    node = helper.make_node("Momentum", ["R", "T", *values], ["a", "b", "va", "vb"], domain="ai.onnx.preview.training", alpha=0.9, beta=0.5,
                            norm_coefficient=0.01, mode=mode)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("R", TensorProto.FLOAT, ()), helper.make_tensor_value_info("T", TensorProto.INT64, ()),
                                            *(helper.make_tensor_value_info(name, TensorProto.FLOAT, v.shape) for name, v in values.items())],
                              [helper.make_empty_tensor_value_info(name) for name in ("a", "b", "va", "vb")])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.preview.training", 1)]
    made = lamina.from_onnx(helper.make_model(graph, opset_imports=imports))({"R": np.float32(0.1), "T": np.array(updates), **values})
    for i, k in enumerate("12"):
        gradient = 0.01 * values["x" + k] + values["g" + k]
        velocity = 0.9 * values["v" + k] + (0.5 if updates else 1) * gradient
        np.testing.assert_allclose(made[2 + i], velocity, rtol=1e-5)
        np.testing.assert_allclose(made[i], values["x" + k] - 0.1 * (velocity if mode == "standard" else gradient + 0.9 * velocity), rtol=1e-5, atol=1e-6)
