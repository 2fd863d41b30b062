#!/usr/bin/env python3
"""Summarises the results of norm_vs_onednn (--json): tables as text, Markdown for docs/performance.md, the roofline as SVG.

    report.py RESULTS.json...                      summary and worst cases, as text
    report.py RESULTS.json... --update FILE.md     puts the tables between the lines `<!-- figures -->` and `<!-- end -->`
    report.py RESULTS.json... --pictures FOLDER    draws norms_TYPE.svg for each type with enough sizes

Several result files (one per type, for example) are combined. If a case was measured twice, the last measurement counts. Results
that were measured while other programs kept the machine busy are counted and excluded from all sums.
"""
import argparse
import json
import math
import sys

BUSY = 0.03  # fraction of the machine's time, used by other programs
USUAL_MEMORY = "as given"  # the placement of tensors in all tables but one
TIERS = {"cache": "in cache", "memory": "out of cache"}
# lamina's goals as a fraction of the roofline (256 <= N <= 65536), by case and tier. 16-bit types have separate goals.
GOALS = {
    ("LayerNorm", "memory"): 0.90, ("LayerNorm", "cache"): 0.75,
    ("LayerNorm+stats", "memory"): 0.90, ("LayerNorm+stats", "cache"): 0.75,
    ("LayerNormBackward", "memory"): 0.80, ("LayerNormBackward", "cache"): 0.65,
    ("Add+LayerNorm", "memory"): 0.85,
}
GOALS_16_BIT = {("LayerNorm", "memory"): 0.85, ("LayerNorm+stats", "memory"): 0.85, ("LayerNormBackward", "memory"): 0.75}
# lamina's goals for the least and the mean speed-up over oneDNN.
SPEED_GOALS = {
    "LayerNorm": (1.0, 1.3), "LayerNorm+stats": (1.0, 1.3), "LayerNormBackward": (1.2, 2.0), "Add+LayerNorm+GELU": (None, 3.0),
    "LayerNorm+GELU+Quantize": (None, 1.5),
}
ODD_NEIGHBOURS = {257: 256, 769: 768, 1000: 1024, 1021: 1024, 4093: 4096, 65521: 65536}


class Row:
    """One case at one size."""

    def __init__(self, fields):
        self.case, self.type = fields["case"], fields["type"]
        self.rows, self.columns, self.tier = fields["rows"], fields["columns"], fields["tier"]
        self.memory = fields.get("memory", USUAL_MEMORY)
        self.moved, self.others, self.refused = fields["moved_bytes"], fields["others"], fields["refused"]
        self.time = {name: fields[name]["us"] if fields[name] else None for name in ("lamina", "onednn", "roof")}
        self.choices = {"default": self.time["lamina"]}
        for name in ("tuned", "best"):  # None in older files, and if it was not searched
            self.choices[name] = fields[name]["us"] if fields.get(name) else None
        self.searched_all = fields.get("searched_all", False)
        self.way = {name: fields[name]["way"] if fields[name] else "" for name in ("lamina", "onednn", "roof")}

    @property
    def size(self):
        return f"{self.rows}x{self.columns}"

    @property
    def key(self):
        return self.case, self.type, self.rows, self.columns, self.memory

    @property
    def speed_up(self):
        return self.time["onednn"] / self.time["lamina"] if self.time["onednn"] else None

    @property
    def of_roofline(self):
        return self.time["roof"] / self.time["lamina"]

    def gbs(self, name="lamina"):
        return self.moved / self.time[name] * 1e-3


def load(paths):
    """Rows of all files that were measured without disturbance, the number of others, and the machine."""
    rows, machine, busy = {}, None, 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        if machine and machine["cpu"] != content["machine"]["cpu"]:
            sys.exit(f"report.py: {path} was measured on another machine than {paths[0]}")
        machine = content["machine"]
        for fields in content["results"]:
            row = Row(fields)
            if not row.refused:
                rows[row.key] = row
    busy = sum(row.others > BUSY for row in rows.values())
    return [row for row in rows.values() if row.others <= BUSY], busy, machine


def peer_of(machine):
    """Includes the version, which every table shows, because another version may be faster."""
    return f"oneDNN {machine['onednn']}" if machine["onednn"] else "oneDNN (absent)"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def groups(rows):
    """(case, type, tier) -> rows, in the order of their first appearance by type."""
    found = {}
    for row in rows:
        if row.tier in TIERS:
            found.setdefault((row.case, row.type, row.tier), []).append(row)
    order = ["f32", "bf16", "f16", "f64"]
    return dict(sorted(found.items(), key=lambda item: order.index(item[0][1])))


def at_usual_sizes(rows):
    return [row for row in rows if 256 <= row.columns <= 65536]


def goal_text(value, goal, form):
    return form(value) + ("" if goal is None or value >= goal else f" (goal {form(goal)})")


def percent(value):
    return f"{100 * value:.0f} %"


def times(value):
    return f"{value:.2f}x"


def summary(rows, peer):
    """One line per case, type and tier."""
    lines = [["case", "type", "data", "sizes", "of roofline, mean", "of roofline, least", f"over {peer}, mean", f"over {peer}, least"]]
    for (case, dtype, tier), members in groups(rows).items():
        usual = at_usual_sizes(members) or members
        goals = GOALS if dtype in ("f32", "f64") else GOALS_16_BIT
        roofline_goal = goals.get((case, tier))
        least = min(usual, key=lambda row: row.of_roofline)
        line = [case, dtype, TIERS[tier], str(len(members)), percent(geometric_mean([row.of_roofline for row in usual])),
                goal_text(least.of_roofline, roofline_goal, percent) + f" at {least.size}"]
        compared = [row for row in members if row.speed_up]
        if compared:
            slowest = min(compared, key=lambda row: row.speed_up)
            least_goal, mean_goal = SPEED_GOALS.get(case, (None, None))
            line.append(goal_text(geometric_mean([row.speed_up for row in compared]), mean_goal, times))
            line.append(goal_text(slowest.speed_up, least_goal, times) + f" at {slowest.size}")
        else:
            line += ["-", "-"]
        lines.append(line)
    return lines


def behind(rows, peer, roofline_limit=0.85):
    """Cases that are slower than oneDNN, or below the limit of the roofline, the worst first."""
    lines = [["case", "type", "size", "data", "lamina us", f"{peer} us", "roofline us", f"over {peer}", "of roofline", "best roofline"]]
    bad = [row for row in rows if row.tier != "tiny" and ((row.speed_up or 9) < 1 or row.of_roofline < roofline_limit)]
    bad += [row for row in rows if row.tier == "tiny" and (row.speed_up or 9) < 1]
    for row in sorted(bad, key=lambda row: min(row.speed_up or 9, 1) * row.of_roofline):
        theirs = row.time["onednn"]
        lines.append([row.case, row.type, row.size, TIERS.get(row.tier, row.tier), f"{row.time['lamina']:.1f}",
                      f"{theirs:.1f}" if theirs else "-", f"{row.time['roof']:.1f}", times(row.speed_up) if theirs else "-",
                      percent(row.of_roofline), row.way["roof"]])
    return lines


def slower_than_peer(rows, peer):
    lines = [["case", "type", "size", "data", f"over {peer}", "of roofline"]]
    for row in sorted((row for row in rows if row.speed_up and row.speed_up < 1), key=lambda row: row.speed_up):
        lines.append([row.case, row.type, row.size, TIERS.get(row.tier, row.tier), times(row.speed_up), percent(row.of_roofline)])
    return lines


def odd_sizes(rows):
    """GB/s at primes and N % 16 != 0 over GB/s at the neighbouring multiple: the least per case and type."""
    by_place = {(row.case, row.type, row.tier, row.columns): row for row in rows if row.tier in TIERS}
    least = {}
    for (case, dtype, tier, columns), row in by_place.items():
        neighbour = by_place.get((case, dtype, tier, ODD_NEIGHBOURS.get(columns)))
        if neighbour:
            ratio = row.gbs() / neighbour.gbs()
            least.setdefault((case, dtype), {}).setdefault(tier, []).append((ratio, columns))
    lines = [["case", "type", "in cache, least", "out of cache, least"]]
    for (case, dtype), tiers in least.items():
        cells = [f"{min(tiers[tier])[0]:.2f} at N = {min(tiers[tier])[1]}" if tier in tiers else "-" for tier in TIERS]
        lines.append([case, dtype, *cells])
    return lines


def single_rows(rows, peer):
    """The shortest and the longest problems of one row."""
    lines = [["case", "type", "size", "lamina us", f"{peer} us", "roofline us", "of roofline"]]
    for row in rows:
        if row.rows == 1 and row.columns in (64, 1 << 25, 1 << 26):
            theirs = row.time["onednn"]
            lines.append([row.case, row.type, row.size, f"{row.time['lamina']:.2f}", f"{theirs:.2f}" if theirs else "-",
                          f"{row.time['roof']:.2f}", percent(row.of_roofline)])
    return lines


TUNED_WITHIN, DEFAULT_WITHIN = 1.03, 1.15  # goals, as a multiple of the best schedule's time


def choices(rows, peer):
    """The distance of the default and the tuned schedule from the best one found, and the speed-up of each over the peer, by tier."""
    lines = [["data", "cases", f"tuned within {100 * TUNED_WITHIN - 100:.0f} % of best", "mean", "most",
              f"default within {100 * DEFAULT_WITHIN - 100:.0f} % of best", "mean", "most", f"default over {peer}, mean, least",
              f"tuned over {peer}, mean, least"]]
    for tier in dict.fromkeys(row.tier for row in rows):
        members = [row for row in rows if row.tier == tier and row.choices["best"] and row.choices["tuned"]]
        if not members:
            continue
        line = [TIERS.get(tier, tier), str(len(members))]
        for name, limit in (("tuned", TUNED_WITHIN), ("default", DEFAULT_WITHIN)):
            losses = {row: row.choices[name] / row.choices["best"] for row in members}
            worst = max(members, key=losses.get)
            line += [f"{sum(loss <= limit for loss in losses.values())} of {len(members)}",
                     f"{geometric_mean(list(losses.values())):.3f}",
                     f"{losses[worst]:.2f} at {worst.case} {worst.type} {worst.size}"]
        for name in ("default", "tuned"):
            speed_ups = [row.time["onednn"] / row.choices[name] for row in members if row.time["onednn"]]
            line.append(f"{times(geometric_mean(speed_ups))}, {times(min(speed_ups))}" if speed_ups else "-")
        lines.append(line)
    return lines


def searches(rows):
    found = [row for row in rows if row.choices["best"]]
    return f"{sum(row.searched_all for row in found)} of {len(found)} lists of legal schedules were timed whole"


def memories(rows, peer):
    """The cost of other placements of tensors: times over those with the usual placement, means over the sizes that have both."""
    usual = {row.key[:4]: row for row in rows if row.memory == USUAL_MEMORY}
    found = {}
    for row in rows:
        if row.memory != USUAL_MEMORY and row.key[:4] in usual:
            found.setdefault((row.case, row.type, row.tier, row.memory), []).append((row, usual[row.key[:4]]))
    lines = [["case", "type", "data", "memory", "sizes", "lamina, time over as given", f"{peer}, the same", "roofline, the same",
              f"over {peer}"]]
    for (case, dtype, tier, memory), pairs in found.items():
        def ratio(name, pairs=pairs):
            both = [(row.time[name], other.time[name]) for row, other in pairs if row.time[name] and other.time[name]]
            return f"{geometric_mean([here / there for here, there in both]):.2f}" if both else "-"
        compared = [row.speed_up for row, _ in pairs if row.speed_up]
        lines.append([case, dtype, TIERS.get(tier, tier), memory, str(len(pairs)), *map(ratio, ("lamina", "onednn", "roof")),
                      times(geometric_mean(compared)) if compared else "-"])
    return lines


def as_text(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def as_markdown(lines):
    head, *body = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([head, "|" + " --- |" * len(lines[0]), *body])


def machine_text(machine):
    mib = machine["last_level_cache_bytes"] / 2**20
    cap = f", capped to {machine['isa_cap']}" if machine["isa_cap"] else ""
    return (f"{machine['cpu']} (family/model/stepping {machine['cpu_model']}), {machine['vectors']}{cap}; {machine['cpus']} CPUs, "
            f"{machine['threads']} threads; L1d {machine['l1d_bytes'] // 1024} KiB and L2 {machine['l2_bytes'] // 1024} KiB a core, "
            f"last level {mib:.0f} MiB{disagreement(machine)}; pages {chosen(machine['huge_pages'])}; {machine['compiler']}; "
            f"oneDNN {machine['onednn'] or 'absent'}")


def chosen(policy):
    """`always [madvise] never` -> `madvise`: the system's default."""
    return policy.split("[")[-1].split("]")[0]


def disagreement(machine):
    """Other reported or measured sizes of the last-level cache, if they differ from the one that is used."""
    caches = machine.get("caches", {})
    words = {"sysfs_last_level_bytes": "sysfs tells", "sysconf_last_level_bytes": "sysconf tells",
             "measured_last_level_bytes": "by latency at least"}
    other = [f"{text} {caches[name] / 2**20:.0f}" for name, text in words.items()
             if caches.get(name) not in (None, machine["last_level_cache_bytes"])]
    return f" ({', '.join(other)})" if other else ""


def markdown(all_rows, busy, machine):
    rows, peer = [row for row in all_rows if row.memory == USUAL_MEMORY], peer_of(machine)
    parts = [f"Machine: {machine_text(machine)}. {len(all_rows)} cases" +
             (f"; {busy} more were measured while other programs ran and are left out." if busy else "."),
             "### Summary\n\n" + as_markdown(summary(rows, peer))]
    for title, lines in [(f"Slower than {peer}", slower_than_peer(rows, peer)), ("One row", single_rows(rows, peer)),
                         ("Primes and N % 16 != 0, against the neighbouring multiple", odd_sizes(rows)),
                         (f"Schedules by rules and by tuning, time over the best that was found ({searches(rows)})",
                          choices(rows, peer)),
                         ("Tensors elsewhere in memory", memories(all_rows, peer))]:
        parts.append(f"### {title}\n\n" + (as_markdown(lines) if len(lines) > 1 else "None."))
    return "\n\n".join(parts)


def update(path, text):
    with open(path, encoding="utf-8") as file:
        content = file.read()
    begin, end = "<!-- figures -->\n", "\n<!-- end -->"
    if begin not in content or end not in content:
        sys.exit(f"report.py: {path} lacks the line {begin.strip()} or {end.strip()}")
    before, after = content.split(begin)[0], content.split(end)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + begin + text + end + after)


# ---- pictures

PICTURE_CASES = ["LayerNorm", "LayerNormBackward", "Add+LayerNorm", "Add+LayerNorm+GELU", "RMSNorm", "SoftMax"]
SERIES = [("roof", "memory roofline"), ("lamina", "lamina"), ("onednn", "oneDNN")]
SHORTEST, LONGEST = 64, 65536  # the range of row lengths in the pictures
PANEL_WIDTH, PANEL_HEIGHT, LEFT, TOP, GAP_X, GAP_Y = 380, 150, 60, 84, 70, 52
STYLE = """
    .ground { fill: #ffffff } .text { fill: #24292f } .grid { stroke: #d0d7de } .roof { stroke: #6e7781; fill: #6e7781 }
    .lamina { stroke: #0969da; fill: #0969da } .onednn { stroke: #bc4c00; fill: #bc4c00 }
    @media (prefers-color-scheme: dark) {
      .ground { fill: #0d1117 } .text { fill: #e6edf3 } .grid { stroke: #30363d } .roof { stroke: #8b949e; fill: #8b949e }
      .lamina { stroke: #58a6ff; fill: #58a6ff } .onednn { stroke: #f0883e; fill: #f0883e }
    }
    .line { fill: none; stroke-width: 2 } .dashed { stroke-dasharray: 5 4 } .dot { stroke: none }
    .odd { fill: none; stroke-width: 1.5 }
"""


def nice_ceiling(value):
    """The least of 1, 2, 4, 6, 8 times a power of ten that is not below `value`."""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= value)


def panel(x, y, title, rows):
    """One set of axes: N on the horizontal axis, GB/s on the vertical one."""
    rows = sorted(rows, key=lambda row: row.columns)
    top = nice_ceiling(max(row.gbs(name) for row in rows for name, _ in SERIES if row.time[name]))
    low, high = math.log2(SHORTEST), math.log2(LONGEST)

    def across(columns):
        return f"{x + (math.log2(columns) - low) / (high - low) * PANEL_WIDTH:.1f}"

    def at(row, name):
        return f"{across(row.columns)},{y + PANEL_HEIGHT * (1 - row.gbs(name) / top):.1f}"

    out = [f'<text class="text" x="{x}" y="{y - 10}" font-weight="bold">{title}</text>']
    for part in range(5):
        line_y = y + PANEL_HEIGHT * part / 4
        out.append(f'<line class="grid" x1="{x}" x2="{x + PANEL_WIDTH}" y1="{line_y}" y2="{line_y}"/>')
        out.append(f'<text class="text" x="{x - 8}" y="{line_y + 4}" text-anchor="end">{top * (4 - part) / 4:g}</text>')
    for columns in (4**power for power in range(3, 9)):
        out.append(f'<text class="text" x="{across(columns)}" y="{y + PANEL_HEIGHT + 18}" text-anchor="middle">{columns}</text>')
    for name, _ in SERIES:
        points = [(at(row, name), row.columns % 16 == 0) for row in rows if row.time[name]]
        if not points:
            continue
        dashed = " dashed" if name == "roof" else ""
        line = " ".join(point for point, is_multiple in points if is_multiple)
        out.append(f'<polyline class="{name} line{dashed}" points="{line}"/>')
        for point, is_multiple in points if name != "roof" else []:
            point_x, point_y = point.split(",")
            out.append(f'<circle class="{name} {"dot" if is_multiple else "odd"}" cx="{point_x}" cy="{point_y}" r="3.5"/>')
    return out


def picture(rows, dtype, machine):
    """All panels of one type, or None if there are too few sizes to draw a line."""
    members = {key: at_plot_sizes(found) for key, found in groups(rows).items() if key[1] == dtype}
    cases = [case for case in PICTURE_CASES if all(len(members.get((case, dtype, tier), [])) >= 3 for tier in TIERS)]
    if not cases:
        return None
    width = LEFT + 2 * PANEL_WIDTH + GAP_X + 30
    height = TOP + len(cases) * (PANEL_HEIGHT + GAP_Y) + 12
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
           f"<title>GB/s of normalisations in {dtype} over the row length N</title>", f"<style>{STYLE}</style>",
           f'<rect class="ground" width="{width}" height="{height}"/>',
           f'<text class="text" x="{LEFT}" y="24" font-size="16" font-weight="bold">{dtype}: GB/s over the row length N</text>']
    legend_x = LEFT
    for name, label in SERIES:
        dashed = " dashed" if name == "roof" else ""
        out.append(f'<line class="{name} line{dashed}" x1="{legend_x}" x2="{legend_x + 30}" y1="44" y2="44"/>')
        label = peer_of(machine) if name == "onednn" else label
        out.append(f'<text class="text" x="{legend_x + 38}" y="48">{label}</text>')
        legend_x += 160
    out.append(f'<text class="text" x="{legend_x}" y="48">hollow: N % 16 != 0</text>')
    for down, case in enumerate(cases):
        for across, (tier, words) in enumerate(TIERS.items()):
            out += panel(LEFT + across * (PANEL_WIDTH + GAP_X), TOP + down * (PANEL_HEIGHT + GAP_Y), f"{case}, {words}",
                         members[(case, dtype, tier)])
    return "\n".join(out + ["</svg>", ""])


def at_plot_sizes(rows):
    """One row per length, without the single long row."""
    return list({row.columns: row for row in rows if SHORTEST <= row.columns <= LONGEST}.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+")
    parser.add_argument("--update", metavar="FILE.md")
    parser.add_argument("--pictures", metavar="FOLDER")
    arguments = parser.parse_args()
    all_rows, busy, machine = load(arguments.results)
    rows, peer = [row for row in all_rows if row.memory == USUAL_MEMORY], peer_of(machine)
    if not all_rows:
        sys.exit(f"report.py: nothing was measured in peace ({busy} cases while other programs ran)")
    print(f"{machine_text(machine)}\n{len(all_rows)} cases, {busy} left out because other programs ran\n")
    print(as_text(summary(rows, peer)))
    print(f"\nslower than {peer}, or below 85 % of the roofline:\n" + as_text(behind(rows, peer)))
    print("\nprimes and N % 16 != 0, GB/s over the neighbouring multiple's:\n" + as_text(odd_sizes(rows)))
    if len(chosen_well := choices(rows, peer)) > 1:
        print(f"\nschedules by rules and by tuning, time over the best that was found ({searches(rows)}):\n" + as_text(chosen_well))
    if len(elsewhere := memories(all_rows, peer)) > 1:
        print("\ntensors elsewhere in memory, time over the usual:\n" + as_text(elsewhere))
    if arguments.update:
        update(arguments.update, markdown(all_rows, busy, machine))
    if arguments.pictures:
        for dtype in dict.fromkeys(row.type for row in rows):
            if drawing := picture(rows, dtype, machine):
                with open(f"{arguments.pictures}/norms_{dtype}.svg", "w", encoding="utf-8") as file:
                    file.write(drawing)


if __name__ == "__main__":
    main()
