"""Finds the inner loops of a function in its disassembly, and counts elements, loads, stores and spills per iteration."""
import re


class Instruction:
    LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")

    def __init__(self, match):
        self.address, self.name = int(match[1], 16), match[2]
        self.operands = re.sub(r"\s*(#|<).*", "", match[3]).strip()

    @property
    def target(self):
        """The target address of a jump within the function; None for other instructions."""
        return int(self.operands, 16) if self.name.startswith("j") and self.operands.startswith("0x") else None

    def __str__(self):
        return f"{self.name} {'.elsewhere' if self.target is not None else self.operands}"


def instructions_of(disassembly):
    return [Instruction(match) for match in map(Instruction.LINE.match, disassembly.splitlines()) if match]


class Block:
    """A basic block: its instructions and the addresses of its successors."""

    def __init__(self, instructions, follower):
        self.instructions, self.address = instructions, instructions[0].address
        last = instructions[-1]
        falls_through = follower is not None and not last.name.startswith(("jmp", "ret"))
        self.successors = [last.target] * (last.target is not None) + [follower] * falls_through


def blocks_of(instructions):
    """Returns address -> Block, without unreachable code (padding)."""
    begins = {instructions[0].address} | {each.target for each in instructions if each.target is not None}
    begins |= {after.address for each, after in zip(instructions, instructions[1:]) if each.name.startswith(("j", "ret"))}
    groups = []
    for each in instructions:
        if each.address in begins:
            groups.append([])
        groups[-1].append(each)
    followers = [group[0].address for group in groups[1:]] + [None]
    blocks = {group[0].address: Block(group, follower) for group, follower in zip(groups, followers)}
    reached, to_visit = set(), [instructions[0].address]
    while to_visit:
        if (one := to_visit.pop()) not in reached:
            reached.add(one)
            to_visit += blocks[one].successors
    return {address: block for address, block in blocks.items() if address in reached}


def dominators_of(blocks, entry):
    """Returns address -> addresses of the blocks that dominate it."""
    predecessors = {address: [other for other in blocks if address in blocks[other].successors] for address in blocks}
    found = {address: set(blocks) for address in blocks}
    found[entry] = {entry}
    changed = True
    while changed:
        changed = False
        for address in blocks:
            before = [found[other] for other in predecessors[address]]
            now = {address} | (set.intersection(*before) if before and address != entry else set())
            changed = changed or now != found[address]
            found[address] = now
    return found, predecessors


def inner_loops(instructions):
    """Yields (header, blocks of the body), by address, for each innermost natural loop."""
    blocks = blocks_of(instructions)
    dominators, predecessors = dominators_of(blocks, instructions[0].address)
    bodies = {}
    for address, block in blocks.items():
        for header in set(block.successors) & dominators[address]:
            body, reached = bodies.setdefault(header, {header}), [address]
            while reached:
                if (one := reached.pop()) not in body:
                    body.add(one)
                    reached += predecessors[one]
    for header, body in sorted(bodies.items()):
        if not any(other in body for other in bodies if other != header):
            yield header, {address: blocks[address] for address in body}


def ways_through(header, body):
    """Returns the instructions of the shortest and the longest iteration, or of the only one."""
    def ways(choose):
        known = {}

        def rest(address):
            if address not in known:
                block = body[address]
                tails = [[] if after == header else rest(after) for after in block.successors if after in body]
                known[address] = block.instructions + choose(tails, key=len)
            return known[address]
        return rest(header)
    shortest, longest = ways(min), ways(max)
    return {"": longest} if len(shortest) == len(longest) else {"shortest": shortest, "longest": longest}


def steps_of(loop):
    """Returns the constant step per iteration of each register that has one."""
    value = {}  # register -> (register at the start of the loop, offset from it)

    def now(register):
        return value.get(register, (register, 0))

    for each in loop:
        operands = each.operands.split(", ")
        destination = operands[-1].lstrip("%")
        moved = re.fullmatch(r"(-?(?:0x)?[0-9a-f]*)\(%(\w+)\), %\w+", each.operands)
        constant = re.fullmatch(r"\$(-?(?:0x)?[0-9a-f]+), %\w+", each.operands)
        if each.name == "leaq" and moved:
            register, distance = now(moved[2])
            value[destination] = (register, distance + int(moved[1] or "0", 0))
        elif each.name == "movq" and re.fullmatch(r"%\w+, %\w+", each.operands):
            value[destination] = now(operands[0].lstrip("%"))
        elif each.name in ("addq", "subq") and constant:
            register, distance = now(destination)
            value[destination] = (register, distance + int(constant[1], 0) * (1 if each.name == "addq" else -1))
        elif each.name in ("incq", "decq"):
            register, distance = now(destination)
            value[destination] = (register, distance + (1 if each.name == "incq" else -1))
        elif not each.name.startswith(("cmp", "test", "j", "prefetch")):
            value[destination] = ("", 0)
    return {register: distance for register, (origin, distance) in value.items() if origin == register and distance}


class Loop:
    """One iteration of an inner loop. Walks count elements in the index register of their accesses."""
    ACCESS = re.compile(r"\(%\w+,%(\w+)(?:,\d)?\)")

    def __init__(self, instructions, way):
        self.instructions, self.way = instructions, way
        names = " ".join(each.operands for each in instructions)
        self.width = 16 if "%zmm" in names else 8
        steps = steps_of(instructions)
        indices = [match[1] for each in instructions if each.name.startswith("v") for match in [self.ACCESS.search(each.operands)]
                   if match and match[1] in steps]
        self.elements = steps[max(indices, key=indices.count)] if indices else 0
        self.is_walk = self.elements >= self.width and ("%zmm" in names or "%ymm" in names)
        memory = [each for each in instructions
                  if each.name.startswith("v") and "(" in each.operands and "(%rip)" not in each.operands]
        spills = [each for each in memory if "(%rsp)" in each.operands or "(%rbp)" in each.operands]
        touches = [each for each in memory if each not in spills]
        writes = [each for each in touches if "(" in re.split(r", (?![^(]*\))", each.operands)[-1]]
        self.loads, self.stores, self.spills = len(touches) - len(writes), len(writes), len(spills)
        self.streams = any(each.name.startswith("vmovnt") for each in writes)

    @property
    def vectors(self):
        return self.elements / self.width

    def text(self):
        """Instructions per vector: loads, stores, spills, all."""
        counts = [(self.loads, "loads"), (self.stores, "stores past the caches" if self.streams else "stores"),
                  (self.spills, "spills")]
        parts = [f"{count / self.vectors:.3g} {name}" for count, name in counts if count]
        return ", ".join(parts + [f"{len(self.instructions) / self.vectors:.3g} in all"])


def walks_in(instructions):
    """Yields each inner loop that walks along a row: its iteration, or the shortest and the longest one if branches make them
    differ."""
    for header, body in inner_loops(instructions):
        ways = [Loop(way, name) for name, way in ways_through(header, body).items()]
        if all(loop.is_walk for loop in ways):
            yield ways
