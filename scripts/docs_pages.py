#!/usr/bin/env python3
"""Collects the pages of the documentation site: the documents of the tree, and a page for each public header, from Doxygen's
output.

    docs_pages.py FOLDER    writes FOLDER/pages and FOLDER/mkdocs.yml for `mkdocs build` (scripts/docs)
    docs_pages.py --check   exits with 1 if a document is not in the navigation
"""
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as xml

TREE = pathlib.Path(__file__).resolve().parent.parent
HEADERS = TREE / "include" / "graph"
OF_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md",
           "THIRD_PARTY.md": "third_party.md", "CHANGELOG.md": "changelog.md"}

# The order of the pages; a name that is missing here, or missing in docs, is an error.
NAV = [
    ("Start", ["index.md", "install.md", "building.md", "python.md", "changelog.md"]),
    ("Use", ["dumps.md", "pictures.md", "profile.md", "export.md", "compat.md", "forms.md", "gpu.md", "debugging.md"]),
    ("Promises", ["numerics.md", "stability.md", "security.md", "third_party.md"]),
    ("Speed", ["performance.md", "performance_products.md", "performance_models.md", "performance_gpu.md"]),
    ("Operations", ["ops/*"]),
    ("Headers", ["api/*"]),
    ("Contribute", ["contributing.md", "architecture.md", "adding_an_op.md", "testing.md", "style.md"]),
    ("Decisions", ["decisions/*"]),
]

CONFIG = """\
site_name: lamina
site_description: Graph-level library of deep-learning operations with a fusion compiler
docs_dir: pages
site_dir: site
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.top, search.suggest, search.highlight, content.code.copy, toc.follow]
  palette:
    - {media: "(prefers-color-scheme: light)", scheme: default, primary: indigo, toggle: {icon: material/weather-night, name: Dark}}
    - {media: "(prefers-color-scheme: dark)", scheme: slate, primary: indigo, toggle: {icon: material/weather-sunny, name: Light}}
extra_css: [site.css]
plugins: [search]
markdown_extensions:
  - tables
  - toc: {permalink: true}
  - pymdownx.highlight
  - pymdownx.superfences
validation:
  nav: {omitted_files: warn, not_found: warn, absolute_links: warn}
  links: {not_found: warn, anchors: warn, absolute_links: warn, unrecognized_links: warn}
"""

# Wide tables scroll separately; pictures keep a light background on a dark page.
STYLE = """\
.md-grid { max-width: 76rem; }
.md-typeset table:not([class]) { font-size: .64rem; }
.md-typeset table:not([class]) th { min-width: 3rem; padding: .5em .8em; }
.md-typeset table:not([class]) td { padding: .4em .8em; }
.md-typeset td:first-child code { white-space: nowrap; }
.md-typeset img { border-radius: 6px; }
[data-md-color-scheme="slate"] img[src$=".svg"], [data-md-color-scheme="slate"] img[src$=".png"] { background: #fff; }
"""


# ---- documents


class Pages:
    """The source files of the pages, and the conversion of links between files to links between pages."""

    def __init__(self, folder):
        self.folder = folder
        self.of = {TREE / name: page for name, page in OF_ROOT.items()}  # file of the tree -> page
        for file in sorted((TREE / "docs").rglob("*")):
            if file.is_file():
                self.of[file] = str(file.relative_to(TREE / "docs"))
        self.of.update({file: f"api/{file.name}.md" for file in headers()})
        self.of[TREE / "docs" / "decisions"] = "decisions/" + min(file.name for file in (TREE / "docs" / "decisions").glob("*.md"))

    def link(self, file, match):
        """Links to files that are pages; other files of the tree are named without a link. MkDocs reports what is left."""
        text, target = match.groups()
        path, _, anchor = target.partition("#")
        if re.match(r"\w+:", target) or not path:
            return match.group()
        linked = (file.parent / path).resolve()
        page = self.of.get(linked)
        if page is None:
            return text if linked.exists() else match.group()
        here = pathlib.PurePosixPath(self.of[file]).parent
        up = "../" * len(here.parts)
        return f"[{text}]({up}{page}{'#' + anchor if anchor else ''})"

    def write(self):
        for file, page in self.of.items():
            target = self.folder / page
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.is_dir() or page.startswith("api/"):
                continue
            if file.suffix != ".md":
                shutil.copyfile(file, target)
                continue
            text = file.read_text(encoding="utf-8")
            target.write_text(re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)", lambda match, file=file: self.link(file, match), text),
                              encoding="utf-8")


# ---- headers


def headers():
    return sorted(file for file in HEADERS.iterdir() if file.suffix in (".h", ".hpp"))


def expanded(text):
    """Expands the lists that enumerations include (`#define LAMINA_OP(...) ...`, `#include "graph/op_kinds.def"`)."""

    def entries(match):
        macro, parameters, body, file = match.groups()
        listed = re.findall(rf"^{macro}\((.*)\)$", (HEADERS / file).read_text(encoding="utf-8"), re.MULTILINE)
        lines = []
        for arguments in listed:
            line = body
            for parameter, argument in zip(parameters.split(", "), arguments.split(", ")):
                line = re.sub(rf"(?:##)?\b{parameter}\b", argument, line)
            lines.append(line)
        return "\n".join(lines)

    return re.sub(r'#define (\w+)\(([^)]*)\) (.*)\n#include "graph/(\w+\.def)"', entries, text)


def commented(text):
    """Returns the text of a header with its comments in Doxygen's form."""
    out = []
    for line in text.splitlines():
        code = re.match(r"^(\s*\S.*?[;,{}(\w])(\s+)(//|/\*)(?!\*)(.*)$", line)
        if code and not line.lstrip().startswith(("//", "/*", "*", "#")):
            line = f"{code[1]}{code[2]}{code[3]}{'/' if code[3] == '//' else '*'}<{code[4]}"
        elif re.match(r"^\s*//(?!/)", line):
            line = line.replace("//", "///", 1)
        elif re.match(r"^\s*/\*(?!\*| ----)", line):
            line = line.replace("/*", "/**", 1)
        out.append(line)
    return "\n".join(out) + "\n"


def read_by_doxygen(work):
    """Returns Doxygen's XML of the headers: one file per header, and one per class."""
    source = work / "headers" / "graph"
    source.mkdir(parents=True, exist_ok=True)
    for file in headers():
        (source / file.name).write_text(commented(expanded(file.read_text(encoding="utf-8"))), encoding="utf-8")
    settings = {"INPUT": source, "OUTPUT_DIRECTORY": work, "GENERATE_XML": "YES", "GENERATE_HTML": "NO", "GENERATE_LATEX": "NO",
                "QUIET": "YES", "WARN_IF_UNDOCUMENTED": "NO", "EXTRACT_ALL": "YES", "MACRO_EXPANSION": "YES", "EXPAND_ONLY_PREDEF": "YES", "INCLUDE_PATH": source.parent,
                "PREDEFINED": "LAMINA_API= LAMINA_ANY_INT= __cplusplus=201703L", "STRIP_FROM_PATH": work / "headers",
                "TYPEDEF_HIDES_STRUCT": "YES", "AUTOLINK_SUPPORT": "NO", "MARKDOWN_SUPPORT": "NO", "FILE_PATTERNS": "*.h *.hpp"}
    subprocess.run(["doxygen", "-"], input="".join(f'{key} = {value}\n' for key, value in settings.items()), text=True, check=True)
    return work / "xml"


def words(element):
    if element is None:
        return ""
    return re.sub(r"\s+", " ", "".join(element.itertext())).strip()


def as_markdown(text):
    """Formats names as code, and escapes Markdown's special characters."""
    named = re.sub(r"(?<![\w`])[~\w]*(?:_\w|::)[\w:]*(?:\(\))?\*?", r"`\g<0>`", text.replace("`", ""))
    return re.sub(r"`[^`]*`|[*<]", lambda match: match.group() if len(match.group()) > 1 else "\\" + match.group(), named)


def words_before_list(para):
    copy = xml.fromstring(xml.tostring(para))
    for child in list(copy):
        if child.tag == "itemizedlist":
            copy.remove(child)
    return words(copy)


def description(element):
    """Returns the paragraphs of a comment as Markdown."""
    out = []
    for part in ("briefdescription", "detaileddescription"):
        found = element.find(part)
        for para in found.findall("para") if found is not None else []:
            items = [words(item) for item in para.iter("listitem")]
            if not items:
                out.append(words(para))
            else:
                out += [words_before_list(para), "\n".join(f"- {item}" for item in items)]
    return "\n\n".join(as_markdown(text) for text in out if text)


def signature(member):
    kind = member.get("kind")
    if kind == "enum":
        values = ["".join([value.findtext("name"), " ", words(value.find("initializer"))]).strip() for value in member.findall("enumvalue")]
        one_each = ",\n".join(values).splitlines()
        lines = textwrap.wrap(", ".join(value.replace(" ", "\0") for value in values), 100) if len(values) > 12 else one_each
        return f"enum {member.findtext('name')} {{\n" + "".join(f"  {line}\n" for line in lines).replace("\0", " ") + "};"
    if kind == "define":
        return f"#define {member.findtext('name')} {words(member.find('initializer'))}".strip()
    arguments = words(member.find("argsstring")) if kind == "function" else ""
    text = f"{words(member.find('definition'))}{arguments};"
    return re.sub(r"\b(?:lamina::)?(?:graph::)?\w+::(?=[~\w]+[(;)])", "", text).replace("< ", "<").replace(" >", ">").replace(" &", "& ").replace(" *", "* ")


def members_text(members):
    """Returns one block per comment; following members without a comment share it."""
    groups = []
    for member in members:
        said = description(member)
        line = int(member.find("location").get("line"))
        if said or not groups or (groups[-1]["said"] and line - groups[-1]["line"] > 4):
            groups.append({"said": said, "code": [], "line": line})
        groups[-1]["code"].append(signature(member))
        groups[-1]["line"] = line
    return "".join(f"```cpp\n{chr(10).join(group['code'])}\n```\n\n{group['said']}\n\n" for group in groups)


def is_shown(member, file):
    location = member.find("location")
    return (location is not None and pathlib.Path(location.get("file")).name == file and member.get("prot", "public") == "public"
            and not member.findtext("name").startswith(("LAMINA_API", "LAMINA_ANY_INT", "LAMINA_H")) and not member.findtext("name").endswith("_H"))


def class_text(compound):
    name = compound.findtext("compoundname")
    members = [member for section in compound.findall("sectiondef") for member in section.findall("memberdef")
               if member.get("prot") == "public" and member.get("kind") in ("function", "variable", "enum", "typedef")]
    members.sort(key=lambda member: int(member.find("location").get("line")))
    said = description(compound)
    return f"### {name}\n\n" + (said + "\n\n" if said else "") + members_text(members)


def header_page(file, compounds):
    """Returns the page of one header: its comment, its types and classes, its functions."""
    own, = [c for c in compounds if c.get("kind") == "file" and c.findtext("compoundname") == file.name]
    text = file.read_text(encoding="utf-8")
    opening = re.match(r"(/\*(?P<c>.*?)\*/|(?P<cpp>(//[^\n]*\n)+))", text, re.DOTALL)
    said = opening["c"] or opening["cpp"]
    paragraphs = re.split(r"\n\s*(?:\*|//)?\s*\n", re.sub(r"(?m)^\s*(?:\*|//)[ ]?", "", said).strip())
    out = f"# graph/{file.name}\n\n" + "\n\n".join(as_markdown(re.sub(r"\s+", " ", p).strip()) for p in paragraphs) + "\n\n"
    scopes = [own] + [c for c in compounds if c.get("kind") == "namespace"]
    members = [m for scope in scopes for section in scope.findall("sectiondef") for m in section.findall("memberdef") if is_shown(m, file.name)]
    members = list({member.get("id"): member for member in members}.values())
    members.sort(key=lambda member: int(member.find("location").get("line")))
    classes = [c for c in compounds if c.get("kind") in ("class", "struct") and is_of(c, file.name)]
    classes.sort(key=lambda c: int(c.find("location").get("line")))
    for title, kinds in (("Types", ("enum", "typedef")), ("Constants", ("define", "variable"))):
        chosen = [m for m in members if m.get("kind") in kinds]
        if chosen:
            out += f"## {title}\n\n" + members_text(chosen)
    if classes:
        out += "## Structs and classes\n\n" + "".join(class_text(c) for c in classes)
    functions = [m for m in members if m.get("kind") == "function"]
    if functions:
        out += "## Functions\n\n" + members_text(functions)
    return out


def is_of(compound, file):
    location = compound.find("location")
    return (location is not None and pathlib.Path(location.get("file")).name == file and compound.get("prot", "public") == "public"
            and "detail" not in compound.findtext("compoundname"))


def write_headers(pages, work):
    folder = read_by_doxygen(work)
    compounds = [xml.parse(file).getroot().find("compounddef") for file in folder.glob("*.xml") if file.name != "index.xml"]
    compounds = [c for c in compounds if c is not None]
    for file in headers():
        (pages / "api" / f"{file.name}.md").write_text(header_page(file, compounds), encoding="utf-8")


# ---- the site


def check():
    """What nav_lines checks of a site, for the documents of the tree."""
    named = {entry for _, entries in NAV for entry in entries}
    there = set(OF_ROOT.values()) | {file.name for file in (TREE / "docs").glob("*.md")}
    if apart := there ^ {entry for entry in named if not entry.endswith("*")}:
        sys.exit(f"docs_pages: the navigation and the documents differ in {', '.join(sorted(apart))}")


def nav_lines(pages):
    lines, used = ["nav:"], set()
    for section, entries in NAV:
        lines.append(f"  - {section}:")
        for entry in entries:
            if not entry.endswith("*"):
                lines.append(f"      - {entry}")
                used.add(entry)
                continue
            found = sorted((page.relative_to(pages) for page in (pages / entry[:-2]).glob("*.md")), key=lambda page: (page.name != "README.md", page.name))
            for page in found:
                title = "Overview" if page.name == "README.md" else page.name[:-3] if section in ("Operations", "Headers") else ""
                lines.append(f"      - {title}: {page}" if title else f"      - {page}")
                used.add(str(page))
    existing = {str(page.relative_to(pages)) for page in pages.rglob("*.md")}
    if existing != used:
        sys.exit(f"docs_pages: the navigation and the pages differ in {', '.join(sorted(existing ^ used))}")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--check":
        return check()
    work = pathlib.Path(sys.argv[1]).resolve()
    pages = work / "pages"
    for folder in (pages, work / "xml", work / "headers"):
        shutil.rmtree(folder, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    Pages(pages).write()
    write_headers(pages, work)
    (pages / "site.css").write_text(STYLE, encoding="utf-8")
    (work / "mkdocs.yml").write_text(CONFIG + nav_lines(pages), encoding="utf-8")


if __name__ == "__main__":
    main()
