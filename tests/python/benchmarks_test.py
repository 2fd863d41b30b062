"""The programs in benchmarks that need only Python run on small models."""

import pathlib
import re
import subprocess
import sys

import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent.parent / "benchmarks"


def test_the_comparison_of_onnx_models_prints_a_row_per_number_of_threads():
    pytest.importorskip("onnx")
    done = subprocess.run([sys.executable, BENCHMARKS / "onnx_models.py", "--smoke", "--threads", "1,2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("small")]
    assert [row[1] for row in rows] == ["1", "2"]
    for row in rows:
        assert float(row[2]) > 0
        assert re.fullmatch(r"[0-9.e+-]+", row[-1]) and float(row[-1]) < 1e-5


def test_an_export_that_does_not_exist_is_named():
    done = subprocess.run([sys.executable, BENCHMARKS / "check_exports.py", "bert", "no_such_model"], capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.startswith("no model no_such_model; allowed are ")


def test_a_model_that_does_not_exist_is_named():
    pytest.importorskip("onnx")
    done = subprocess.run([sys.executable, BENCHMARKS / "onnx_models.py", "no_such_model"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "no_such_model: no file" in done.stderr
