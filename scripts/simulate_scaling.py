#!/usr/bin/env python3
"""Models how lamina's division of work scales on machines with more cores: a simulation, not a measurement.

    simulate_scaling.py [--costs FILE.json] [--pessimist] [--update FILE.md]

Simulates threads, counters, barriers and memory event by event. benchmarks/scaling_costs measured the costs of a row, an
increment and a cache line transfer on two cores (--costs reads its output); the rest are assumptions in the class Machine.
--pessimist doubles the cost of line transfers beyond one last-level cache. --update writes the tables between the lines `<!--
simulated -->` and `<!-- end of simulated -->` of a file.
"""
import argparse
import heapq
import json
import os
import sys
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from report import as_markdown, as_text

COSTS = os.path.join(ROOT, "benchmarks", "scaling_costs.json")
BLOCK_ROWS = 64  # rows per partial column sum: kColumnBlockRows, which determines the result's bits
COLUMN_UNIT = 64   # columns that a thread combines at a time: kColumnUnit
BUSY = 0.03  # share of time above which the measured costs are rejected: other programs were running
SLICE_NS = 3e6  # time slice of another busy program
LINES_IN_FLIGHT = 8  # outstanding lines of a core that reads partial sums written by another core


@dataclass
class Machine:
    """Assumptions, except for the hop within a cache. Bandwidths are in GB/s, that is, bytes per nanosecond."""
    name: str
    cores: int
    sockets: int
    cores_a_cache: int = 8  # cores that share a last-level cache
    socket_bandwidth: float = 300  # twelve channels of DDR5-4800, at two thirds
    link_bandwidth: float = 120   # between two sockets, each way
    beyond_cache: float = 4  # cost of a hop to another last-level cache in the socket, relative to one within
    beyond_socket: float = 8  # cost of a hop to the other socket, relative to one within
    remote: float = 0.6  # a core's bandwidth to the other socket's memory, relative to its own

    def socket_of(self, core):
        return core * self.sockets // self.cores

    def hop(self, a, b, costs):
        """Returns the nanoseconds to transfer a line from core a to core b."""
        if a == b:
            return costs["increment_ns"]
        if self.socket_of(a) != self.socket_of(b):
            return costs["handover_ns"] * self.beyond_socket
        if a // self.cores_a_cache != b // self.cores_a_cache:
            return costs["handover_ns"] * self.beyond_cache
        return costs["handover_ns"]


TWO = Machine("2 cores", 2, 1)
MACHINES = [Machine("8 cores", 8, 1, socket_bandwidth=60), Machine("64 cores", 64, 1), Machine("192 cores, 2 sockets", 192, 2)]


class Counter:
    """An atomic counter: an increment waits for earlier increments, and for the transfer of the line from the previous core.
    """

    def __init__(self, machine, costs, begin, end, core=0):
        self.machine, self.costs, self.next, self.end = machine, costs, begin, end
        self.free_at, self.core = 0.0, core

    def take(self, core, now):
        """Returns (time of completion, taken index or None)."""
        self.free_at = max(now, self.free_at) + self.machine.hop(self.core, core, self.costs)
        self.core = core
        taken = self.next if self.next < self.end else None
        self.next += 1
        return self.free_at, taken


# ---- memory

class Memory:
    """The cost of a byte for a core, by the location of its page. Assumes that all threads are working, as in the middle of a
    call."""

    def __init__(self, machine, kernel, placement, crosses):
        # crosses: the share of a socket's reads that go to the other socket.
        self.machine, self.placement = machine, placement
        self.core_rate = kernel["bytes_a_row"] / kernel["ns_from_memory"]
        a_socket = machine.cores / machine.sockets
        one_home = placement == "one thread" and machine.sockets == 2
        readers_of_home = machine.cores if one_home else a_socket
        crossing = a_socket if one_home else a_socket * crosses
        self.of_home = machine.socket_bandwidth / readers_of_home
        self.of_link = machine.link_bandwidth / crossing if crossing else float("inf")

    def home(self, part):
        """Returns the socket of a page at `part` (0 to 1) of the tensors."""
        if self.machine.sockets == 1 or self.placement == "one thread":
            return 0
        return int(part * 4096) % 2 if self.placement == "interleaved" else int(part * 2)

    def nanoseconds(self, core, part, bytes_moved):
        if self.home(part) == self.machine.socket_of(core):
            return bytes_moved / min(self.core_rate, self.of_home)
        return bytes_moved / min(self.core_rate * self.machine.remote, self.of_home, self.of_link)


# ---- one call

@dataclass
class Call:
    """Rows in chunks; `way` is static, counter, counter a socket or counter a cache."""
    machine: Machine
    costs: dict
    kernel: dict
    rows: int
    chunk: int
    way: str = "counter"
    where: str = "memory"  # or "cache"
    placement: str = "static"  # how the pages were first touched: static, one thread, interleaved
    late: float = 0  # nanoseconds by which one thread starts late
    optional: bool = False  # a call waits only for chunks that were taken, not for late threads

    def chunks(self):
        return -(-self.rows // self.chunk)

    def chunk_time(self, core, index, memory):
        rows = min(self.chunk, self.rows - index * self.chunk)
        if self.where == "cache":
            return rows * self.kernel["ns_in_cache"]
        return memory.nanoseconds(core, (index + 0.5) / self.chunks(), rows * self.kernel["bytes_a_row"])

    def crosses(self):
        mixes = self.machine.sockets == 2 and (self.way == "counter" or self.placement == "interleaved")
        return 0.5 if mixes else 0

    def groups(self):
        """Returns the number of groups of cores, each with its own counter."""
        machine = self.machine
        return {"counter a socket": machine.sockets, "counter a cache": -(-machine.cores // machine.cores_a_cache)}.get(self.way, 1)

    def sources(self):
        """Returns, per core, the counters from which it takes chunks: its group's, then the others' in a ring."""
        count, groups, cores = self.chunks(), self.groups(), self.machine.cores
        counters = [Counter(self.machine, self.costs, count * g // groups, count * (g + 1) // groups, -(-cores * g // groups))
                    for g in range(groups)]
        own = [core * groups // cores for core in range(cores)]
        return [counters[group:] + counters[:group] for group in own]

    def ends(self):
        """Returns when each core finishes its last chunk, and (end, core) by chunk."""
        machine, memory = self.machine, Memory(self.machine, self.kernel, self.placement, self.crosses())
        begins = [machine.hop(0, core, self.costs) + (self.late if core == machine.cores - 1 else 0)
                  for core in range(machine.cores)]
        ends, by_chunk = list(begins), {}
        if self.way == "static":
            for core in range(machine.cores):
                for index in range(self.chunks() * core // machine.cores, self.chunks() * (core + 1) // machine.cores):
                    ends[core] += self.chunk_time(core, index, memory)
                    by_chunk[index] = (ends[core], core)
            return ends, by_chunk
        sources = self.sources()
        waiting = [(begin, core, 0) for core, begin in enumerate(begins)]
        heapq.heapify(waiting)
        while waiting:
            now, core, source = heapq.heappop(waiting)
            now, index = sources[core][source].take(core, now)
            if index is not None:
                ends[core] = now + self.chunk_time(core, index, memory)
                by_chunk[index] = (ends[core], core)
                heapq.heappush(waiting, (ends[core], core, source))
            elif source + 1 < len(sources[core]):
                heapq.heappush(waiting, (now, core, source + 1))
            else:
                ends[core] = max(ends[core], now)
        return ends, by_chunk

    def barrier(self, arrivals):
        """A barrier: threads increment one counter, and the last one notifies the caller."""
        counter = Counter(self.machine, self.costs, 0, len(arrivals))
        for now, core in sorted(arrivals):
            counter.take(core, now)
        return counter.free_at + self.machine.hop(counter.core, 0, self.costs)

    def time(self):
        ends, by_chunk = self.ends()
        arrivals = list(by_chunk.values()) if self.optional else [(end, core) for core, end in enumerate(ends)]
        return self.barrier(arrivals) + overhead(self.costs)

    def alone(self):
        """Returns the time on one core, without threads."""
        a_row = self.kernel["ns_in_cache"] if self.where == "cache" else self.kernel["ns_from_memory"]
        return self.rows * a_row

    def best(self):
        """Returns the largest speed-up that cores and bandwidth allow."""
        by_cores = self.machine.cores
        if self.where == "cache":
            return by_cores
        rate = self.kernel["bytes_a_row"] / self.kernel["ns_from_memory"]
        return min(by_cores, self.machine.socket_bandwidth * self.machine.sockets / rate)


def overhead(costs):
    """Returns the measured time of an empty region of two threads beyond the model's hops and barrier."""
    empty = Call(TWO, costs, {"bytes_a_row": 1, "ns_from_memory": 1, "ns_in_cache": 0}, 0, 1, "static", "cache")
    return max(0.0, costs["region_of_two_ns"] - empty.barrier([(end, core) for core, end in enumerate(empty.ends()[0])]))


# ---- column sums

def combined_by_columns(call, columns, begin, sums=2):
    """Returns the time of lamina's method: after a barrier, units of columns are divided statically, and each thread sums its
    columns over all blocks."""
    units, blocks = -(-columns // COLUMN_UNIT), call.chunks()
    busiest = -(-units // call.machine.cores)
    lines = COLUMN_UNIT * 4 / 64
    from_far = lines * call.machine.hop(0, call.machine.cores - 1, call.costs) / LINES_IN_FLIGHT
    work = busiest * sums * blocks * (call.costs["partial_sums_ns"] + from_far)
    return call.barrier([(begin + work * (core < units), core) for core in range(call.machine.cores)])


def combined_by_pairs(call, columns, by_chunk, sums=2):
    """Returns the time without a barrier: the thread that finishes the second of two siblings adds all their columns, up to
    the root."""
    level = [by_chunk[index] for index in sorted(by_chunk)]
    while len(level) > 1:
        above = []
        for left, right in zip(level[::2], level[1::2]):
            (end, core), (_, other) = max(left, right), min(left, right)
            lines = COLUMN_UNIT * 8 / 64
            a_unit = call.costs["partial_sums_ns"] + lines * call.machine.hop(other, core, call.costs) / LINES_IN_FLIGHT
            above.append((end + -(-columns // COLUMN_UNIT) * sums * a_unit, core))
        level = above + level[len(level) // 2 * 2:]
    return level[0][0] + call.machine.hop(level[0][1], 0, call.costs)


# ---- tables

def factor(value):
    return f"{value:.0f}x" if value >= 20 else f"{value:.1f}x"


def chunk_table(costs, kernels):
    """A table of speed-ups over one core, and their share of the possible speed-up."""
    chunks = [1, 4, 16, 64]
    lines = [["kernel, data", "machine", "at most", "static", *(f"counter, {chunk} rows" for chunk in chunks),
              "a counter a cache, 16 rows"]]
    for kernel, rows, where in [(kernels[0], 4096, "cache"), (kernels[0], 65536, "memory"), (kernels[2], 4096, "cache")]:
        for machine in MACHINES:
            cells = [Call(machine, costs, kernel, rows, 1, "static", where)]
            cells += [Call(machine, costs, kernel, rows, chunk, "counter", where) for chunk in chunks]
            cells.append(Call(machine, costs, kernel, rows, 16, "counter a cache", where))
            name = f"{kernel['case']} {kernel['type']} {rows}x{kernel['columns']}, {where}"
            lines.append([name, machine.name, factor(cells[0].best()), *(factor(call.alone() / call.time()) for call in cells)])
    return lines


def check_table(costs, kernels):
    """A table that compares the model with the measured machine."""
    lines = [["kernel, 128 rows in cache", "two threads, measured", "simulated"]]
    for kernel in kernels:
        call = Call(TWO, costs, kernel, 128, 1, "static", "cache")
        lines.append([f"{kernel['case']} {kernel['type']}", f"{128e-3 * kernel['ns_in_cache_two_threads']:.1f} us",
                      f"{call.time() / 1000:.1f} us"])
    return lines


def touch_table(costs, kernels):
    machine, kernel, rows = MACHINES[-1], kernels[0], 65536
    ways = ("static", "counter", "counter a socket", "counter a cache")
    lines = [["pages first touched", "static", "one counter", "a counter a socket", "a counter a cache"]]
    places = [("static", "by the thread whose rows they are"), ("interleaved", "in turns"), ("one thread", "by one thread")]
    for placement, words in places:
        calls = [Call(machine, costs, kernel, rows, 16, way, "memory", placement) for way in ways]
        lines.append([words, *(factor(call.alone() / call.time()) for call in calls)])
    return lines


def column_table(costs, kernels):
    kernel = kernels[1]
    lines = [["rows", "machine", "blocks", "blocks alone", "with sums by columns", "with sums by pairs"]]
    for rows in (4096, 65536):
        for machine in MACHINES:
            call = Call(machine, costs, kernel, rows, BLOCK_ROWS, "counter", "cache" if rows == 4096 else "memory")
            ends, by_chunk = call.ends()
            first = call.barrier([(end, core) for core, end in enumerate(ends)])
            ways = [first, combined_by_columns(call, kernel["columns"], first),
                    combined_by_pairs(call, kernel["columns"], by_chunk)]
            lines.append([f"{rows}x{kernel['columns']}", machine.name, str(call.chunks()),
                          *(factor(call.alone() / end) for end in ways)])
    return lines


def oversubscription_table(costs, kernels):
    """A table for one core that another program occupies when the call starts."""
    kernel = kernels[0]
    lines = [["machine", "alone", "static", "counter, the call waits for all threads", "counter, workers are optional",
              "a counter a cache, workers are optional"]]
    for machine in MACHINES:
        def us(**given):
            return f"{Call(machine, costs, kernel, 4096, 16, where='cache', **given).time() / 1000:.0f} us"
        lines.append([machine.name, us(), us(way="static", late=SLICE_NS), us(late=SLICE_NS), us(late=SLICE_NS, optional=True),
                      us(way="counter a cache", late=SLICE_NS, optional=True)])
    return lines


def measured_table(measured):
    costs = measured["costs"]
    lines = [["what", "ns"]]
    for key, words in [("increment_ns", "an atomic increment, alone"),
                       ("increment_of_two_ns", "the same where two cores compete, each"),
                       ("handover_ns", "a line from one core to the other"),
                       ("region_of_two_ns", "an OpenMP region of two threads, empty"),
                       ("partial_sums_ns", "64 partial column sums of a block added to others")]:
        lines.append([words, f"{costs[key]:.1f}"])
    for kernel in costs["kernels"]:
        name = f"{kernel['case']} {kernel['type']}, a row of {kernel['columns']}"
        lines.append([f"{name}: in cache, one core; two together",
                      f"{kernel['ns_in_cache']:.0f}; {kernel['ns_in_cache_two_threads']:.0f}"])
        lines.append([f"{name}: from memory, one core; two together",
                      f"{kernel['ns_from_memory']:.0f}; {kernel['ns_from_memory_two_threads']:.0f}"])
    return lines


def tables(measured):
    costs = measured["costs"]
    kernels = costs["kernels"]
    return [("Measured, on two cores", measured_table(measured)),
            ("The model on the machine that was measured", check_table(costs, kernels)),
            ("Chunks and the counter: speed-up over one core", chunk_table(costs, kernels)),
            (f"First touch: {MACHINES[-1].name}, {kernels[0]['case']} {kernels[0]['type']} 65536x768 from memory, 16 rows a chunk",
             touch_table(costs, kernels)),
            (f"Column sums: {kernels[1]['case']} {kernels[1]['type']}, speed-up over one core that walks the rows",
             column_table(costs, kernels)),
            ("Oversubscription: LayerNorm f32 4096x768 in cache, one core is lost for 3 ms", oversubscription_table(costs, kernels))]


def update(path, text):
    begin, end = "<!-- simulated -->\n", "\n<!-- end of simulated -->"
    with open(path, encoding="utf-8") as file:
        content = file.read()
    if begin not in content or end not in content:
        sys.exit(f"simulate_scaling.py: {path} lacks the line {begin.strip()} or {end.strip()}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(content.split(begin)[0] + begin + text + end + content.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--costs", metavar="FILE.json", default=COSTS)
    parser.add_argument("--pessimist", action="store_true")
    parser.add_argument("--update", metavar="FILE.md")
    arguments = parser.parse_args()
    with open(arguments.costs, encoding="utf-8") as file:
        measured = json.load(file)
    if measured["others"] > BUSY:
        print(f"warning: {arguments.costs} was measured while other programs took {100 * measured['others']:.0f} % of the machine",
              file=sys.stderr)
    if arguments.pessimist:
        for machine in MACHINES:
            machine.beyond_cache *= 2
            machine.beyond_socket *= 2
    found = tables(measured)
    print("\n\n".join(f"{title}\n{as_text(lines)}" for title, lines in found))
    if arguments.update:
        update(arguments.update, "\n\n".join(f"### {title}\n\n{as_markdown(lines)}" for title, lines in found))


if __name__ == "__main__":
    main()
