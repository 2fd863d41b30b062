"""Runs the Python programs of examples/."""
import importlib.util
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


@pytest.mark.parametrize("program", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_runs(program):
    if "import torch" in program.read_text(encoding="utf-8") and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: scripts/setup --torch")
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_there_are_examples():
    assert {path.stem for path in EXAMPLES.glob("*.py")} >= {"norms", "train"}
