"""Profiles: what they count, and their forms."""

import json

import numpy
import pytest

import lamina


def layer_norm():
    graph = lamina.Graph()
    x, gamma, beta = graph.input((12, 64)), graph.input((64,)), graph.input((64,))
    run = graph.compile([graph.op("LayerNorm", [x, gamma, beta], keep_stats=False)])
    arrays = [numpy.random.rand(*shape).astype("f") for shape in ((12, 64), (64,), (64,))]
    run(*arrays)
    return lambda: run(*arrays)


def test_a_profile_has_the_steps_of_what_runs_in_the_block():
    run = layer_norm()
    with lamina.profile("norm") as profile:
        for _ in range(5):
            run()
    run()
    data = profile.data
    (partition,) = data["partitions"]
    (step,) = partition["steps"]
    assert data["title"] == "norm" and partition["executions"] == 5
    assert step["bytes"] == 4 * (2 * 12 * 64 + 2 * 64) and step["kind"] == "kernel"
    assert 0 < step["us"] <= partition["us"] <= data["us"] * (1 + 1e-9)
    assert str(profile).startswith("norm: ") and all(len(line) <= 80 for line in str(profile).splitlines())


def test_a_trace_has_an_event_per_step(tmp_path):
    run = layer_norm()
    with lamina.profile() as profile:
        run()
        run()
    profile.write_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len([event for event in events if event["ph"] == "X"]) == 2


def test_one_profile_at_a_time_measures_a_thread():
    with lamina.profile():
        with pytest.raises(lamina.Error, match="already being profiled"):
            with lamina.profile():
                pass
    with lamina.profile() as profile:
        pass
    assert profile.data["partitions"] == []
