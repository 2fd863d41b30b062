"""Packed weights of torch.compile(model, backend="lamina"): they follow each way of changing a weight."""
import copy
import gc
import multiprocessing
import threading

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")
import torch.nn as nn  # noqa: E402

import lamina  # noqa: E402
import lamina.torch as lt  # noqa: E402
from lamina import _core  # noqa: E402

WIDTH = 192
SIZE = WIDTH * WIDTH * 4  # bytes of a layer's weights


class Model(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    gc.collect()
    torch.manual_seed(0)
    assert lt.packed_bytes() == 0
    yield
    torch._dynamo.reset()
    gc.collect()
    assert lt.packed_bytes() == 0


def compiled(model, **options):
    """Matrices of products are packed as the weights of convolutions are by default."""
    return torch.compile(model, backend="lamina", options={"warn": False, "pack": 1 << 40, **options})


def unpacked(model, x):
    """The result without packed weights, of another compilation."""
    def same(x):
        return model(x)

    with torch.no_grad():
        return torch.compile(same, backend="lamina", options={"warn": False, "pack": 0})(x)


def batch(rows=160):
    return torch.randn(rows, WIDTH)


def new_values():
    return torch.randn(WIDTH, WIDTH) / 8


def add_in_place(model):
    model.layers[0].weight.add_(0.5)


def add_in_inference_mode(model):
    with torch.inference_mode():
        model.layers[0].weight.add_(0.5)


def write_a_view(model):
    model.layers[0].weight[3, 4:6] = 7.0


def write_one_element_of_data(model):
    model.layers[0].weight.data[100, 100] += 1


def add_to_data(model):
    model.layers[0].weight.data.add_(0.5)


def negate_data(model):
    model.layers[0].weight.data.neg_()


def copy_to_data(model):
    model.layers[0].weight.data.copy_(new_values())


def swap_rows_of_data(model):
    data = model.layers[0].weight.data
    data[[0, 1]] = data[[1, 0]]


def assign_data(model):
    model.layers[0].weight.data = new_values()


def set_storage(model):
    model.layers[0].weight.set_(new_values())


def through_numpy(model):
    model.layers[0].weight.detach().numpy()[5] = 1.0


def without_counting(model):
    with torch.autograd._unsafe_preserve_version_counter(model.layers[0].weight):
        model.layers[0].weight.add_(0.5)


def replace_parameter(model):
    model.layers[0].weight = nn.Parameter(new_values())


def replace_at_the_same_address(model):
    """A new tensor whose memory the allocator often takes from the old one."""
    layer = model.layers[0]
    shape = layer.weight.shape
    del layer.weight
    layer.weight = nn.Parameter(torch.full(shape, 0.25))


def swap_parameters(model):
    first, second = model.layers[0].weight, model.layers[1].weight
    model.layers[0].weight, model.layers[1].weight = second, first


def swap_tensors(model):
    torch.utils.swap_tensors(model.layers[0].weight, nn.Parameter(new_values()))


def load_state(model):
    model.load_state_dict({name: value + 0.5 for name, value in model.state_dict().items()})


def load_state_by_assignment(model):
    model.load_state_dict({name: value + 0.5 for name, value in model.state_dict().items()}, assign=True)


def step(make):
    def change(model):
        optimizer = make(model.parameters())
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()

    return change


CHANGES = {f.__name__: f for f in (add_in_place, add_in_inference_mode, write_a_view, write_one_element_of_data, add_to_data, negate_data,
                                   copy_to_data, swap_rows_of_data, assign_data, set_storage, through_numpy, without_counting,
                                   replace_parameter, replace_at_the_same_address, swap_parameters, swap_tensors, load_state,
                                   load_state_by_assignment)}
CHANGES["sgd"] = step(lambda p: torch.optim.SGD(p, lr=0.1))
CHANGES["adamw"] = step(lambda p: torch.optim.AdamW(p, lr=0.1))
CHANGES["fused_adamw"] = step(lambda p: torch.optim.AdamW(p, lr=0.1, fused=True))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name):
    model, x = Model(), batch()
    run = compiled(model)
    with torch.no_grad():
        for _ in range(3):
            before = run(x)
        assert lt.packed_bytes() >= 2 * SIZE
        assert torch.equal(before, unpacked(model, x))
        CHANGES[name](model)
        for _ in range(6):  # changed, not packed, packed again
            after = run(x)
            assert torch.equal(after, unpacked(model, x))
        assert not torch.equal(before, after)
        assert lt.packed_bytes() >= 2 * SIZE


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 33, 128, 129, 300])
def test_packing_keeps_the_bits(dtype, rows):
    model, x = Model().to(dtype), batch(rows).to(dtype)
    with torch.no_grad():
        for run in (compiled(model), compiled(model, freeze=True)):
            for _ in range(3):
                assert torch.equal(run(x), unpacked(model, x))
        assert lt.packed_bytes() > 0


def test_convolutions_and_autocast_pack_too():
    model = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3)).eval()
    run, x = compiled(model), torch.randn(2, 64, 20, 20)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        results = [run(x) for _ in range(3)]
        # Without instructions for bf16, weights are rounded and cast to f32 before, which is not packed.
        assert lt.packed_bytes() > 0 or not torch.cpu._is_avx512_bf16_supported()
        assert all(torch.equal(result, results[0]) for result in results)
        model[0].weight.data.mul_(2)
        assert torch.equal(run(x), unpacked(model, x))


def test_by_default_products_read_matrices_as_they_are():
    model, x = Model(), batch()
    run = torch.compile(model, backend="lamina", options={"warn": False})
    with torch.no_grad():
        for _ in range(4):
            assert torch.equal(run(x), unpacked(model, x))
        assert lt.packed_bytes() == 0
        weights = lt.explain(model, x).graphs[0].weights()
        assert weights and all("as it is" in weight.reason for weight in weights if weight.name.endswith("weight")), weights
        model.layers[0].weight.data.mul_(2)
        assert torch.equal(run(x), unpacked(model, x))


def test_by_default_convolutions_are_packed():
    model, x = nn.Conv2d(64, 64, 3), torch.randn(2, 64, 20, 20)
    run = torch.compile(model, backend="lamina", options={"warn": False})
    with torch.no_grad():
        for _ in range(4):
            assert torch.equal(run(x), unpacked(model, x))
    assert lt.packed_bytes() > 0


def test_memory_is_freed_with_the_model():
    model = Model()
    run = compiled(model)
    with torch.no_grad():
        for _ in range(3):
            run(batch())
    assert lt.packed_bytes() >= 2 * SIZE
    del model, run
    gc.collect()
    assert lt.packed_bytes() == 0


def test_the_limit_is_kept():
    model, x = Model(4), batch()
    run = compiled(model, pack=2 * SIZE + SIZE // 2)
    with torch.no_grad():
        for _ in range(4):
            result = run(x)
            assert lt.packed_bytes() <= 2 * SIZE + SIZE // 2
        assert lt.packed_bytes() > 0
        assert torch.equal(result, unpacked(model, x))


def test_nothing_is_packed_without_memory_for_it():
    model = Model()
    run = compiled(model, pack=0)
    with torch.no_grad():
        for _ in range(3):
            run(batch())
    assert lt.packed_bytes() == 0


@pytest.mark.parametrize("options", [{"pack": -1}, {"pack": "1 GB"}, {"pack": 0.5}])
def test_limits_that_are_none_are_refused(options):
    with pytest.raises(Exception, match="option pack is .*, allowed is a number of bytes"):
        compiled(Model(), **options)(batch())


def test_two_models_that_share_weights():
    first, second = Model(), Model()
    second.layers[0].weight = first.layers[0].weight
    runs, x = (compiled(first), compiled(second)), batch()
    with torch.no_grad():
        for _ in range(4):
            for model, run in zip((first, second), runs):
                assert torch.equal(run(x), unpacked(model, x))
        first.layers[0].weight.data.mul_(0.5)
        for model, run in zip((first, second), runs):
            assert torch.equal(run(x), unpacked(model, x))


def test_layers_that_share_a_graph_keep_their_own_copies():
    layers, x = [nn.Linear(WIDTH, WIDTH) for _ in range(3)], batch()
    for layer in layers:
        layer.compile(backend="lamina", options={"warn": False, "pack": 1 << 40})
    with torch.no_grad():
        for _ in range(3):
            for layer in layers:
                assert torch.equal(layer(x), unpacked(layer, x))
        assert lt.packed_bytes() >= 3 * SIZE


def test_parameters_as_arguments():
    from torch.func import functional_call

    model, x = Model(), batch()
    run = torch.compile(lambda p, x: functional_call(model, p, (x,)), backend="lamina", options={"warn": False, "pack": 1 << 40})
    with torch.no_grad():
        for scale in (1.0, 1.0, 1.0, 0.5, 0.5):
            given = {name: p * scale for name, p in model.named_parameters()}
            other = copy.deepcopy(model)
            other.load_state_dict(given)
            assert torch.equal(run(given, x), unpacked(other, x))


def test_training_does_not_pack():
    model, x = Model(), batch()
    run, optimizer = compiled(model), torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(5):
        optimizer.zero_grad()
        run(x).square().sum().backward()
        optimizer.step()
        assert lt.packed_bytes() == 0


def test_training_whose_writes_are_not_counted_waits_longer_each_time():
    model, x, packed = Model(), batch(), []
    run, optimizer = compiled(model), torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for _ in range(40):
        optimizer.zero_grad()
        loss = run(x)
        with torch.no_grad():
            assert torch.equal(loss, unpacked(model, x))
        loss.square().sum().backward()
        packed.append(lt.packed_bytes() > 0)
        optimizer.step()
    assert sum(packed) <= 8


@pytest.mark.parametrize("options", [{}, {"freeze": True}])
def test_tensors_of_inference_mode(options):
    with torch.inference_mode():
        model, x = Model(), batch()
        run = compiled(model, **options)
        for _ in range(3):
            run(x)
        assert lt.packed_bytes() > 0
        model.layers[0].weight.add_(0.5)
        packed = run(x)
    with torch.inference_mode():
        assert torch.equal(packed, torch.compile(lambda x: model(x), backend="lamina", options={"warn": False, "pack": 0})(x))


def test_frozen_weights_are_packed_at_once_and_for_few_rows():
    model, x = Model(), batch(1)
    run = compiled(model, freeze=True)
    with torch.no_grad():
        first = run(x)
        assert lt.packed_bytes() >= 2 * SIZE
        assert torch.equal(first, run(x))
        model.layers[0].weight.add_(1)  # torch counts this
        assert not torch.equal(first, run(x))


def test_threads():
    model = Model()
    run, inputs = compiled(model), [batch() for _ in range(4)]
    with torch.no_grad():
        expected, failed = [unpacked(model, x) for x in inputs], []
        run(inputs[0])

    def work(i):
        with torch.no_grad():
            for _ in range(20):
                if not torch.equal(run(inputs[i]), expected[i]):
                    failed.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert lt.packed_bytes() >= 2 * SIZE


def _in_child(run, model, x, answers):
    with torch.no_grad():
        same = run(x)
        model.layers[0].weight.data[:4].mul_(2)  # few elements: torch's threads do not survive a fork
        answers.send((same.numpy(), run(x).numpy()))


def test_forked_processes():
    model, x = Model(), batch()
    run = compiled(model)
    with torch.no_grad():
        for _ in range(3):
            before = run(x)
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        child = context.Process(target=_in_child, args=(run, model, x, theirs))
        child.start()
        assert ours.poll(60)
        same, changed = ours.recv()
        child.join(60)
        assert torch.equal(torch.from_numpy(same), before) and torch.equal(run(x), before)
        model.layers[0].weight.data[:4].mul_(2)
        assert torch.equal(torch.from_numpy(changed), unpacked(model, x))


def test_explain_tells_what_is_packed():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.small, self.filter = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 8), nn.Conv2d(64, 64, 3)

        def forward(self, x, extra, image):
            return self.small(torch.relu(self.body(x))), x @ extra, self.filter(image)

    def explained(side):
        with torch.no_grad():
            return lt.explain(Mixed(), batch(), torch.randn(WIDTH, WIDTH), torch.randn(2, 64, side, side))

    report, few = explained(20), explained(5)
    told = {weight.reason for weight in report.graphs[0].weights()}
    assert told == {"", "it is small", "it is not a parameter or buffer", "products read it as it is (options freeze and pack: it is packed)"}
    assert [w.size for w in report.graphs[0].weights() if w.packed] == [64 * 64 * 9 * 4]
    assert "1 of 4 weights of inference_" in str(report)
    assert "a call reads each element 18 times" in str(few)


def test_fingerprints():
    values = torch.randint(0, 100, (1000, 321), dtype=torch.int64)
    before = _core.fingerprints([values, values[:7]], 2)
    assert before == _core.fingerprints([values, values[:7]], 1) and before[0] != before[1]
    for place in [(0, 0), (999, 320), (500, 7)]:
        values[place] += 1
        after = _core.fingerprints([values, values[:7]], 2)
        assert after[0] != before[0] and (after[1] != before[1]) == (place[0] < 7)
        values[place] -= 1
    odd = torch.arange(13, dtype=torch.uint8)
    assert _core.fingerprints([odd]) != _core.fingerprints([odd.flip(0).contiguous()])
    negated = values.double()
    whole = _core.fingerprints([negated])
    assert whole != _core.fingerprints([-negated])
    assert _core.fingerprints([torch.empty(0, 3)]) == [0]
    with pytest.raises(lamina.Error, match="shares no memory|allowed is an object"):
        _core.fingerprints(["text"])
