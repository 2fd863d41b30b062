#!/usr/bin/env python3
"""Puts the output of gpu_norms and torch_rows.py into one table: one row per case, with the times of lamina and of the others, and
the ratio to the fastest of the others.

    report.py NORMS.md [TORCH.md]
"""
import re
import sys

ROW = re.compile(r"\| (\S+) \| (\w+) \| (\d+x\d+) \| ([^|]+) \| ([\d.]+) us \| ([\d.]+) \| ([\d.]+) % \|([^|]*)\|")


def rows_of(text):
    """(case, type, rows), name, microseconds, GB/s, per cent of the copy bandwidth, schedule."""
    for match in ROW.finditer(text):
        case, dtype, rows, who, time, rate, share, schedule = (field.strip() for field in match.groups())
        yield (case, dtype, rows), who, float(time), float(rate), float(share), schedule


def table_of(text):
    ours, peers = {}, {}
    for key, who, time, rate, share, schedule in rows_of(text):
        if who == "lamina":
            ours[key] = time, rate, share, schedule
        else:
            peers.setdefault(key, {})[who] = time
    names = list(dict.fromkeys(who for times in peers.values() for who in times))
    head = ["case", "type", "rows", "lamina, us", "GB/s", "of copy bandwidth", *(f"{name}, us" for name in names),
            *(["over the fastest of them"] if names else []), "schedule"]
    lines = [head, ["---"] * len(head)]
    for key, (time, rate, share, schedule) in ours.items():
        times = peers.get(key, {})
        cells = [*key, f"{time:.1f}", f"{rate:.1f}", f"{share:.1f} %", *(f"{times[n]:.1f}" if n in times else "" for n in names)]
        if names:
            cells.append(f"{min(times.values()) / time:.2f}x" if times else "")
        lines.append([*cells, schedule])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    texts = [open(name, encoding="utf-8").read() for name in sys.argv[1:]]
    for text in texts:
        heading = text.split("\n", 1)[0]
        if "copy bandwidth" in heading:
            print(heading + "\n")
    print(table_of("\n".join(texts)))


if __name__ == "__main__":
    main()
