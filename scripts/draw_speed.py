#!/usr/bin/env python3
"""Draws docs/pictures/speed.svg from the tables of docs/performance.md and docs/performance_models.md: lamina's speed over its
peers, geometric means.

    draw_speed.py            writes the picture
    draw_speed.py --check    changes nothing; exits with 1 if the picture does not match the tables
"""
import math
import pathlib
import sys

TREE = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = [TREE / "docs" / name for name in ("performance.md", "performance_models.md")]
PICTURE = TREE / "docs" / "pictures" / "speed.svg"

CASES = ["LayerNorm", "LayerNormBackward", "Add+LayerNorm", "Add+LayerNorm+GELU", "SoftMax"]
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
BLUE, GREEN = "#4a6fa5", "#3f8a4a"
LABELS, UNIT, BAR, LINE = 270, 150, 15, 22  # pixels: the column of labels, one times the peer's speed, a bar, a row


def tables(text):
    """Returns the tables as lists of rows; a row is a dict by column title."""
    found, rows, titles = [], [], None
    for line in text.splitlines() + [""]:
        cells = [cell.strip() for cell in line.strip("| ").split("|")] if line.startswith("|") else None
        if cells is None:
            if rows:
                found.append(rows)
            rows, titles = [], None
        elif titles is None:
            titles = cells
        elif not set(line) <= set("|-: "):
            rows.append(dict(zip(titles, cells)))
    return found


def table_with(found, *titles):
    table, = [rows for rows in found if all(title in rows[0] for title in titles)]
    return table


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def bars():
    """Returns groups of (title, [(label, ratio, colour)])."""
    found = [table for document in DOCUMENTS for table in tables(document.read_text(encoding="utf-8"))]
    summary = table_with(found, "case", "over oneDNN, mean", "sizes")
    groups = []
    for data in ["in cache", "out of cache"]:
        rows = {row["case"]: row for row in summary if row["type"] == "f32" and row["data"] == data}
        groups.append((f"over oneDNN 3.2, f32, {data}",
                       [(case, float(rows[case]["over oneDNN, mean"].split("x")[0]), BLUE) for case in CASES]))
    of_models = []
    for mode in ("inference f32", "training f32"):
        rows = table_with(found, mode, "over inductor")
        for peer in ("eager", "inductor"):
            of_models.append((f"{mode.split()[0]}, over {peer}", mean([float(row[f"over {peer}"].rstrip("x")) for row in rows]), GREEN))
    groups.append((f"{len(rows)} models over PyTorch, f32", of_models))
    return groups


def text(x, y, words, more=""):
    return f'  <text x="{x:.0f}" y="{y:.0f}" font-size="12" {more}>{words}</text>'


def picture():
    groups = bars()
    largest = max(ratio for _, rows in groups for _, ratio, _ in rows)
    total_w = LABELS + UNIT * largest + 70
    out, y = [], 28
    for title, rows in groups:
        out.append(text(20, y, title, 'font-weight="bold"'))
        y += 8
        top = y
        for label, ratio, colour in rows:
            out.append(text(LABELS - 8, y + BAR - 3, label, 'text-anchor="end"'))
            out.append(f'  <rect x="{LABELS}" y="{y:.0f}" width="{UNIT * ratio:.0f}" height="{BAR}" rx="2" fill="{colour}"/>')
            out.append(text(LABELS + UNIT * ratio + 6, y + BAR - 3, f"{ratio:.2f}x"))
            y += LINE
        out.append(f'  <path d="M{LABELS + UNIT} {top - 2}V{y - 4}" stroke="#222" stroke-dasharray="3 3"/>')
        y += 22
    out.append(text(LABELS + UNIT, y - 14, "1.0: as fast", 'text-anchor="middle" fill="#444"'))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total_w:.0f} {y:.0f}" font-family="{FONT}" fill="#222">',
        "  <!-- Written by scripts/draw_speed.py from docs/performance.md and docs/performance_models.md. -->",
        "  <title>Speed of lamina over its peers, geometric means</title>",
        f'  <rect width="{total_w:.0f}" height="{y:.0f}" rx="8" fill="#fff"/>', *out, "</svg>", ""])


def main():
    if sys.argv[1:] == ["--check"]:
        if PICTURE.read_text(encoding="utf-8") != picture():
            sys.exit(f"draw_speed: {PICTURE.relative_to(TREE)} is not that of the tables; run scripts/draw_speed.py")
        return
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
