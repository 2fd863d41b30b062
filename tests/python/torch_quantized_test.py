"""Products with weights of 4 and 8 bits, and products of integers, against eager."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")

import lamina  # noqa: E402,F401
import lamina.torch as lt  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def carried(function, *inputs, bound):
    """Runs the function by lamina and compares with eager, relative to the largest result. Returns the report."""
    wanted = function(*inputs)
    report = lt.explain(function, *inputs)
    left = [(node.op, node.reason) for graph in report.graphs for node in graph.left() if node.floating or "rows_of" not in node.op]
    assert not left and report.share == 1, left
    made = torch.compile(function, backend="lamina")(*inputs)
    assert made.dtype == wanted.dtype and made.shape == wanted.shape
    assert (made.double() - wanted.double()).abs().max() <= bound * wanted.double().abs().max().clamp(min=1)
    return report


def kernel_names(report):
    return str([graph.kernels for graph in report.graphs])


@pytest.mark.parametrize("dtype, bound", [(torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)])
@pytest.mark.parametrize("rows", [1, 4, 200])
def test_int8_weights(dtype, bound, rows):
    weights, scales = torch.randint(-128, 128, (48, 64), dtype=torch.int8), torch.rand(48).to(dtype) * 0.02
    report = carried(lambda x: torch.ops.aten._weight_int8pack_mm(x, weights, scales), torch.randn(rows, 64).to(dtype), bound=bound)
    assert "product by s8" in kernel_names(report)  # no copy of the weights as floats


@pytest.mark.parametrize("dtype, bound", [(torch.float32, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 3e-3)])
@pytest.mark.parametrize("n, k, group", [(64, 128, 32), (32, 64, 64), (96, 256, 128), (48, 64, 32)])
@pytest.mark.parametrize("rows", [1, 5, 130])
def test_int4_weights(dtype, bound, n, k, group, rows):
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(torch.randint(0, 16, (n, k), dtype=torch.int32), 2)
    scales = torch.stack([torch.rand(k // group, n) * 0.05, torch.randn(k // group, n) * 0.1], -1).to(dtype)
    report = carried(lambda x: torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, group, scales), torch.randn(rows, k).to(dtype), bound=bound)
    assert "product by s4" in kernel_names(report)


def test_int4_weights_that_change():
    packed = lambda: torch.ops.aten._convert_weight_to_int4pack_for_cpu(torch.randint(0, 16, (32, 64), dtype=torch.int32), 2)
    weights, scales, x = packed(), torch.rand(2, 32, 2), torch.randn(3, 64)
    run = torch.compile(lambda x, w: torch.ops.aten._weight_int4pack_mm_for_cpu(x, w, 32, scales), backend="lamina")
    for _ in range(3):
        torch.testing.assert_close(run(x, weights), torch.ops.aten._weight_int4pack_mm_for_cpu(x, weights, 32, scales), rtol=1e-4, atol=1e-4)
        weights.copy_(packed())
    other = packed()
    torch.testing.assert_close(run(x, other), torch.ops.aten._weight_int4pack_mm_for_cpu(x, other, 32, scales), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("k", [64, 1024, 1025, 5000])
def test_products_of_integers_are_exact(k):
    a, b = torch.randint(-128, 128, (20, k), dtype=torch.int8), torch.randint(-128, 128, (24, k), dtype=torch.int8)
    a[0], b[0] = -128, -128  # the largest sum
    wanted = a.int() @ b.int().t()
    assert torch.equal(torch.compile(lambda a, b: torch._int_mm(a, b.t()), backend="lamina", options={"require": 1.0})(a, b), wanted)
    carried(lambda a, b: torch._int_mm(a, b.t()).float() * 0.5, a, b, bound=2e-7)


def test_casts_of_8_bit_integers():
    x = torch.arange(-128, 128, dtype=torch.int8)
    carried(lambda x: x.float() * 0.5, x, bound=0)
    carried(lambda x: x.bfloat16() * 2, x, bound=0)
    carried(lambda x: (x * 3.7).clamp(-128, 127).to(torch.int8), torch.linspace(-40, 40, 333), bound=0)
    carried(lambda x: (x * 3.7).clamp(0, 255).to(torch.uint8), torch.linspace(-40, 80, 333), bound=0)
    for source in (torch.int32, torch.int64):  # integers outside of the type wrap around
        for dtype in (torch.int8, torch.uint8):
            carried(lambda x: x.to(dtype), torch.arange(-1000, 1000, dtype=source), bound=0)
    carried(lambda x: x.to(torch.uint8), x, bound=0)
    carried(lambda x: x.to(torch.int8), x.to(torch.uint8), bound=0)
    for dtype in (torch.int8, torch.uint8):
        carried(lambda x: x.to(dtype), torch.linspace(-1000, 1000, 999), bound=0)


@pytest.mark.parametrize("name", ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"])
@pytest.mark.parametrize("dtype, bound", [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("rows", [1, 30, 200])
def test_torchao(name, dtype, bound, rows):
    quantization = pytest.importorskip("torchao.quantization", reason="torchao is not installed")
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.Linear(96, 64)).to(dtype).eval()
    quantization.quantize_(model, getattr(quantization, name)())
    with torch.no_grad():
        report = carried(lambda x: model(x), torch.randn(rows, 64).to(dtype), bound=bound)
    if name == "Int8WeightOnlyConfig":
        assert "product by s8" in kernel_names(report)


@pytest.mark.parametrize("name", ["IntxWeightOnlyConfig", "Int8DynamicActivationIntxWeightConfig"])
@pytest.mark.parametrize("dtype, bound", [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("rows", [1, 60])
def test_torchao_in_groups(name, dtype, bound, rows):
    """torchao writes out the dequantisation of groups in small operations."""
    quantization = pytest.importorskip("torchao.quantization", reason="torchao is not installed")
    model = torch.nn.Sequential(torch.nn.Linear(128, 96), torch.nn.GELU(), torch.nn.Linear(96, 64)).to(dtype).eval()
    config = getattr(quantization, name)(**{"granularity" if "Only" in name else "weight_granularity": quantization.granularity.PerGroup(32)})
    quantization.quantize_(model, config)
    with torch.no_grad():
        report = carried(lambda x: model(x), torch.randn(rows, 128).to(dtype), bound=bound)
    assert f"product {'' if 'Only' in name else 'of s8 '}by s8 in groups of 32" in kernel_names(report)
