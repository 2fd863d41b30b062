#!/usr/bin/env python3
"""Prints gcovr's counts by module.

    coverage_table.py JSON --table             lines and branches of each module, as a table for docs/testing.md
    coverage_table.py JSON --missing [FOLDER]  the lines that no test runs, by file; only below FOLDER (src/api)
"""
import collections
import json
import pathlib
import sys


def module_of(file):
    """Returns the folder of a file's module (docs/architecture.md): backends are one level deeper, parts of the CPU backend
    two."""
    folders = pathlib.PurePath(file).parent.parts
    depth = 4 if folders[1:3] == ("backends", "cpu") else 3 if folders[1:2] == ("backends",) else 2
    return "/".join(folders[:depth])


def counted_lines(file):
    return [line for line in file["lines"] if not line.get("gcovr/noncode", False)]


def table(files):
    counts = collections.defaultdict(lambda: [0, 0, 0, 0])
    for file in files:
        for line in counted_lines(file):
            branches = line["branches"]
            new = (1, line["count"] > 0, len(branches), sum(branch["count"] > 0 for branch in branches))
            for module in (module_of(file["file"]), "all of src"):
                counts[module] = [old + more for old, more in zip(counts[module], new)]
    percent = lambda part, whole: f"{100 * part / whole:.1f} %" if whole else ""
    print("| module | lines | run | branches | taken |\n| --- | ---: | ---: | ---: | ---: |")
    for module in sorted(counts, key=lambda name: (name == "all of src", name)):
        lines, run, branches, taken = counts[module]
        print(f"| `{module}` | {lines} | {percent(run, lines)} | {branches} | {percent(taken, branches)} |".replace("`all of src`", "all of `src`"))


def ranges(numbers):
    """Formats [1, 2, 3, 7] as "1-3, 7"."""
    found = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def missing(files, folder):
    left = []
    for file in files:
        lines = counted_lines(file)
        never = [line["line_number"] for line in lines if line["count"] == 0]
        if never and file["file"].startswith(folder):
            left.append((len(never), len(lines), file["file"], ranges(never)))
    for never, lines, name, where in sorted(left, reverse=True):
        print(f"{never:4} of {lines:4}  {name}: {where}")


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[2] not in ("--table", "--missing"):
        sys.exit(__doc__)
    files = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))["files"]
    if sys.argv[2] == "--table":
        table(files)
    else:
        missing(files, sys.argv[3] if len(sys.argv) == 4 else "src")


if __name__ == "__main__":
    main()
