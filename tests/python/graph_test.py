"""Graphs from Python: built, refused, compiled, called."""
import array
import json
import threading

import numpy as np
import pytest

import lamina
from lamina import _core


def exact_layer_norm(x, epsilon=1e-5):
    x = x.astype(np.float64)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)


def norm_and_gelu(shape=(None, 16)):
    g = lamina.Graph()
    x = g.input(shape)
    y = g.op("ReLU", [g.op("LayerNorm", [x], use_affine=False, keep_stats=False)])
    return g, g.compile([y])


def test_one_graph_serves_every_batch_size():
    _, run = norm_and_gelu()
    for rows in (1, 2, 7, 33):
        x = np.random.default_rng(rows).standard_normal((rows, 16), np.float32)
        np.testing.assert_allclose(run(x), np.maximum(exact_layer_norm(x), 0), atol=1e-6)


def test_two_ops_are_one_partition_with_reasons():
    g, _ = norm_and_gelu((4, 16))
    explained = g.explain()
    ops = [op["kind"] for partition in explained for op in partition["ops"] if op["kind"] != "End"]
    assert ops == ["LayerNorm", "ReLU"] and len(explained) == 1
    assert any(reason["code"].startswith("fused") for reason in explained[0]["ops"][1]["reasons"])


def test_strided_input_is_read_in_place():
    _, run = norm_and_gelu()
    x = np.random.default_rng(0).standard_normal((16, 5)).astype(np.float32).T  # strides (1, 5)
    np.testing.assert_allclose(run(x), np.maximum(exact_layer_norm(x), 0), atol=1e-6)


def test_out_is_written_and_returned():
    _, run = norm_and_gelu()
    x, out = np.ones((3, 16), np.float32), np.full((3, 16), 7, np.float32)
    assert run(x, out=out) is out
    assert (out == 0).all()


def test_read_only_input_is_fine_and_read_only_output_is_refused():
    _, run = norm_and_gelu()
    x = np.ones((3, 16), np.float32)
    x.flags.writeable = False
    assert (run(x) == 0).all()
    with pytest.raises(lamina.Error, match="read-only"):
        run(x, out=x)


def test_the_buffer_protocol_is_enough():
    g = lamina.Graph()
    run = g.compile([g.op("ReLU", [g.input((4,))])])
    out = np.empty(4, np.float32)
    run(array.array("f", [-1, 0, 1, 2]), out=out)
    assert out.tolist() == [0, 0, 1, 2]


def test_raw_bits_stand_for_bf16():
    g = lamina.Graph()
    run = g.compile([g.op("ReLU", [g.input((4,), "bf16")])])
    bits = np.array([0x3F80, 0xBF80, 0x4000, 0x0000], np.uint16)  # 1, -1, 2, 0
    assert run(bits).tolist() == [0x3F80, 0, 0x4000, 0]


def transposed(dtype, columns=3):
    g = lamina.Graph()
    return g.compile([g.op("StaticTranspose", [g.input((2, columns), dtype)], order=[1, 0])])


@pytest.mark.parametrize("dtype", _core.array_types())
def test_arrays_of_every_type_are_read_and_returned(dtype):
    in_numpy, in_torch = _core.array_types()[dtype]
    x = np.arange(6).reshape(2, 3).astype(in_numpy)
    result = transposed(dtype)(x)
    assert result.dtype == x.dtype and (result == x.T).all()
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([[0, 1, 0], [1, 1, 0]]).to(getattr(torch, in_torch))
    result = transposed(dtype)(tensor)
    assert result.dtype == tensor.dtype and (result.float() == tensor.T.float()).all()


def test_a_type_that_arrays_lack_is_named():
    with pytest.raises(lamina.Error, match="a result has type s4, which arrays do not have"):
        transposed("s4", columns=6)(np.zeros((2, 3), np.int8))


def test_names_of_types_are_those_of_logical_tensors():
    assert set(_core.array_types()) < set(lamina.data_types())
    for name in lamina.data_types():
        assert lamina.LogicalTensor(0, name).dtype == name


@pytest.mark.parametrize("dtype, in_numpy", [("u16", np.uint16), ("u32", np.uint32), ("u64", np.uint64)])
def test_unsigned_integers_wrap_around(dtype, in_numpy):
    g = lamina.Graph()
    a, b = g.input((4,), dtype), g.input((4,), dtype)
    outputs = [g.op(kind, [a, b]) for kind in ("Add", "Subtract", "Multiply", "Maximum", "Minimum")] + [g.op("Less", [a, b])]
    x, y = np.array([1, 0, np.iinfo(in_numpy).max, 5], in_numpy), np.array([2, 7, np.iinfo(in_numpy).max, 3], in_numpy)
    made = g.compile(outputs)(x, y)
    for result, wanted in zip(made, (x + y, x - y, x * y, np.maximum(x, y), np.minimum(x, y), x < y), strict=True):
        assert result.dtype == wanted.dtype and (result == wanted).all()


def test_a_constant_needs_no_argument():
    g = lamina.Graph()
    x = g.input((None,))
    run = g.compile([g.op("Multiply", [x, g.constant(3.0)])])
    assert run(np.arange(3, dtype=np.float32)).tolist() == [0, 3, 6]


def test_an_inner_tensor_may_be_an_output():
    g = lamina.Graph()
    x = g.input((3,))
    doubled = g.op("Add", [x, x])
    run = g.compile([doubled, g.op("ReLU", [doubled])])
    first, second = run(np.array([-1, 0, 1], np.float32))
    assert first.tolist() == [-2, 0, 2] and second.tolist() == [0, 0, 2]


def test_json_comes_back_and_runs():
    g, run = norm_and_gelu((4, 16))
    again = lamina.Graph.from_json(g.to_json())
    assert json.loads(again.to_json())["graph"] == json.loads(g.to_json())["graph"]
    x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    assert (again.compile()(x) == run(x)).all()


@pytest.mark.parametrize("build, status, sentence", [
    (lambda g: g.op("LayerNorm", [g.input((2, 8))], use_affine=False, begin_norm_axis=5, name="ln"), "invalid_graph_op",
     'LayerNorm "ln": attribute begin_norm_axis is 5, allowed is -2..1'),
    (lambda g: g.op("LayerNorm", [g.input((2, 8)), g.input((7,)), g.input((8,))], name="ln"), "invalid_shape",
     'LayerNorm "ln": input gamma has shape [7], allowed is [8]'),
    (lambda g: g.op("Add", [g.input((2,)), g.input((2,), "f64")], name="a"), "invalid_data_type", 'Add "a": the types are src_0 f32, src_1 f64 -> dst f32, allowed is f64 with f64 only'),
    (lambda g: g.op("Nothing", []), "invalid_arguments", 'there is no op kind "Nothing"'),
    (lambda g: g.op("GELU", [g.input((2,))], mode=3, name="g"), "invalid_arguments", 'GELU "g": attribute mode is 3, allowed is a string'),
    (lambda g: g.op("GELU", [g.input((2,))], shade=3, name="g"), "invalid_arguments", 'GELU "g": there is no attribute "shade"'),
    (lambda g: _core.Op(0, "GELU", [g.input((2,))], {3: "tanh"}, "g"), "invalid_arguments",
     'GELU "g": the name of an attribute is 3, allowed is a string'),
    (lambda g: g.input((2,), "f33"), "invalid_arguments", 'the type is "f33", allowed is one of f32'),
    (lambda g: lamina.Graph.from_json("{", "dump"), "invalid_graph", "dump: line 1"),
])
def test_what_is_refused_is_named(build, status, sentence):
    with pytest.raises(lamina.Error) as refused:
        build(lamina.Graph())
    assert refused.value.status == status
    assert sentence in str(refused.value)


def test_outputs_of_another_graph_are_refused():
    g, other = lamina.Graph(), lamina.Graph()
    doubled = g.op("Add", [x := g.input((3,)), x])
    foreign = other.op("Add", [y := other.input((3,)), y])
    for given, what in ((foreign, "a tensor of another graph"), ((doubled,), "a tuple"), (None, "a NoneType")):
        with pytest.raises(lamina.Error, match=f"compile: output 1 is {what}, allowed"):
            g.compile([doubled, given])
    assert g.compile([doubled])(np.ones(3, np.float32)).tolist() == [2, 2, 2]


def test_an_index_out_of_range_has_a_status_of_its_own():
    g = lamina.Graph()
    run = g.compile([g.op("Gather", [g.input((3,)), g.input((2,), "s32")], axis=0)])
    with pytest.raises(lamina.Error, match="input indices holds 3 at position") as refused:
        run(np.zeros(3, np.float32), np.array([0, 3], np.int32))
    assert refused.value.status == "index_out_of_range"


@pytest.mark.parametrize("dtype, slope", [("f64", 0.1), ("f32", float(np.float32(0.1)))])
def test_a_number_has_all_digits_beside_f64_alone(dtype, slope):
    g = lamina.Graph()
    run = g.compile([g.op("LeakyReLU", [g.input((2,), dtype)], alpha=0.1)])
    told = json.loads(g.to_json())["graph"][0]["attrs"]["alpha"]
    assert told == {"type": dtype, "value": 0.1}
    x = np.array([-1, 2], {"f64": np.float64, "f32": np.float32}[dtype])
    assert run(x).tolist() == [-slope, 2]
    again = lamina.Graph.from_json(g.to_json())
    assert again.compile()(x).tolist() == [-slope, 2] and again.to_json() == g.to_json()


def test_what_cannot_run_is_refused_with_the_reason():
    g = lamina.Graph()
    x = g.input((2, 3))
    with pytest.raises(lamina.Error, match="Wildcard"):
        made = _core.LogicalTensor(99, "f32", (2, 3))
        op = _core.Op(99, "Wildcard", [x], {})
        op.add_output(made)
        g._graph.add_op(op)
        g.compile()


def test_arrays_that_do_not_fit_are_refused():
    _, run = norm_and_gelu((4, 16))
    with pytest.raises(lamina.Error, match="2 inputs are given, allowed is 1"):
        run(np.ones((4, 16), np.float32), np.ones(1, np.float32))
    with pytest.raises(lamina.Error):
        run(np.ones((4, 17), np.float32))
    with pytest.raises(lamina.Error, match="float64|f64"):
        run(np.ones((4, 16)))
    with pytest.raises(lamina.Error, match="DLPack|__dlpack__"):
        run("text")


def test_many_threads_call_one_graph():
    _, run = norm_and_gelu()
    arrays = [np.random.default_rng(i).standard_normal((64, 16)).astype(np.float32) for i in range(8)]
    wanted, wrong = [run(a) for a in arrays], []

    def work(i):
        for _ in range(50):
            if not (run(arrays[i]) == wanted[i]).all():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_other_threads_run_while_one_computes():
    g = lamina.Graph()
    x = g.input((512, 4096))
    run = g.compile([g.op("SoftMax", [x], axis=-1, outputs=(True, False))[0]])
    a = np.zeros((512, 4096), np.float32)
    out, ticks, done = run(a), [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(0)

    counter = threading.Thread(target=count)
    counter.start()
    for _ in range(20):
        run(a, out=out)
    done.set()
    counter.join()
    assert len(ticks) > 20


def test_every_kind_has_a_schema():
    for kind in lamina.op_kinds():
        schema = lamina.op_schema(kind)
        assert schema["kind"] == kind and all(port["name"] for port in schema["inputs"])


def test_a_tensor_of_another_graph_is_refused():
    one, other = lamina.Graph(), lamina.Graph()
    x, stranger = one.input((2, 3)), other.input((2, 3))
    with pytest.raises(lamina.Error, match='Add "sum": input 1 is a tensor of another graph'):
        one.op("Add", [x, stranger], name="sum")
    with pytest.raises(lamina.Error, match="GELU: input 0 is a tensor of another graph"):
        one.op("GELU", [other.op("ReLU", [stranger])])


def test_a_tuple_of_outputs_is_no_input():
    graph = lamina.Graph()
    made = graph.op("SoftMax", [graph.input((2, 2))])
    with pytest.raises(lamina.Error, match="MatMul: input 0 is a tuple, allowed is a tensor or None: an op with several outputs"):
        graph.op("MatMul", [made, made])


def test_values_of_constants_are_kept_and_not_passed():
    graph = lamina.Graph()
    w, x = graph.input((2, 3), constant=True), graph.input((2, 3))
    weights, ones = np.arange(6, dtype="f").reshape(2, 3), np.ones((2, 3), "f")
    run = graph.compile([graph.op("Add", [x, w])], values={w.id: weights})
    del weights
    for _ in range(2):
        np.testing.assert_array_equal(run(ones), np.arange(6, dtype="f").reshape(2, 3) + 1)
    with pytest.raises(lamina.Error, match="2 inputs are given, allowed is 1"):
        run(ones, ones)


def test_a_kept_value_of_another_type_is_refused():
    graph = lamina.Graph()
    w, x = graph.input((2, 3), constant=True), graph.input((2, 3))
    run = graph.compile([graph.op("Add", [x, w])], values={w.id: np.ones((2, 3))})
    with pytest.raises(lamina.Error, match="input 0"):
        run(np.ones((2, 3), "f"))
