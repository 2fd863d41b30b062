"""Somebody else's samples: torch's OpInfo for the operations that lamina has, forward and gradient, each beside float64.

LAMINA_OPINFO_SAMPLES: how many samples of each operation (4), "all" for every one."""
import copy
import os

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")
import lamina.torch as lt  # noqa: E402

try:
    from torch.testing._internal.common_methods_invocations import op_db
except Exception as error:  # torch's own test support needs packages that torch does not
    pytest.skip(f"torch's OpInfo cannot be imported: {error}", allow_module_level=True)

NAMES = """native_layer_norm nn.functional.layer_norm nn.functional.rms_norm nn.functional.group_norm softmax log_softmax
nn.functional.gelu nn.functional.silu nn.functional.mish nn.functional.linear addmm bmm mm mean sum amax cat where exp tanh sigmoid
nn.functional.relu nn.functional.hardswish add mul div""".split()
OPS = [op for op in op_db if op.name in NAMES and not op.variant_test_name]
COUNT = os.environ.get("LAMINA_OPINFO_SAMPLES", "4")


def floats(value):
    values = value if isinstance(value, (tuple, list)) else [value]
    return [v for v in values if isinstance(v, torch.Tensor) and v.is_floating_point()]


def double(value):
    if isinstance(value, torch.Tensor):
        return value.detach().double().requires_grad_(value.requires_grad) if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(double(v) for v in value)
    return {k: double(v) for k, v in value.items()} if isinstance(value, dict) else value


def outcome(function, sample):
    """Outputs and gradients of all floating inputs."""
    outputs = floats(function(sample.input, *sample.args, **sample.kwargs))
    inputs = [t for t in floats([*([sample.input] if isinstance(sample.input, torch.Tensor) else sample.input), *sample.args]) if t.requires_grad]
    wanted = [o for o in outputs[:1] if o.requires_grad]
    grads = torch.autograd.grad([o.sum() for o in wanted], inputs, allow_unused=True) if wanted and inputs else []
    return [t.detach() for t in [*outputs, *[g for g in grads if g is not None]]]


@pytest.mark.parametrize("op", OPS, ids=[op.name for op in OPS])
def test_samples(op):
    samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=True))
    chosen = samples if COUNT == "all" else samples[:: max(1, len(samples) // int(COUNT))][: int(COUNT)]
    assert chosen
    for sample in chosen:
        called = []

        def backend(gm, inputs):
            called.append(1)
            return lt.backend(gm, inputs, options={"warn": False})

        torch._dynamo.reset()
        run = torch.compile(lambda *a, **k: op.op(*a, **k), backend=backend, fullgraph=True)
        ours, eager = outcome(run, sample), outcome(op.op, sample)
        exact_sample = copy.copy(sample)
        exact_sample.input, exact_sample.args, exact_sample.kwargs = double(sample.input), double(sample.args), double(sample.kwargs)
        exact = outcome(op.op, exact_sample)
        assert called and len(ours) == len(eager) == len(exact)
        for a, b, e in zip(ours, eager, exact):
            assert a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride(), sample
            same = torch.isfinite(e) & torch.isfinite(b)
            assert (torch.isfinite(a) == torch.isfinite(b)).all(), sample
            off = (a.double() - e)[same].abs()
            allowed = 8 * (b.double() - e)[same].abs() + 2e-6 * e[same].abs() + 1e-6
            assert (off <= allowed).all(), (sample, off.max().item())
