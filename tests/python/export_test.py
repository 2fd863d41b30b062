"""Models that Python exports and the runtime runs: the bits of the compiler's library."""
import gc
import json
import os
import zipfile

import numpy as np
import pytest

import lamina


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def norm_and_product(rows=None, columns=8):
    """x [rows, 16] -> LayerNorm -> MatMul with weights [16, columns]"""
    g = lamina.Graph()
    x, gamma, weights = g.input((rows, 16)), g.input((16,), constant=True), g.input((16, columns), constant=True)
    y = g.op("MatMul", [g.op("LayerNorm", [x, gamma, g.input((16,), constant=True)], keep_stats=False), weights])
    return g, x, y, {1: random(16), 2: random(16, columns), 3: random(16)}


def saved(tmp_path, *arguments, **options):
    path = tmp_path / "model.lamina"
    lamina.export(*arguments, path, **options)
    return lamina.load(path)


def test_graph_has_the_bits_of_the_library(tmp_path):
    g, _, y, weights = norm_and_product(4)
    model = saved(tmp_path, g, weights=weights)
    assert [(port.name, port.dtype, port.shape) for port in model.inputs] == [("0", "f32", (4, 16))]
    assert [(port.name, port.shape) for port in model.outputs] == [(str(y.id), (4, 8))]
    run = norm_and_product(4)[0].compile(values=weights)
    x = random(4, 16, seed=1)
    np.testing.assert_array_equal(model(x), run(x))
    out = np.empty((4, 8), np.float32)
    assert model({"0": x}, out=out, threads=1) is out
    np.testing.assert_array_equal(out, run(x))


def test_open_extents_are_exported_for_ranges_and_lists(tmp_path):
    g, x, _, weights = norm_and_product()
    model = saved(tmp_path, g, weights=weights, shapes=[{x: (range(1, 4), 16)}, {0: (64, 16)}])
    assert model.inputs[0].shape == (None, 16) and len(model.variants) == 4
    run = norm_and_product()[0].compile(values=weights)
    for rows in (1, 2, 3, 64):
        source = random(rows, 16, seed=rows)
        np.testing.assert_array_equal(model(source), run(source))
    with pytest.raises(lamina.Error, match=r"5, 16"):
        model(random(5, 16))


def test_dump_and_options_give_the_same_file(tmp_path):
    g, _, _, weights = norm_and_product(4)
    dump = tmp_path / "graph.json"
    dump.write_text(g.to_json())
    lamina.export(g, tmp_path / "a.lamina", weights=weights, isa=["avx2", "neon"], threads=2)
    lamina.export(dump, tmp_path / "b.lamina", weights=weights, isa=["avx2", "neon"], threads=2)
    assert (tmp_path / "a.lamina").read_bytes() == (tmp_path / "b.lamina").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.lamina") as file:
        meta = json.loads(file.read("meta.json"))
    assert [program["isa"] for program in meta["programs"]] == ["avx2", "neon"]
    assert {p.name for p in tmp_path.iterdir()} == {"graph.json", "a.lamina", "b.lamina"}


def test_types_that_numpy_lacks_are_raw_bits(tmp_path):
    g = lamina.Graph()
    x = g.input((4, 16), "bf16")
    g.op("Add", [x, x])
    model = saved(tmp_path, g)
    raw = (random(4, 16).view(np.uint32) >> 16).astype(np.uint16)
    np.testing.assert_array_equal(model(raw), raw + 0x80)  # twice the number


def test_packed_weights_are_in_the_file_if_asked(tmp_path):
    g, _, _, weights = norm_and_product(40, 32)
    plain, packed = tmp_path / "plain.lamina", tmp_path / "packed.lamina"
    lamina.export(g, plain, weights=weights)
    lamina.export(g, packed, weights=weights, packed=True)
    model = lamina.load(packed, verify_weights=True)
    with zipfile.ZipFile(packed) as file:
        assert file.getinfo(f"packed/{model.isa}").file_size >= 16 * 32 * 4
    x = random(40, 16)
    np.testing.assert_array_equal(model(x), lamina.load(plain)(x))


@pytest.mark.parametrize("change, message", [
    (dict(isa="vax"), 'instruction set "vax"'),
    (dict(weights={9: np.zeros(3)}), "tensor 9 is no input of the graph, allowed is one of 0, 1"),
    (dict(weights={1: np.zeros(3, np.float32)}), r"the data of tensor 1 are f32\[3\], allowed is f32\[16\]"),
    (dict(shapes={0: (range(1, 3), range(1, 5))}), "allowed are ranges of the same length"),
    (dict(shapes={0: (4, 15)}), "15"),
    (dict(shapes={7: (4, 15)}), "tensor 7 is no input"),
    (dict(example_inputs=[1]), "with a torch.nn.Module"),
])
def test_refusals_leave_no_file(tmp_path, change, message):
    g, *_, weights = norm_and_product(4)
    with pytest.raises(lamina.Error, match=message):
        saved(tmp_path, g, **{"weights": weights, **change})
    assert not list(tmp_path.iterdir())


def test_open_shape_and_other_objects_are_refused(tmp_path):
    with pytest.raises(lamina.Error, match="allowed is a known shape"):
        saved(tmp_path, norm_and_product()[0])
    with pytest.raises(lamina.Error, match="a list is given, allowed is a Graph"):
        saved(tmp_path, [])


def test_garbage_is_collected_afterwards_as_before(tmp_path):
    g, _, _, weights = norm_and_product(4)
    for is_enabled in (False, True):
        (gc.enable if is_enabled else gc.disable)()
        try:
            saved(tmp_path, g, weights=weights)
            assert gc.isenabled() == is_enabled
            with pytest.raises(lamina.Error):
                lamina.export(3, tmp_path / "model.lamina")
            assert gc.isenabled() == is_enabled
        finally:
            gc.enable()


def test_calls_are_checked(tmp_path):
    g, _, _, weights = norm_and_product(4)
    model = saved(tmp_path, g, weights=weights)
    for arrays, message in ((((),), "2 inputs|buffer protocol|is a tuple"), ((random(4, 16).astype(np.float64),), "'0' is f64"),
                            ((random(4, 32)[:, ::2],), "strides"), ((random(4, 16), 1), "2 inputs are given, allowed is 1: 0"),
                            (({"y": 1},), "input '0' is missing")):
        with pytest.raises(lamina.Error, match=message):
            model(*arrays)
    with pytest.raises(lamina.Error, match="out has 2 arrays"):
        model(random(4, 16), out=[1, 2])
    with pytest.raises(lamina.Error, match="no_such"):
        lamina.load(tmp_path / "no_such.lamina")


def test_damaged_weights_are_found_if_asked(tmp_path):
    g, _, _, weights = norm_and_product(4)
    saved(tmp_path, g, weights=weights)
    path = tmp_path / "model.lamina"
    with zipfile.ZipFile(path) as file:
        member = file.getinfo("weights.safetensors")
    data = bytearray(path.read_bytes())
    at = data.find(weights[2].tobytes(), member.header_offset)
    data[at] ^= 1
    path.write_bytes(data)
    lamina.load(path)
    with pytest.raises(lamina.Error, match="weights"):
        lamina.load(path, verify_weights=True)


# ---- ONNX

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def onnx_model(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, "m", [helper.make_tensor_value_info(*each) for each in inputs],
                              [helper.make_tensor_value_info(*each) for each in outputs],
                              [numpy_helper.from_array(array, name) for name, array in weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def flattened_product(batch):
    """Its Reshape reads the shape of x: with an open batch, each variant has another shape as a constant."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Shape", ["p"], ["s"]),
             helper.make_node("Gather", ["s", "zero"], ["n"]), helper.make_node("Unsqueeze", ["n", "axis"], ["n1"]),
             helper.make_node("Concat", ["n1", "minus"], ["to"], axis=0), helper.make_node("Reshape", ["p", "to"], ["y"])]
    return onnx_model(nodes, [("x", TensorProto.FLOAT, [batch, 3, 16])], [("y", TensorProto.FLOAT, None), ("p", TensorProto.FLOAT, None)],
                      [("w", random(16, 8)), ("zero", np.array(0)), ("axis", np.array([0])), ("minus", np.array([-1]))])


def test_onnx_model_has_the_bits_of_the_library_for_each_batch(tmp_path):
    function = lamina.from_onnx(flattened_product("batch"))
    model = saved(tmp_path, function, shapes={"x": (range(1, 4), 3, 16)})
    assert [port.name for port in model.inputs] == ["x"] and [port.name for port in model.outputs] == ["y", "p"]
    for batch in (1, 2, 3):
        x = random(batch, 3, 16, seed=batch)
        for made, expected in zip(model(x), function(x)):
            np.testing.assert_array_equal(made, expected)
    assert os.path.getsize(tmp_path / "model.lamina") < 60000


def test_onnx_file_and_refusals(tmp_path):
    file = tmp_path / "model.onnx"
    onnx.save(flattened_product(2), file)
    assert saved(tmp_path, str(file)).outputs[0].shape == (2, 24)
    with pytest.raises(lamina.Error, match="the shape of input 'x' is open"):
        saved(tmp_path, lamina.from_onnx(flattened_product("batch")))
    with pytest.raises(lamina.Error, match=r"input 'x' is given as \[2, 3, 15\], allowed is \[\?, 3, 16\]"):
        saved(tmp_path, lamina.from_onnx(flattened_product("batch")), shapes={"x": (2, 3, 15)})
    with pytest.raises(lamina.Error, match="the model has no input 'z', allowed is one of x"):
        saved(tmp_path, str(file), shapes={"z": (1,)})
    same = onnx_model([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Shape", ["x"], ["s"])],
                      [("x", TensorProto.FLOAT, [2])],
                      [("y", TensorProto.FLOAT, None), ("x", TensorProto.FLOAT, None), ("s", TensorProto.INT64, None)])
    with pytest.raises(lamina.Error, match="output 's' is a constant; output 'x' is an input"):
        saved(tmp_path, lamina.from_onnx(same))
    sized = onnx_model([helper.make_node("NonZero", ["x"], ["y"])], [("x", TensorProto.FLOAT, [2])], [("y", TensorProto.INT64, None)])
    with pytest.raises(lamina.Error, match="size or value that depends on data: y"):
        saved(tmp_path, lamina.from_onnx(sized))


def test_values_of_onnx_inputs_become_part_of_the_file(tmp_path):
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    function = lamina.from_onnx(onnx_model([node], [("x", TensorProto.FLOAT, [2, 8]), ("axes", TensorProto.INT64, [1])],
                                           [("y", TensorProto.FLOAT, None)]))
    with pytest.raises(lamina.Error, match="input 'axes' determines shapes or attributes"):
        saved(tmp_path, function)
    model = saved(tmp_path, function, weights={"axes": np.array([1])})
    x = random(2, 8)
    np.testing.assert_array_equal(model(x), function(x, np.array([1]))[0])


# ---- torch

torch = pytest.importorskip("torch")


class Block(torch.nn.Module):
    """Two ways to read one weight, a view as a result, a buffer, and a product behind a norm."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 16)
        self.norm, self.first, self.second = torch.nn.LayerNorm(16), torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
        self.register_buffer("scale", torch.linspace(0.5, 2, 16))

    def forward(self, tokens, mask):
        hidden = self.embedding(tokens)
        hidden = hidden + self.second(torch.nn.functional.gelu(self.first(self.norm(hidden)))) * self.scale
        hidden = hidden * mask[:, :, None]
        return hidden @ self.embedding.weight.t(), hidden.transpose(1, 2)


@pytest.fixture(scope="module")
def block():
    torch.manual_seed(0)
    return Block().eval()


def block_inputs(batch, length=5):
    return torch.randint(0, 50, (batch, length)), (torch.rand(batch, length) > 0.3).float()


def by_backend(module, inputs):
    torch._dynamo.reset()
    with torch.no_grad():
        return torch.compile(module, backend="lamina", options={"require": 1.0})(*inputs)


def test_module_has_the_bits_of_the_backend(tmp_path, block):
    inputs = block_inputs(3)
    model = saved(tmp_path, block, example_inputs=inputs)
    assert [(port.name, port.shape) for port in model.inputs] == [("tokens", (3, 5)), ("mask", (3, 5))]
    for made, expected in zip(model(*inputs), by_backend(block, inputs)):
        assert torch.equal(made, expected)
    assert os.path.getsize(tmp_path / "model.lamina") < 100000  # the embedding is in it once


def test_exported_program_with_open_batch_is_exported_for_ranges(tmp_path, block):
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(block, block_inputs(3), dynamic_shapes=({0: batch}, {0: batch}))
    shapes = {"tokens": (range(2, 5), 5), "mask": (range(2, 5), 5)}
    model = saved(tmp_path, program, shapes=shapes)
    of_module = tmp_path / "module.lamina"
    lamina.export(block, of_module, example_inputs=block_inputs(3), shapes=shapes)
    for rows in (2, 3, 4):
        inputs = block_inputs(rows)
        for made, other, expected in zip(model(*inputs), lamina.load(of_module)(*inputs), by_backend(block, inputs)):
            assert torch.equal(made, expected) and torch.equal(other, expected)
    with pytest.raises(lamina.Error, match="the shape of input 'tokens' is open"):
        saved(tmp_path, program)
    with pytest.raises(lamina.Error, match=r"input 'tokens' is given as \[2, 6\], allowed is \[\?, 5\]"):
        saved(tmp_path, program, shapes={"tokens": (2, 6)})


def test_ports_have_the_names_of_the_program(tmp_path):
    class Named(torch.nn.Module):
        def forward(self, input):  # a name of Python's own
            return torch.nn.functional.silu(input), torch.relu_(input + 1)

    inputs = (torch.randn(2, 3),)
    program = torch.export.export(Named(), inputs)
    model = saved(tmp_path, program)
    assert [port.name for port in model.inputs] == ["input"]
    assert [port.name for port in model.outputs] == list(program.graph_signature.user_outputs)
    for made, expected in zip(model(*inputs), Named()(*inputs)):
        torch.testing.assert_close(made, expected)


def test_ops_that_torch_exports_whole_are_decomposed(tmp_path):
    def chosen(x, mask):
        torch.ops.aten._assert_tensor_metadata(x * 2, None, None, torch.float32)
        y = torch.where(mask, 0.5, torch.where(mask, x, 2.0)) + torch.where(mask, 1.0, 0.0)
        return torch.nn.functional.interpolate(torch.max(y, x), scale_factor=2.0, mode="bilinear")

    class Module(torch.nn.Module):
        forward = staticmethod(chosen)

    inputs = torch.randn(1, 2, 4, 4), torch.rand(1, 2, 4, 4) > 0.5
    torch.testing.assert_close(saved(tmp_path, Module(), example_inputs=inputs)(*inputs), chosen(*inputs))


def test_everything_that_cannot_be_exported_is_named_at_once(tmp_path):
    class Refused(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count += 1
            return torch.fft.rfft(x).abs(), torch.nonzero(x), x, torch.ones(3)

    with pytest.raises(lamina.Error) as refused:
        saved(tmp_path, Refused(), example_inputs=(torch.rand(4, 8),))
    for part in ("the model writes 'count'", "rfft|_fft_r2c", "nonzero", "is an input", "is a constant"):
        assert refused.match(part)
    with pytest.raises(lamina.Error, match="allowed is one with example_inputs"):
        saved(tmp_path, Block())
    with pytest.raises(lamina.Error, match="allowed are they for graphs and ONNX models"):
        saved(tmp_path, Block(), example_inputs=block_inputs(2), weights={"x": 1})
