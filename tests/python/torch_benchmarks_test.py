"""The benchmarks that compare lamina.torch with PyTorch run: each with its --smoke option."""
import json
import pathlib
import re
import subprocess
import sys
import types

import pytest

pytest.importorskip("torch")

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"


def test_decode_makes_the_tokens_of_eager():
    done = subprocess.run([sys.executable, BENCHMARKS / "decode.py", "--smoke"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (apart,) = re.findall(r"lamina .* apart (\S+)$", done.stdout, re.MULTILINE)
    assert float(apart) < 0.02


def test_coverage_goes_on_where_it_stopped(tmp_path):
    command = [sys.executable, BENCHMARKS / "torch_coverage.py", "highway", "--results", tmp_path / "rows"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^highway +train +100.00% +100.00%", done.stdout, re.MULTILINE), done.stdout
    again = subprocess.run(command, capture_output=True, text=True)
    assert not re.search("^highway", again.stdout, re.MULTILINE) and "all: 1 models, 100.00%" in again.stdout, again.stdout


def test_exported_models_have_the_results_of_torch():
    done = subprocess.run([sys.executable, BENCHMARKS / "exported_models.py", "--smoke"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^lamina.* (\S+)$", done.stdout, re.MULTILINE)
    assert len(rows) == 6 and all(float(apart) < 1e-5 for apart in rows), done.stdout


def test_models_are_compared_with_the_bound_of_the_machine(tmp_path):
    """The block has three products of 32 rows, 64 and 170 channels; its parameters and its input are read, its result is written."""
    command = [sys.executable, BENCHMARKS / "torch_models.py"]
    done = subprocess.run([*command, "rmsnorm_block", "--small", "--modes", "infer_f32", "--seconds", "0.01", "--rounds", "1", "--json", tmp_path / "rows"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads((tmp_path / "rows").read_text())
    assert row["bound"]["gflop"] == pytest.approx(3 * 2 * 32 * 64 * 170 / 1e9)
    assert row["bound"]["mb"] == pytest.approx(4 * (3 * 64 * 170 + 2 * 170 + 64 + 64 + 2 * 32 * 64) / 1e6)
    assert row["error"] < 1e-6 and {"eager", "lamina", "eager_onednn"} == set(row["ms"])
    done = subprocess.run([*command, "--table", tmp_path / "rows"], capture_output=True, text=True)
    assert re.match(r"\| mode \| over eager \| least, over eager \|\n.*\n\| inference f32 \| \S+x \| \S+x \(rmsnorm_block\) \|\n", done.stdout), done.stdout
    assert "\n| inference f32 | lamina, ms | over eager | with oneDNN's products | GFLOP/s |" in done.stdout, done.stdout
    assert re.search(r"^\| rmsnorm_block \| \S+ \| \S+x \| \S+x \| \d+ \| \d+ \| \S+ \| \d+% \|$", done.stdout, re.MULTILINE), done.stdout


def test_products_of_gradients_of_grouped_convolutions_are_those_of_the_groups(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import torch_bounds

    x = torch.ones(2, 8, 5, 6, requires_grad=True)
    module = torch.nn.Conv2d(8, 8, 3, padding=1, groups=4)
    case = types.SimpleNamespace(module=module, run=lambda m: m(x).sum().backward())
    assert torch_bounds.flops_of(case) == 3 * 2 * (2 * 8 * 5 * 6) * (2 * 9)
