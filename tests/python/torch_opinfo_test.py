"""torch's OpInfo for the operations that lamina has, forward and gradient, each beside float64 (torch_samples.py)."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")
import torch.nn.functional as F  # noqa: E402

from torch_samples import COUNT, TYPES, Tally, check, compiled, double, outcome, some_of  # noqa: E402

try:
    from torch.testing._internal.common_methods_invocations import op_db
except Exception as error:  # torch's own test support needs packages that torch does not
    pytest.skip(f"torch's OpInfo cannot be imported: {error}", allow_module_level=True)

NAMES = """native_layer_norm nn.functional.layer_norm nn.functional.rms_norm nn.functional.group_norm nn.functional.batch_norm
nn.functional.instance_norm softmax log_softmax _softmax_backward_data nn.functional.gelu nn.functional.silu nn.functional.mish
nn.functional.linear addmm addbmm baddbmm bmm mm matmul mean sum amax amin prod cat stack where exp log sqrt rsqrt sin cos tanh sigmoid abs neg
reciprocal square nn.functional.relu nn.functional.hardswish nn.functional.hardsigmoid nn.functional.hardtanh nn.functional.leaky_relu
nn.functional.elu nn.functional.softplus nn.functional.prelu nn.functional.threshold nn.functional.softmin add sub mul div rsub maximum minimum
clamp clamp_min clamp_max pow eq ne lt le gt ge logical_and logical_not nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d
nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d nn.functional.scaled_dot_product_attention
nn.functional.max_pool2d nn.functional.avg_pool2d nn.functional.interpolate nn.functional.embedding nn.functional.pad index_select roll
nn.functional.cross_entropy nn.functional.nll_loss nn.functional.glu nn.functional.normalize masked_fill addcmul lerp""".split()
OPS = [op for op in op_db if op.name in NAMES]
PLAIN = {"nn.functional.scaled_dot_product_attention": F.scaled_dot_product_attention}  # OpInfo's wrapper sets a seed: it is not traced
# Compared, not counted: torch has parts of them that lamina has no op for (products of all but one, weights of classes, and so on).
PARTLY = {"prod", "pow", "nn.functional.cross_entropy", "nn.functional.nll_loss"}
COUNTED_MODES = {"nn.functional.pad": ["constant"], "nn.functional.interpolate": ["nearest", "bilinear"], "div": ["no_rounding_mode"]}
tally, others = Tally(), Tally()


def calls_of(op, dtype):
    """(args, kwargs) of samples that draw no random numbers."""
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and op.supports_dtype(dtype, "cpu")))
    if op.name.endswith("max_pool2d"):  # 1,440 alike ones
        samples = [s for s in samples[::7] if not s.kwargs.get("return_indices")][::6]
    return [((s.input, *s.args), s.kwargs) for s in some_of(samples) if not s.kwargs.get("dropout_p")]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", OPS, ids=[op.formatted_name for op in OPS])
def test_samples(op, dtype):
    if not op.supports_dtype(TYPES[dtype], "cpu"):
        pytest.skip(f"torch has no {dtype} row of {op.name}")
    function = PLAIN.get(op.name, op.op)
    for args, kwargs in calls_of(op, TYPES[dtype]):
        reports = []
        eager = outcome(function, args, kwargs)
        exact = outcome(function, double(args), double(kwargs))
        ours = outcome(compiled(lambda *a, **k: function(*a, **k), reports), args, kwargs)
        assert reports, "the backend was not called"
        check(ours, eager, exact, TYPES[dtype], (args, kwargs))
        counted = op.name not in PARTLY and op.variant_test_name in COUNTED_MODES.get(op.name, [op.variant_test_name])
        (tally if counted else others).add(op.formatted_name, reports)


def test_samples_are_carried():
    """Not those of float64, of which lamina has no products."""
    print(f"{tally}\nothers: {others}")
    if "f64" in TYPES or tally.samples < 100:
        pytest.skip("too few samples, or float64: no share is asked for")
    assert tally.carried >= (0.99 if COUNT == "all" else 0.93) * tally.samples, str(tally)
