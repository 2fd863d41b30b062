"""What torch_models.py says about all its rows: means, and a table of Markdown."""
import statistics

RIVALS = ("eager", "inductor")


def better(ms):
    """The time of the better of eager and inductor, as far as measured."""
    return min(ms[who] for who in RIVALS if who in ms)


def means(rows):
    """A line per mode: geometric means and least ratios."""
    lines = []
    for mode in dict.fromkeys(row["mode"] for row in rows):
        timed = [row for row in rows if row["mode"] == mode and "ms" in row]
        if len(timed) < 2:
            continue
        texts = []
        of = {"eager": lambda ms: ms["eager"], "inductor": lambda ms: ms["inductor"], "the better of eager and inductor": better,
              "eager with oneDNN's products": lambda ms: min(ms["eager"], ms["eager_onednn"])}
        needs = {"inductor": "inductor", "the better of eager and inductor": "inductor", "eager with oneDNN's products": "eager_onednn"}
        for name, time_of in of.items():
            ratios = {row["model"]: time_of(row["ms"]) / row["ms"]["lamina"] for row in timed if needs.get(name, "eager") in row["ms"]}
            if ratios:
                least = min(ratios, key=ratios.get)
                texts.append(f"{statistics.geometric_mean(ratios.values()):.2f} of {name} (least {ratios[least]:.2f}, {least})")
        lines.append(f"{mode}, {len(timed)} models: {'; '.join(texts)}")
    return lines


def table(rows):
    """A table per mode, whose first title is the mode: times, ratios, and the part of the bound."""
    return "\n\n".join(table_of(mode, [row for row in rows if row["mode"] == mode and "ms" in row])
                       for mode in dict.fromkeys(row["mode"] for row in rows if "ms" in row))


def table_of(mode, rows):
    columns = {"lamina, ms": lambda ms, bound: f"{ms['lamina']:.3g}"}
    for who, title in (("eager", "over eager"), ("eager_onednn", "with oneDNN's products"), ("inductor", "over inductor")):
        if any(who in row["ms"] for row in rows):
            columns[title] = lambda ms, bound, who=who: f"{ms[who] / ms['lamina']:.2f}x" if who in ms else "-"
    title = title_of(mode)
    if not any(row["bound"]["gflop"] for row in rows):
        title += ", parts without products"
    else:
        columns["GFLOP/s"] = lambda ms, bound: f"{bound['gflop'] / ms['lamina'] * 1e3:.0f}"
        columns["eager's"] = lambda ms, bound: f"{bound['gflop'] / ms['eager'] * 1e3:.0f}"
    columns["bound, ms"] = lambda ms, bound: f"{bound['ms']:.3g}"
    columns["of it"] = lambda ms, bound: f"{bound['ms'] / ms['lamina']:.0%}"
    lines = [f"| {title} | " + " | ".join(columns) + " |", "| --- " * (1 + len(columns)) + "|"]
    for row in rows:
        lines.append(f"| {row['model']} | " + " | ".join(cell(row["ms"], row["bound"]) for cell in columns.values()) + " |")
    return "\n".join(lines)


def title_of(mode):
    """infer_f32: inference f32"""
    return mode.replace("infer", "inference").replace("train", "training").replace("_", " ")
