"""The benchmarks that compare lamina.torch with PyTorch run: each with its --smoke option."""
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"


def test_decode_makes_the_tokens_of_eager():
    done = subprocess.run([sys.executable, BENCHMARKS / "decode.py", "--smoke"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (apart,) = re.findall(r"lamina .* apart (\S+)$", done.stdout, re.MULTILINE)
    assert float(apart) < 0.02
