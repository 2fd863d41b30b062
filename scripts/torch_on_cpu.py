#!/usr/bin/env python3
"""Makes a torch wheel that was built for CUDA importable without CUDA, and without gigabytes of unused libraries.

    torch_on_cpu.py SITE_PACKAGES

Such a wheel links CUDA's libraries even on machines without a GPU. For each library that the loader does not find, this
script creates a stub library of that name beside the wheel, with the required symbols; none is called on a CPU. Needs gcc,
ldd and readelf; safe to run again. Prints the created libraries.
"""
import pathlib
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


def ldd(library, *options):
    return run("ldd", *options, library)


def missing_libraries(libraries):
    return sorted({name for library in libraries for name in re.findall(r"(\S+) => not found", ldd(library))})


def missing_symbols(libraries):
    """Returns {file: {version: symbols}} of unresolved symbols; file None means any library, without a version."""
    wanted = {}
    defined = set(run("nm", "-D", "--defined-only", "--format=posix", *libraries).split())
    for library in libraries:
        undefined = ldd(library, "-r")
        plain = set(re.findall(r"undefined symbol: (\w+)\s", undefined)) - defined
        wanted.setdefault(None, {}).setdefault("", set()).update(name for name in plain if not re.match(r"_?_?Py|_Py", name))
        symbols = set(re.findall(r"undefined symbol: (\w+), version (\S+)", undefined))
        needs = run("readelf", "-V", "--wide", library)
        for file, versions in re.findall(r"File: (\S+)((?:(?!File:).)*)", needs, re.DOTALL):
            for version in re.findall(r"Name: (\S+)", versions):
                named = {symbol for symbol, of in symbols if of == version}
                if named:
                    wanted.setdefault(file, {}).setdefault(version, set()).update(named)
    return wanted


def make_library(path, symbols_of_version):
    symbols = sorted(name for names in symbols_of_version.values() for name in names)
    source = "".join(f"void* {name}[16];\n" for name in symbols)
    script = path.with_suffix(".map")
    script.write_text("".join(f"{version} {{ global: {'; '.join(sorted(names))}; }};\n"
                              for version, names in symbols_of_version.items()))
    versions = [f"-Wl,--version-script={script}"] if any(symbols_of_version) else []
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", path, f"-Wl,-soname,{path.name}", *versions], input=source,
                   text=True, check=True)
    script.unlink()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    site = pathlib.Path(sys.argv[1])
    libraries = sorted((site / "torch" / "lib").glob("*.so"))
    folder = site / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(4):  # a library may need another one that is missing
        names = missing_libraries(libraries)
        for name in names:
            make_library(folder / name, {})
            print(f"stands in for {name}")
        if not names:
            break
    wanted = missing_symbols(libraries)
    made = {path.name for path in folder.glob("*.so*")} - set(wanted)
    without_version = wanted.pop(None, {})
    wanted.update({name: without_version for name in made})
    for name, symbols_of_version in wanted.items():
        if (folder / name).exists():
            make_library(folder / name, symbols_of_version)
            print(f"{name}: {sum(map(len, symbols_of_version.values()))} symbols")


if __name__ == "__main__":
    main()
