#!/usr/bin/env python3
"""What breaks programs that are compiled already is found by scripts/abi.py: tried on copies of the headers, each with one fault."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# What is done, in which header, what is replaced, and what the check must say of it.
BREAKS = [
    ("nothing", "lamina.h", "", "", ""),
    ("a function is gone", "lamina.h", "LAMINA_API lamina_status_t lamina_stream_wait(lamina_stream_t stream);", "",
     "lamina_stream_wait"),
    ("an argument changes its type", "lamina.h", "lamina_set_verbose(int level)", "lamina_set_verbose(long level)",
     "lamina_set_verbose"),
    ("an enumerator has another value", "lamina.h", "lamina_runtime_error = 5", "lamina_runtime_error = 15",
     "lamina_runtime_error"),
    ("an op has another number", "op_kinds.def", "LAMINA_OP(Abs, ", "LAMINA_OP(Abs, 700 + ", "lamina_graph_op_Abs"),
    ("a member is put in between", "layer_norm.h", "  uint32_t flags;", "  uint32_t more;\n  uint32_t flags;", "more"),
    ("a fixed struct grows", "lamina.h", "  size_t output_id;", "  size_t output_id;\n  size_t more;", "more"),
    ("a struct does not begin with its size", "text.h", "typedef void (*lamina_text_f)",
     "typedef struct {\n  int first;\n} lamina_new_t;\ntypedef void (*lamina_text_f)", "lamina_new_t begins with 'int first'"),
]


def check_with(header, old, new, folder):
    """Runs the check on a copy of what it reads."""
    for part in ("include", "scripts/abi.py", "tests/abi"):
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / part).is_dir() else shutil.copy)(ROOT / part, target)
    file = folder / "include/graph" / header
    text = file.read_text()
    assert old in text, f"{header} has no {old!r} any more"
    file.write_text(text.replace(old, new, 1) if old else text)
    return subprocess.run([sys.executable, str(folder / "scripts/abi.py"), "check"], capture_output=True, text=True)


def main():
    wrong = 0
    for what, header, old, new, said in BREAKS:
        with tempfile.TemporaryDirectory() as folder:
            done = check_with(header, old, new, pathlib.Path(folder))
        if done.returncode == 77:
            print(done.stdout.strip())
            return 77
        is_found = done.returncode == (1 if said else 0) and said in done.stdout
        wrong += not is_found
        print(f"{'ok' if is_found else 'WRONG'}: {what}{'' if is_found else ': ' + done.stdout}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
