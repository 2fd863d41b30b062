"""torch's OpInfo through torch.compile(backend="lamina"): each sample is called twice under one seed, forward and gradient, and held
against eager and 64 bits (torch_samples.py). What is chosen of types, layouts and samples is told there.

Where lamina's answer is not eager's, the same is asked of aot_eager, also with torch's decompositions: what they answer otherwise, too, is torch's
own difference, and counted apart."""
import collections
import json
import random

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")
from torch.utils._pytree import tree_leaves  # noqa: E402

from torch_samples import (COUNT, KNOWN_TYPES, LAYOUTS, REPORT, SEED, Tally, Wrong, alike, check, compiled, double, laid_out, named,  # noqa: E402
                           two_calls)

try:
    from torch.testing._internal import common_methods_invocations, opinfo
    from torch.testing._internal.common_methods_invocations import op_db
except Exception as error:  # torch's test utilities need packages that torch does not require
    pytest.skip(f"torch's OpInfo cannot be imported: {error}", allow_module_level=True)

NAMES = """native_layer_norm nn.functional.layer_norm nn.functional.rms_norm nn.functional.group_norm nn.functional.batch_norm
nn.functional.instance_norm softmax log_softmax _softmax_backward_data nn.functional.gelu nn.functional.silu nn.functional.mish
nn.functional.linear addmm addbmm baddbmm bmm mm matmul mean sum amax amin prod cat stack where exp expm1 log log1p sqrt rsqrt sin cos tanh
atan2 fmod remainder cumprod floor ceil erf flip sigmoid erfc abs neg sign trunc reciprocal square nn.functional.relu nn.functional.hardswish nn.functional.hardsigmoid nn.functional.hardtanh nn.functional.leaky_relu
nn.functional.elu nn.functional.softplus nn.functional.prelu nn.functional.threshold nn.functional.softmin add sub mul div rsub maximum minimum
lgamma digamma unfold clamp clamp_min clamp_max pow eq ne lt le gt ge logical_and logical_not nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d
nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d nn.functional.scaled_dot_product_attention
nn.functional.max_pool2d nn.functional.avg_pool2d nn.functional.interpolate nn.functional.embedding nn.functional.pad index_select roll
nn.functional.cross_entropy nn.functional.nll_loss nn.functional.glu nn.functional.normalize masked_fill addcmul lerp""".split()
# Compared but not counted: lamina has no ops for parts of them (products of all but one element, class weights, f64, and so on).
PARTLY = {"prod", "pow", "lgamma", "digamma", "nn.functional.cross_entropy", "nn.functional.nll_loss"}
COUNTED_MODES = {"nn.functional.pad": ["constant"], "nn.functional.interpolate": ["nearest", "bilinear"]}
COUNTED_TYPES = ("f32", "f64", "bf16")
DRAWN_OTHERS = 20  # number of operations without an op in lamina, by default
tally, others = Tally(), Tally()
counts = collections.defaultdict(collections.Counter)  # (operation, type, layout) -> what became of the samples


def chosen_ops():
    own, rest = ([op for op in op_db if (op.name in NAMES) is having] for having in (True, False))
    by_name = {"lamina": own, "others": rest, "all": op_db}
    asked = (named("LAMINA_OPINFO_OPS", ("lamina", "others")) or ["some"])
    if asked == ["some"]:
        return own + random.Random(SEED).sample(rest, DRAWN_OTHERS)
    return [op for name in asked for op in by_name[name]]


OPS = chosen_ops()


@pytest.fixture(autouse=True)
def as_torch_runs_them(monkeypatch):
    """OpInfo's wrapper that sets a seed is not traced: its operation is called as it is, under the seed of two_calls. What data decide is
    traced, too."""
    for module in (common_methods_invocations, opinfo.core, *vars(opinfo.definitions).values()):
        if hasattr(module, "wrapper_set_seed"):
            monkeypatch.setattr(module, "wrapper_set_seed", lambda op, *args, **kwargs: op(*args, **kwargs))
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        yield


@pytest.fixture(scope="module", autouse=True)
def told_at_the_end():
    yield
    if REPORT:
        with open(REPORT, "a", encoding="utf-8") as file:
            for (op, dtype, layout), entry in counts.items():
                file.write(json.dumps({"op": op, "type": dtype, "layout": layout, **entry}) + "\n")


def samples_of(op, dtype):
    torch.manual_seed(0)
    grads = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=grads))
    return [((s.input, *s.args), s.kwargs) for s in samples]


def cases_of(op):
    """(type, layout, args, kwargs), as many as are asked for: by default one of f32, plain, and draws of all there are; a draw of an
    operation that lamina has not."""
    listed = [name for name, dtype in KNOWN_TYPES.items() if dtype in op.supported_dtypes("cpu")]
    types, layouts = named("LAMINA_OPINFO_TYPES", KNOWN_TYPES), named("LAMINA_OPINFO_LAYOUTS", LAYOUTS)
    draw = random.Random(f"{SEED} {op.formatted_name}")
    if types or layouts:
        pairs = [(t, layout) for t in types or listed for layout in layouts or ["plain"] if t in listed]
        for name, layout in pairs:
            samples = samples_of(op, KNOWN_TYPES[name])
            some = samples if COUNT == "all" or len(samples) <= int(COUNT) else draw.sample(samples, int(COUNT))
            yield from ((name, layout, *sample) for sample in some)
        return
    count = int(COUNT) if op.name in NAMES else 1
    for place in range(count if listed else 0):
        name, layout = ("f32", "plain") if place == 0 and op.name in NAMES and "f32" in listed else (draw.choice(listed), draw.choice(LAYOUTS))
        samples = samples_of(op, KNOWN_TYPES[name])
        if samples:
            yield (name, layout, *draw.choice(samples))


def answers_of_torch(function, args, kwargs, layout):
    """Eager's two answers and those of 64 bits, which are None where they cannot be had or eager draws; None where eager refuses."""
    try:
        if laid_out((args, kwargs), layout) is None:
            return None
        eager = two_calls(function, args, kwargs, layout)
    except Exception:
        return None
    try:
        exact = two_calls(function, double(args), double(kwargs), layout) if alike(*eager) else [None, None]
    except Exception:
        exact = [None, None]
    return eager, exact


def judge(function, args, kwargs, layout, eager, exact):
    """What is wrong with the answers of a compiled function; None where nothing is."""
    text = f"{layout} {describe((args, kwargs))}"
    try:
        ours = two_calls(function, args, kwargs, layout)
    except Exception as error:
        return Wrong("raises", f"{type(error).__name__}: {str(error)[:600]}, {text}")
    try:
        for a, b, e in zip(ours, eager, exact):
            check(a, b, e, text)
        if alike(*ours) != alike(*eager) and alike(*eager):
            raise Wrong("values", f"two calls differ, eager's do not, {text}")
    except Wrong as wrong:
        return wrong
    return None


def describe(value):
    one = lambda leaf: f"{str(leaf.dtype)[6:]}{list(leaf.shape)}" if isinstance(leaf, torch.Tensor) else repr(leaf)
    return "(" + ", ".join(one(leaf) for leaf in tree_leaves(value)) + ")"


def is_undefined(function, args, kwargs, layout):
    """Whether eager returns memory that it has not written: torch fills it where it is asked for determinism."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        filled = two_calls(function, args, kwargs, layout)[0]
    finally:
        torch.use_deterministic_algorithms(False)
    return any(t.numel() and bool(t.isnan().all()) if t.is_floating_point() or t.is_complex() else False for t in filled.outputs)


def verdict(op, function, case, reports):
    """carried, partly, torch (nothing is carried), refused (by eager), traced otherwise (by torch itself), undefined, or a Wrong."""
    name, layout, args, kwargs = case
    known = answers_of_torch(function, args, kwargs, layout)
    if known is None:
        return "refused"
    call = lambda *a, **k: function(*a, **k)
    wrong = judge(compiled(call, reports, fullgraph=op.name in NAMES), args, kwargs, layout, *known)
    if wrong is not None:
        for backend in ("aot_eager", "aot_eager_decomp_partition"):
            torch._dynamo.reset()
            theirs = judge(torch.compile(call, backend=backend, fullgraph=op.name in NAMES), args, kwargs, layout, *known)
            if theirs is not None and theirs.kind == wrong.kind:
                return "traced otherwise"
        return "undefined" if wrong.kind == "values" and is_undefined(function, args, kwargs, layout) else wrong
    nodes = [node for report in reports for node in report.nodes]
    carried = [node for node in nodes if node.carried]
    return "torch" if not carried else "carried" if len(carried) == len(nodes) else "partly"


@pytest.mark.parametrize("op", OPS, ids=[op.formatted_name for op in OPS])
def test_samples(op):
    failed, ran = [], 0
    for case in cases_of(op):
        reports = []
        found = verdict(op, op.op, case, reports)
        key = (op.formatted_name, case[0], case[1])
        counts[key][found if isinstance(found, str) else "wrong"] += 1
        if isinstance(found, Wrong):
            failed.append(f"{case[0]} {found}")
            continue
        ran += found != "refused"
        if found in ("carried", "partly", "torch") and op.name in NAMES:
            assert reports, "the backend was not called"
            counted = op.name not in PARTLY and not case[3].get("return_indices") and op.variant_test_name in COUNTED_MODES.get(op.name, [op.variant_test_name])
            (tally if counted and case[0] in COUNTED_TYPES and case[1] == "plain" else others).add(op.formatted_name, reports)
    assert not failed, "\n".join(failed)
    if not ran:
        pytest.skip("torch has no sample of these types and layouts")


def test_samples_are_carried():
    total = collections.Counter()
    for entry in counts.values():
        total.update(entry)
    print(f"{dict(total)}\n{tally}\nothers: {others}")
    if tally.samples < 100:
        pytest.skip("too few samples of the counted types: no share is asked for")
    assert tally.carried >= (0.99 if COUNT == "all" else 0.93) * tally.samples, str(tally)
