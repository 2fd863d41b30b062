"""What a fresh process shows: imports in either order, one OpenMP, the README's example."""
import os
import re
import subprocess
import sys

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))

LIBRARIES = """
import re
maps = open("/proc/self/maps").read()
print("LIBGOMP", len(set(re.findall(r"\\S*libgomp\\S*", maps))))
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


def test_importing_lamina_imports_little():
    expensive = {"ctypes", "html", "logging", "numpy", "subprocess", "tempfile", "torch", "webbrowser"}
    result = run(f"import sys, lamina\nprint(sorted({expensive} & set(sys.modules)))")
    assert result.stdout == "[]\n", result.stdout + result.stderr
    result = run("import lamina\nprint(lamina.load, lamina.export, lamina.Explanation)\nfrom lamina import *\nprint(load)\nlamina.nothing")
    assert result.stdout.count("\n") == 2 and "module 'lamina' has no attribute 'nothing'" in result.stderr, result.stderr


@pytest.mark.parametrize("first, second", [("torch", "lamina"), ("lamina", "torch")])
def test_both_import_orders_share_one_openmp(first, second):
    pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")
    result = run(f"import {first}, {second}\nimport torch, lamina\n"
                 "x = torch.randn(4, 8)\ny = lamina.layer_norm(x)\nassert (y - torch.nn.functional.layer_norm(x, (8,))).abs().max() < 1e-5\n"
                 + LIBRARIES)
    assert result.returncode == 0, result.stderr
    if "libgomp.so.1" not in os.listdir(os.path.join(os.path.dirname(__import__("torch").__file__), "lib")):
        pytest.skip("this torch has its OpenMP under another name, so that a process has two")
    assert "LIBGOMP 1" in result.stdout


THREADS = """
import os
def threads():
    return len(os.listdir("/proc/self/task"))
x = torch.randn(4096, 512)
"""


def threads_of(code):
    """The numbers that a fresh process prints."""
    pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor: nothing runs in parallel")
    if "libgomp.so.1" not in os.listdir(os.path.join(os.path.dirname(__import__("torch").__file__), "lib")):
        pytest.skip("this torch has its OpenMP under another name, so that a process has two")
    result = run(code)
    assert result.returncode == 0, result.stderr
    return [int(word) for word in result.stdout.split()]


@pytest.mark.parametrize("first, second", [("torch", "lamina"), ("lamina", "torch")])
def test_both_import_orders_share_one_pool_of_threads(first, second):
    alone, with_torchs, with_laminas = threads_of(
        f"import {first}, {second}\n{THREADS}torch.set_num_threads(2)\nprint(threads())\nx.sin()\nprint(threads())\n"
        "lamina.layer_norm(x)\nprint(threads())")
    assert with_torchs == alone + 1 and with_laminas == with_torchs


@pytest.mark.parametrize("threads", [1, 2])
def test_torchs_number_of_threads_is_laminas(threads):
    before, after = threads_of(f"import torch, lamina\n{THREADS}torch.set_num_threads({threads})\nprint(threads())\nlamina.layer_norm(x)\n"
                               "print(threads())")
    assert after - before == threads - 1


def test_lamina_needs_neither_numpy_nor_torch():
    result = run("import sys\nimport lamina\nassert 'numpy' not in sys.modules and 'torch' not in sys.modules\n"
                 "import array\ng = lamina.Graph()\nrun = g.compile([g.op('ReLU', [g.input((2,))])])\n"
                 "out = array.array('f', [0, 0])\nrun(array.array('f', [-1, 2]), out=out)\nassert list(out) == [0, 2]")
    assert result.returncode == 0, result.stderr


def test_the_readmes_example_runs_as_it_stands():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        example, = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    result = run(example)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "(128, 768) (5, 768)"


def test_the_stub_is_that_of_the_module(tmp_path):
    pytest.importorskip("nanobind", reason="nanobind is not installed")
    made = tmp_path / "_core.pyi"
    result = subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "lamina._core", "-o", str(made)], capture_output=True,
                            text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    with open(os.path.join(ROOT, "python", "lamina", "_core.pyi"), encoding="utf-8") as file:
        assert made.read_text() == file.read(), "renew it: python -m nanobind.stubgen -m lamina._core -o python/lamina/_core.pyi"
