#!/usr/bin/env python3
"""Checks that every path in a document or a comment exists in the tree, that links between documents have a target, that
each decision has a number of its own, and that no file is a symbolic link.

    check_paths.py           prints `FILE:LINE: NAME is not in the tree` for each that is not; exits with 1 if there is a fault
    check_paths.py --list    prints all names that were checked

A name is a file name with an ending of source code (`lower.h`), or a path that begins with a folder of the tree
(`passes/fusion`, `src/kernels/plan.h`). A name without a folder may be anywhere; a path may leave out folders at its front
and its ending.
"""
import collections
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parent.parent
ENDINGS = "h|hpp|c|cpp|inl|def|py|pyi|md|cmake|css|js|svg|png|tsv|toml"
COMMENTS = {  # ending or name of a file: what begins a comment
    **dict.fromkeys(["h", "hpp", "c", "cpp", "inl", "def"], ("//", "*", "/*")),
    **dict.fromkeys(["py", "pyi", "cmake", "txt", "toml", ""], ("#",)),
}
# Folders of other projects and of builds.
ELSEWHERE = re.compile(r"^(build|\.deps|oneapi|dnnl|llvm|sys|linux|nlohmann|gtest|gmock|torch|onnx|numpy|CL)/")
# Files of other projects, files that builds and programs write; ports and targets with a slash in their names.
NO_FILES = {"dnnl_graph.h", "nvrtc.h", "cublasLt.h", "dlpack.h", "code_version.h", "results.md", "src/dst", "lamina/lamina_tool"}
# Parts of names that mean any text: `src/kernels/ops/FAMILY.cpp`, `rules*.py`.
ANY = re.compile(r"FAMILY|KIND|NAME|FILE|NNNN|\*")


def tracked():
    """The files of the tree; without git all but those of builds."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TREE, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [name for name in listed.stdout.splitlines() if (TREE / name).exists() or (TREE / name).is_symlink()]
    names = (str(file.relative_to(TREE)) for file in TREE.rglob("*") if file.is_file())
    return [name for name in names if not name.startswith(("build/", ".deps/", ".git/", ".cache/"))]


class Tree:
    def __init__(self, files):
        self.ends, self.parts = set(), set()
        for name in files:
            pieces = name.split("/")
            for first in range(len(pieces)):
                self.ends.add("/".join(pieces[first:]))
                self.ends.add("/".join(pieces[first:]).rsplit(".", 1)[0])
                for last in range(first + 1, len(pieces)):
                    self.parts.add("/".join(pieces[first:last]))
        self.folders = {piece for name in files for piece in name.split("/")[:-1]}
        self.decisions = [name for name in files if name.startswith("docs/decisions/")]

    def has(self, name):
        if ANY.search(name):
            pattern = re.compile("[^/]+".join(map(re.escape, ANY.split(name))))
            return any(pattern.fullmatch(end) for end in self.ends)
        return name in self.ends or name in self.parts or any(end.startswith(name) for end in self.decisions if "decisions/" in name)


def named(text, folders):
    """Yields the names of files and paths in a text."""
    for match in re.finditer(rf"(?<![\w./$<{{@:-])((?:[\w.-]+/)*[\w*-]*[\w-]+[\w*-]*\.(?:{ENDINGS}))(?![\w/*<({{-])", text):
        yield match.group(1)
    for match in re.finditer(r"(?<![\w./$<*{@:~-])([a-z_]\w*(?:/[a-z_0-9][\w-]*)+)/?(?![\w/.*<({=-])", text):
        if match.group(1).split("/")[0] in folders:
            yield match.group(1)


def of_document(name, text):
    """Yields (line, name) of names in backquotes or links of a document."""
    for number, line in enumerate(text.splitlines(), 1):
        for quoted in re.findall(r"`([^`]+)`", line):
            if re.fullmatch(r"[\w./*-]+", quoted):
                yield number, quoted
    links = re.compile(r"\]\(([^)\s]+)\)")
    for number, line in enumerate(text.splitlines(), 1):
        for link in links.findall(line):
            path, _, anchor = link.partition("#")
            if re.match(r"\w+:", link):
                continue
            target = (TREE / name).parent / path if path else TREE / name
            if not target.exists():
                yield number, ("link", link)
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
                yield number, ("link", link)


def anchors(text):
    """Returns the anchors that GitHub and MkDocs generate for headings."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", ""))
        found.add(plain.strip().replace(" ", "-"))
    return found


def ending_of(name):
    return name.rsplit(".", 1)[1] if "." in name.rsplit("/", 1)[-1] else ""


def has_comments(name):
    ending = ending_of(name)
    return ending in COMMENTS and (ending != "" or name.startswith("scripts/"))


def of_source(name, text):
    """(line, comment) of a source."""
    marks = COMMENTS[ending_of(name)]
    for number, line in enumerate(text.splitlines(), 1):
        for mark in marks:
            at = line.find(mark)
            if at >= 0 and (mark != "*" or line.lstrip().startswith("*")):
                yield number, line[at:]
                break


def decisions_of_one_number(decisions):
    by_number = collections.defaultdict(list)
    for name in decisions:
        by_number[name.rsplit("/", 1)[-1].split("-")[0]].append(name)
    for number, names in by_number.items():
        if len(names) > 1:
            yield f"{' and '.join(names)} have the number {number}, allowed is one decision for each number"


def main():
    files = tracked()
    links = [name for name in files if (TREE / name).is_symlink()]
    if links:
        sys.exit("\n".join(f"{name}: a symbolic link, which may lead nowhere on another machine" for name in links))
    tree = Tree(files)
    faults, checked = list(decisions_of_one_number(tree.decisions)), []

    def check(file, number, name):
        if ELSEWHERE.match(name) or name in NO_FILES:
            return
        checked.append(name)
        if not tree.has(name.rstrip("/")):
            faults.append(f"{file}:{number}: {name} is not in the tree")

    for file in files:
        if file.startswith(("tests/replay/data", "tests/abi/")):
            continue
        if ending_of(file) == "md":
            if file == "CHANGELOG.md":
                continue
            for number, quoted in of_document(file, (TREE / file).read_text(encoding="utf-8")):
                if isinstance(quoted, tuple):
                    faults.append(f"{file}:{number}: the link {quoted[1]} leads nowhere")
                    continue
                for name in named(quoted, tree.folders):
                    check(file, number, name)
        elif has_comments(file):
            for number, comment in of_source(file, (TREE / file).read_text(encoding="utf-8", errors="replace")):
                for name in named(comment, tree.folders):
                    check(file, number, name)
    if sys.argv[1:] == ["--list"]:
        print("\n".join(sorted(set(checked))))
    print("\n".join(faults))
    if faults:
        sys.exit(1)
    print(f"{len(checked)} names of files and folders are in the tree")


if __name__ == "__main__":
    main()
