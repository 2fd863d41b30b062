"""What torch_models.py says about all its rows: means, and a table of Markdown."""
import statistics

RIVALS = ("eager", "inductor")


def better(ms):
    """The time of the better of eager and inductor, as far as measured."""
    return min(ms[who] for who in RIVALS if who in ms)


# name of a peer -> which time a row needs for it, and the time
PEERS = {"eager": ("eager", lambda ms: ms["eager"]), "inductor": ("inductor", lambda ms: ms["inductor"]),
         "the better": ("inductor", better), "eager with oneDNN's products": ("eager_onednn", lambda ms: min(ms["eager"], ms["eager_onednn"]))}


def ratios_of(rows, peer):
    """Model -> the peer's time over lamina's, of the rows that have it."""
    needed, time_of = PEERS[peer]
    return {row["model"]: time_of(row["ms"]) / row["ms"]["lamina"] for row in rows if needed in row["ms"]}


def timed_modes(rows):
    """Mode -> its rows with times."""
    timed = [row for row in rows if "ms" in row]
    return {mode: [row for row in timed if row["mode"] == mode] for mode in dict.fromkeys(row["mode"] for row in timed)}


def means(rows):
    """A line per mode: geometric means and least ratios."""
    lines = []
    for mode, timed in timed_modes(rows).items():
        if len(timed) < 2:
            continue
        texts = []
        for peer in PEERS:
            if ratios := ratios_of(timed, peer):
                least = min(ratios, key=ratios.get)
                texts.append(f"{statistics.geometric_mean(ratios.values()):.2f} of {peer} (least {ratios[least]:.2f}, {least})")
        lines.append(f"{mode}, {len(timed)} models: {'; '.join(texts)}")
    return lines


def table(rows):
    """A table of means, then one per mode, whose first title is the mode: times, ratios, and the part of the bound."""
    return "\n\n".join([table_of_means(rows), *(table_of(mode, timed) for mode, timed in timed_modes(rows).items())])


def table_of_means(rows):
    modes = timed_modes(rows)
    peers = [peer for peer in ("eager", "inductor", "the better") if any(ratios_of(timed, peer) for timed in modes.values())]
    lines = ["| mode | " + " | ".join(f"over {peer}" for peer in peers) + f" | least, over {peers[-1]} |",
             "| --- " * (2 + len(peers)) + "|"]
    for mode, timed in modes.items():
        ratios = {peer: ratios_of(timed, peer) for peer in peers}
        means_of = [f"{statistics.geometric_mean(ratios[peer].values()):.2f}x" if ratios[peer] else "-" for peer in peers]
        last = ratios[peers[-1]] or ratios["eager"]
        least = min(last, key=last.get)
        lines.append(f"| {title_of(mode)} | " + " | ".join(means_of) + f" | {last[least]:.2f}x ({least}) |")
    return "\n".join(lines)


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
