#!/usr/bin/env python3
"""Draws docs/pictures/data_flow.svg: the modules of the code and the data between them.

    draw_data_flow.py            writes the picture
    draw_data_flow.py --check    changes nothing; exits with 1 if the picture differs, or a module has no folder
"""
import collections
import pathlib
import sys

TREE = pathlib.Path(__file__).resolve().parent.parent
PICTURE = TREE / "docs" / "pictures" / "data_flow.svg"

Box = collections.namedtuple("Box", "title folder lines fill stroke")
BLUE, SAND, GREEN = ("#eef3fa", "#4a6fa5"), ("#fdf4e3", "#b9802a"), ("#eaf6ea", "#3f8a4a")

# The columns in the order in which they process a graph; folder: the module's folder.
COLUMNS = [
    [Box("C++ and C", "include/graph", ["lamina.hpp over", "the C interface"], *BLUE),
     Box("Python", "python/lamina", ["graphs and functions", "of arrays"], *BLUE),
     Box("PyTorch", "python/lamina/torch", ["torch.compile(model,", "backend=\"lamina\")"], *BLUE),
     Box("ONNX", "python/lamina/onnx", ["lamina.from_onnx"], *BLUE),
     Box("other libraries' names", "compat", ["oneDNN Graph and others", "over the C interface"], *BLUE),
     Box("JSON dumps", "tools/lamina", ["replay, explain, show"], *BLUE)],
    [Box("interface", "src/interface", ["ops, schemas,", "shapes, types, JSON"], *SAND)],
    [Box("passes", "src/passes", ["canonical form,", "fusion, partitions,", "reasons"], *SAND)],
    [Box("kernels", "src/kernels", ["a fused loop nest", "each: the mathematics", "as a small SSA graph"], *SAND)],
    [Box("backends/cpu", "src/backends/cpu", ["schedule, LLVM IR,", "machine code, threads"], *GREEN),
     Box("backends/gpu", "src/backends/gpu", ["schedule, CUDA C++ or", "OpenCL C, a driver"], *GREEN),
     Box("backends/reference", "src/backends/reference", ["plain loops in double,", "what checks compare with"], *GREEN)],
]
# The data between modules, from the interface on.
CARRIED = ["graph", "partition", "kernels"]
COMPILER = Box("compiler", "src/compiler", ["compiles a partition: plan, backend, caches"], *SAND)

TITLE, TEXT = 14, 12
PAD, LINE, GAP, BETWEEN = 12, 17, 18, 84
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"


def width(text, size, bold=False):
    """The width in DejaVu Sans, the widest font that a browser may choose."""
    ems = sum(0.33 if c in "iljI.,:;|!' " else 0.43 if c in "tfr()/-[]" else 0.98 if c in "mMwW@" else 0.78 if c.isupper() else 0.64
              for c in text)
    return ems * size * (1.1 if bold else 1)


def box_size(box):
    return (2 * PAD + max([width(box.title, TITLE, True)] + [width(line, TEXT) for line in box.lines]),
            2 * PAD + TITLE + LINE * len(box.lines))


def text(x, y, size, words, more=""):
    return f'  <text x="{x:.0f}" y="{y:.0f}" font-size="{size}" {more}>{words}</text>'


def drawn(box, x, y, w, h):
    middle = x + w / 2
    out = [f'  <rect x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" rx="6" fill="{box.fill}" stroke="{box.stroke}"/>',
           text(middle, y + PAD + TITLE * 0.8, TITLE, box.title, 'font-weight="bold"')]
    return out + [text(middle, y + PAD + TITLE * 0.8 + LINE * (i + 1), TEXT, line) for i, line in enumerate(box.lines)]


def arrow(x0, y0, x1, y1):
    bend = (x1 - x0) / 2
    return (f'  <path d="M{x0:.0f} {y0:.0f}C{x0 + bend:.0f} {y0:.0f} {x1 - bend:.0f} {y1:.0f} {x1:.0f} {y1:.0f}" fill="none" '
            'stroke="#555" marker-end="url(#tip)"/>')


def picture():
    sizes = [[box_size(box) for box in column] for column in COLUMNS]
    widths = [max(w for w, _ in column) for column in sizes]
    heights = [sum(h for _, h in column) + GAP * (len(column) - 1) for column in sizes]
    compiler_h = box_size(COMPILER)[1]
    top, middle = 20, 20 + max(heights) / 2
    places, x = [], 20
    for column, w, height in zip(sizes, widths, heights):
        y = middle - height / 2
        for _, h in column:
            places.append((x, y, w, h))
            y += h + GAP
        x += w + BETWEEN
    total_w = x - BETWEEN + 20
    of = dict(zip([box.title for column in COLUMNS for box in column], places))
    passes, kernels, reference = of["passes"], of["kernels"], of["backends/reference"]
    # The compiler's box is below the modules that it calls: passes, kernels, backends.
    compiler_w = reference[0] + reference[2] - passes[0]
    compiler_y = reference[1] + reference[3] + 2 * GAP
    total_h = max(top + max(heights), compiler_y + compiler_h) + 20

    out = []
    for column in COLUMNS:
        for box in column:
            out += drawn(box, *of[box.title])
    out += drawn(COMPILER, passes[0], compiler_y, compiler_w, compiler_h)

    def right(title):
        x, y, w, h = of[title]
        return x + w, y + h / 2

    def left(title):
        x, y, _, h = of[title]
        return x - 3, y + h / 2

    for source in [box.title for box in COLUMNS[0]]:
        out.append(arrow(*right(source), *left("interface")))
    out.append(arrow(*right("interface"), *left("passes")))
    out.append(arrow(*right("passes"), *left("kernels")))
    for target in ["backends/cpu", "backends/gpu"]:
        out.append(arrow(*right("kernels"), *left(target)))
    # The reference runs the ops of a partition themselves, without kernels.
    start = passes[0] + passes[2] / 2, passes[1] + passes[3]
    end = reference[0] - 3, reference[1] + reference[3] / 2
    out.append(f'  <path d="M{start[0]:.0f} {start[1]:.0f}V{end[1] - 12:.0f}Q{start[0]:.0f} {end[1]:.0f} {start[0] + 12:.0f} {end[1]:.0f}'
               f'H{end[0]:.0f}" fill="none" stroke="#555" marker-end="url(#tip)"/>')
    out.append(text((start[0] + end[0]) / 2, end[1] - 6, TEXT, "ops of the partition", 'fill="#444"'))
    for i, words in enumerate(CARRIED):
        # Above the arrow; below it where another arrow leaves upwards.
        at = [of["interface"], passes, kernels][i]
        out.append(text(at[0] + at[2] + BETWEEN / 2, middle + (16 if i == 2 else -8), TEXT, words, 'fill="#444"'))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total_w:.0f} {total_h:.0f}" font-family="{FONT}" text-anchor="middle" '
        'fill="#222">',
        "  <!-- Written by scripts/draw_data_flow.py. -->",
        "  <title>Data flow through lamina</title>",
        '  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>',
        # The picture has its own background, so that it is readable on a dark page.
        f'  <rect width="{total_w:.0f}" height="{total_h:.0f}" rx="8" fill="#fff"/>',
        *out, "</svg>", ""])


def main():
    boxes = [box for column in COLUMNS for box in column] + [COMPILER]
    missing = [box.folder for box in boxes if not (TREE / box.folder).is_dir()]
    if missing:
        sys.exit(f"draw_data_flow: no folder {', '.join(missing)}")
    if sys.argv[1:] == ["--check"]:
        if PICTURE.read_text(encoding="utf-8") != picture():
            sys.exit(f"draw_data_flow: {PICTURE.relative_to(TREE)} differs; run scripts/draw_data_flow.py")
        return
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
