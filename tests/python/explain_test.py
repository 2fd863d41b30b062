"""What lamina tells: explanations as data and pages, progress, logs; and that every public name says what it is."""
import html.parser
import inspect
import json
import logging
import pathlib
import subprocess
import sys
import webbrowser

import numpy as np
import pytest

import lamina
from lamina import _core


def norm_and_softmax(rows, columns=16):
    g = lamina.Graph()
    x = g.input((rows, columns))
    y = g.op("LayerNorm", [x], use_affine=False, keep_stats=False, name="norm <1>")
    return g, [g.op("SoftMax", [y], axis=0, outputs=(True, False), name="probs")[0]]


class Balanced(html.parser.HTMLParser):
    """Knows which elements are open, and what stands in the page's texts."""

    def __init__(self, page):
        super().__init__()
        self.open, self.texts, self.frames = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.frames += [value for name, value in attributes if name == "srcdoc"]

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


# ---- explanations

def test_a_graph_is_explained_as_list_data_and_page():
    g, _ = norm_and_softmax(4)
    told = lamina.explain(g, title="two & more")
    assert [op["kind"] for partition in told for op in partition["ops"]] == ["LayerNorm", "SoftMax"]
    data = told.data()
    assert [op["name"] for op in data["ops"]] == ["norm <1>", "probs"]
    assert all(partition["kernels"] for partition in data["partitions"])
    page = Balanced(told.text())
    assert "two & more" in page.texts and "norm <1>" in page.texts
    assert "digraph lamina" in told.text("dot")
    assert not any(partition["kernels"] for partition in told.data(compile=False)["partitions"])


def test_a_compiled_graph_tells_the_kernels_of_its_shapes():
    g, outputs = norm_and_softmax(None)
    run = g.compile(outputs)
    assert all("cannot be compiled" in p["problem"] for p in run.explain().data()["partitions"])
    run(np.ones((5, 16), np.float32))
    partitions = lamina.explain(run).data()["partitions"]
    assert all(p["kernels"] and p["required_bytes"] == 2 * 5 * 16 * 4 for p in partitions)


def test_an_explanation_is_saved_opened_and_shown_in_notebooks(tmp_path, monkeypatch):
    told = lamina.explain(norm_and_softmax(4)[0])
    assert told.save(tmp_path / "g.dot").read_text().startswith("digraph")
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    file = told.show()
    try:
        assert opened == [file.as_uri()] and file.read_text(encoding="utf-8") == told.text()
    finally:
        file.unlink()
    frame, = Balanced(told._repr_html_()).frames
    assert frame == told.text()


def test_a_profile_adds_the_times_of_steps(tmp_path):
    g, outputs = norm_and_softmax(8)
    run = g.compile(outputs)
    x = np.ones((8, 16), np.float32)
    with lamina.profile() as profile:
        run(x)
    told = lamina.explain(run).data(report=profile)["partitions"]
    assert len(told) == len(profile.data["partitions"])
    for partition, measured in zip(told, profile.data["partitions"]):
        assert [step["times"]["us"] for step in partition["steps"]] == [step["us"] for step in measured["steps"]]
        assert partition["times"]["profiled"]["us"] == measured["us"]
        assert {kernel["step"] for kernel in partition["kernels"]} == set(range(len(partition["steps"])))
    (tmp_path / "p.json").write_text(json.dumps(profile.data))
    assert "timed" in lamina.explain(run).text(report=tmp_path / "p.json")


def test_what_cannot_be_explained_is_refused(tmp_path):
    g, _ = norm_and_softmax(4)
    with pytest.raises(lamina.Error, match="a dict is given, allowed is a Graph"):
        lamina.explain({})
    with pytest.raises(lamina.Error, match='format is "pdf", allowed is one of dot, html, json'):
        lamina.explain(g).text("pdf")
    other = norm_and_softmax(4)[0].partitions()
    with pytest.raises(lamina.Error, match="belong to different graphs"):
        lamina.explain(g.partitions() + other).text()
    (tmp_path / "r.json").write_text('{"files": [{"file": "g", "partitions": []}]}')
    with pytest.raises(lamina.Error, match="report of 0 partitions, the graph has 2"):
        lamina.explain(g).text(report=tmp_path / "r.json")


# ---- progress and logs

def test_progress_counts_partitions():
    g, outputs = norm_and_softmax(37)
    told = []
    g.compile(outputs, progress=lambda *step: told.append(step))(np.ones((37, 16), np.float32))
    done = [step[0] for step in told]
    assert done == sorted(done) and done[0] == 0 and done[-1] == 2
    assert {step[1] for step in told} == {2}
    assert any("LayerNorm" in step[2] for step in told) and any("SoftMax" in step[2] for step in told)


def test_progress_stops_a_compilation_and_its_errors_come_out():
    x = np.ones((38, 16), np.float32)
    g, outputs = norm_and_softmax(38)
    with pytest.raises(lamina.Error, match="stopped by the caller") as stopped:
        g.compile(outputs, progress=lambda *_: True)(x)
    assert stopped.value.status == "runtime_error"

    def fail(*_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        norm_and_softmax(39)[0].compile(progress=fail)(np.ones((39, 16), np.float32))
    assert g.compile(outputs)(x).shape == (38, 16)


class Records(logging.Handler):
    def __init__(self):
        super().__init__(logging.DEBUG)
        self.records = []

    def emit(self, record):
        self.records.append(record)


@pytest.fixture
def records():
    logger, handler = logging.getLogger("lamina"), Records()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler.records
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_compilations_are_logged(records):
    g, outputs = norm_and_softmax(41)
    g.compile(outputs)(np.ones((41, 16), np.float32))
    info = [r.getMessage() for r in records if r.levelno == logging.INFO]
    assert len(info) == 1 and info[0].startswith("compiled 2 partitions in ")
    debug = [r.getMessage() for r in records if r.levelno == logging.DEBUG]
    assert len(debug) == 2 and "lamina_layer_norm" in debug[0]


def test_verbose_lines_are_logged_when_asked_for(records):
    g, outputs = norm_and_softmax(42)
    run = g.compile(outputs)
    lamina.set_verbose(1)
    try:
        run(np.ones((42, 16), np.float32))
    finally:
        lamina.set_verbose(-1)
    run(np.ones((42, 16), np.float32))
    lines = [r for r in records if r.name == "lamina.verbose"]
    assert [r.getMessage().split(",")[0] for r in lines] == ["compile", "compile", "exec", "exec"]
    assert [r.levelno for r in lines] == [logging.INFO] * 2 + [logging.DEBUG] * 2
    with pytest.raises(lamina.Error, match="level is 5, allowed is -1 to 2"):
        lamina.set_verbose(5)


# ---- docstrings

def public_names():
    for name in lamina.__all__:
        yield f"lamina.{name}", getattr(lamina, name)
    for name, value in vars(_core).items():
        if not name.startswith("_"):
            yield f"_core.{name}", value
    for module, names in (("lamina", lamina.__all__), ("_core", vars(_core))):
        for name in names:
            kind = getattr(lamina if module == "lamina" else _core, name)
            if not inspect.isclass(kind):
                continue
            for member, value in vars(kind).items():
                if not member.startswith("_"):
                    yield f"{module}.{name}.{member}", value


def words_of(value):
    """The docstring without the signature, which nanobind puts in its first lines."""
    text = getattr(value, "__doc__", None) or ""
    return [line for line in text.splitlines() if line.strip() and "->" not in line]


@pytest.mark.parametrize("name, value", [pytest.param(n, v, id=n) for n, v in public_names()])
def test_every_public_name_says_what_it_is(name, value):
    assert words_of(value), f"{name} has no docstring"


def test_the_stub_is_the_module():
    pytest.importorskip("nanobind", reason="nanobind is not installed")
    made = subprocess.run([sys.executable, "-c", "from nanobind.stubgen import StubGen\nimport lamina._core as m\n"
                           "s = StubGen(m, include_docstrings=True)\ns.put(m)\nprint(s.get(), end='')"], capture_output=True, text=True, check=True)
    assert made.stdout == pathlib.Path(lamina.__file__).with_name("_core.pyi").read_text()
