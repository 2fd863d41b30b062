#!/usr/bin/env python3
"""Compares the C ABI with the description in tests/abi, on which compiled programs rely.

    abi.py check [LIBRARY]   exit status 0: equal; 1: different, with a report; 77: a tool is missing, with its name.
                             LIBRARY: a liblamina.so, which must export exactly what the headers declare
    abi.py store             rewrites the description (docs/stability.md says when)

The description is libabigail's output for a library in which each function of the public headers has an empty body. It
contains functions, types, sizes, offsets and enumerators, and is equal for every build.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ["lamina", "layer_norm", "text", "export", "cuda", "opencl"]
STORED = ROOT / "tests/abi/lamina.abi"
SKIPPED = 77

# Structs that never change (docs/stability.md). All others start with their size.
FIXED_STRUCTS = {"lamina_version_t", "lamina_graph_logical_tensor_t", "lamina_graph_inplace_pair_t"}


def text_of(header):
    """Returns a public header without comments."""
    return re.sub(r"/\*.*?\*/", "", (ROOT / f"include/graph/{header}.h").read_text(), flags=re.DOTALL)


def declarations():
    """Yields (name, declaration without LAMINA_API and semicolon) for all functions."""
    for header in HEADERS:
        for found in re.finditer(r"^LAMINA_API\s+([^;{]*\b(lamina_\w+)\s*\([^;{]*\))\s*;", text_of(header), re.MULTILINE):
            yield found[2], " ".join(found[1].split())


def structs():
    """Yields (name, first member) for all structs. The last line of each must start with its closing brace."""
    for header in HEADERS:
        for found in re.finditer(r"typedef struct\s*\{\s*([^;]*);.*?^\}\s*(\w+);", text_of(header), re.DOTALL | re.MULTILINE):
            yield found[2], " ".join(found[1].split())


def faults_of_structs():
    """Finds structs that could not grow without breaking programs compiled with the old size."""
    for name, first in structs():
        if name not in FIXED_STRUCTS and not re.fullmatch(r"size_t (struct_)?size", first):
            yield f"{name} begins with '{first}': a struct begins with its size, or is named in FIXED_STRUCTS of scripts/abi.py"


def run(*command, folder=None):
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def described(folder):
    """Writes the description of the current headers; returns its path."""
    source, library, description = (folder / name for name in ("stub.c", "liblamina.so", "now.abi"))
    includes = "".join(f"#include <graph/{header}.h>\n" for header in HEADERS)
    bodies = "".join(f"{declaration} {{ __builtin_trap(); }}\n" for _, declaration in declarations())
    source.write_text(includes + bodies)
    compiler = os.environ.get("CC", "cc")
    for command in (
        (compiler, "-std=c99", "-g", "-O0", "-w", "-fno-eliminate-unused-debug-types", "-shared", "-fPIC", f"-I{ROOT}/include",
         "-Wl,-soname,liblamina.so", source.name, "-o", str(library)),
        ("abidw", "--no-show-locs", "--no-comp-dir-path", "--no-corpus-path", "--no-architecture",
         "--type-id-style", "hash", "--exported-interfaces-only", "--out-file", str(description), str(library)),
    ):
        done = run(*command, folder=folder)  # so that the description names the source alone
        if done.returncode != 0:
            sys.exit(f"abi: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return description


def faults_of_exports(library):
    """Finds symbols that a library exports and no header declares, and the reverse."""
    declared = {name for name, _ in declarations()}
    listed = run("nm", "-D", "--extern-only", "--defined-only", library).stdout
    # A line is "ADDRESS T NAME@@VERSION"; A is the type of the version itself.
    exported = {name.split("@")[0] for _, kind, name in map(str.split, listed.splitlines()) if kind != "A"}
    yield from (f"{name} is declared, but {library} does not export it" for name in sorted(declared - exported))
    yield from (f"{library} exports {name}, which no public header declares" for name in sorted(exported - declared))


def check(library):
    faults = list(faults_of_structs()) + (list(faults_of_exports(library)) if library else [])
    with tempfile.TemporaryDirectory() as folder:
        done = run("abidiff", "--no-show-locs", str(STORED), str(described(pathlib.Path(folder))))
    if done.returncode != 0:
        faults.append(done.stdout + done.stderr + "The C ABI is not what tests/abi/lamina.abi says. docs/stability.md tells "
                      "what may change; where this may, `scripts/abi.py store` writes the description anew")
    for fault in faults:
        print(f"abi: {fault}")
    print(f"abi: {len(list(declarations()))} functions, {len(list(structs()))} structs")
    return 1 if faults else 0


def main(arguments):
    missing = [tool for tool in ("abidw", "abidiff", os.environ.get("CC", "cc")) if shutil.which(tool) is None]
    if missing:
        print(f"skipped: {missing[0]} is not installed (scripts/setup brings abigail-tools where the distribution has it)")
        return SKIPPED
    if arguments == ["store"]:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copyfile(described(pathlib.Path(folder)), STORED)
        return 0
    if arguments[:1] == ["check"] and len(arguments) <= 2:
        return check(arguments[1] if len(arguments) == 2 else None)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
