"""Replaces linear recurrences, as models write them, by lamina's op before AOTAutograd differentiates them, so that the gradient
is one op, too. The recurrence of a selective state-space model is

    state[i] = factors[i] * state[i - 1] + src[i]

A model has it as torch's associative_scan of (factors, src), which torch.compile writes out as a tree of products and sums over
every second element, or as a loop over the elements.
"""

from __future__ import annotations

import operator
from typing import Any, Iterator, NamedTuple, Optional

import torch
from torch.fx import GraphModule, Node

from lamina.torch.decomposed_norms import writes_between

NAMES = {operator.mul: "mul", torch.mul: "mul", operator.add: "add", torch.add: "add", torch.ops.aten.slice: "slice",
         torch.stack: "stack", torch.flatten: "flatten", torch.cat: "cat", torch.movedim: "movedim", torch._C._nn.pad: "pad"}
COMMUTATIVE = ("mul", "add")
WRAPPERS = ("_add_batch_dim", "_remove_batch_dim")  # of vmap, along the axis of the scan; torch 2.8 moved them
FIRST_OF_PAIRS, SECOND_OF_PAIRS = (0, 0, -1, 2), (0, 1, None, 2)  # dim, start, end, step


class Expressions:
    """A number for each expression of a graph, so that equal expressions have the same one."""

    def __init__(self, module: GraphModule) -> None:
        self._numbers: dict = {}
        self._of_node: dict = {}
        self.nodes: dict = {}  # number -> first node with this expression
        for node in module.graph.nodes:
            self.nodes.setdefault(self._number_of(node), node)

    def of(self, node: Node) -> int:
        return self._of_node[node]

    def call(self, name: Any, *arguments: Any, **named: Any) -> int:
        key = tuple(sorted(arguments)) if name in COMMUTATIVE and all(isinstance(a, tuple) for a in arguments) else arguments
        return self._numbers.setdefault((name, key, tuple(sorted(named.items()))), len(self._numbers))

    def _number_of(self, node: Node) -> int:
        if _is_wrapper(node):
            number = self.of(node.args[0])
        elif node.op == "call_function" and node.target in NAMES:
            number = self.call(NAMES[node.target], *map(self._argument, node.args),
                               **{name: self._argument(value) for name, value in node.kwargs.items()})
        else:
            number = self.call("node", node.name)
        self._of_node[node] = number
        return number

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Node):
            return ("expression", self.of(value))
        return tuple(map(self._argument, value)) if isinstance(value, (list, tuple)) else value


class Recurrence(NamedTuple):
    factors: Node
    src: Node
    dim: int
    states: Node  # the node that it replaces, with the axis first


def keep_recurrences(module: GraphModule) -> None:
    for loop in list(_loops(module)):
        _replace_loop(module, loop)
    while (found := _scan(module)) is not None:
        with module.graph.inserting_before(found.states):
            whole = module.graph.call_function(torch.ops.lamina.linear_recurrence.default, (found.factors, found.src, found.dim, False))
            whole.meta["example_value"] = torch.empty_like(_value(found.src))
            made = module.graph.call_function(torch.movedim, (whole, found.dim, 0))
        made.meta.update(found.states.meta)
        found.states.replace_all_uses_with(made)
        _erase_unused(module)


def _scan(module: GraphModule) -> Optional[Recurrence]:
    """The first recurrence that is written as an associative scan. Those of its inner levels come after it. The scan reads every
    second element of one operand, then of the other."""
    leaves = [node.args[0] for node in module.graph.nodes
              if node.op == "call_function" and node.target is torch.ops.aten.slice and node.args[1:] == FIRST_OF_PAIRS]
    if not leaves:
        return None
    expressions = Expressions(module)
    for factors, src in (pair for a, b in zip(leaves, leaves[1:]) for pair in ((a, b), (b, a))):
        if not _suit(factors, src):
            continue
        states = expressions.nodes.get(_scanned(expressions, expressions.of(factors), expressions.of(src), _value(src))[1])
        if states is not None and not writes_between(_first(module, factors, src), states):
            return _with_axis(factors, src, states)
    return None


def _erase_unused(module: GraphModule) -> None:
    for node in reversed(module.graph.nodes):
        if node.op == "call_function" and (node.target in NAMES or _is_wrapper(node)) and not node.users:
            module.graph.erase_node(node)


def _is_wrapper(node: Node) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") in WRAPPERS


def _first(module: GraphModule, *nodes: Node) -> Node:
    return next(node for node in module.graph.nodes if node in nodes)


def _suit(factors: Node, src: Node, dim: int = 0) -> bool:
    a, b = _value(factors), _value(src)
    return (a is not None and b is not None and a.shape == b.shape and a.dtype == b.dtype and a.is_floating_point()
            and a.device == b.device and a.device.type == "cpu" and isinstance(a.shape[dim], int) and a.shape[dim] > 1)


def _value(node: Node) -> Optional[torch.Tensor]:
    value = node.meta.get("example_value")
    return value if isinstance(value, torch.Tensor) else None


def _with_axis(factors: Node, src: Node, states: Node) -> Recurrence:
    """Without the copy that moves the axis to the front."""
    if all(node.target is torch.movedim and node.args[2:] == (0,) and not node.kwargs for node in (factors, src)):
        if factors.args[1] == src.args[1]:
            return Recurrence(factors.args[0], src.args[0], src.args[1], states)
    return Recurrence(factors, src, 0, states)


def _scanned(e: Expressions, factors: int, src: int, like: torch.Tensor) -> tuple[int, int]:
    """The expressions that torch's associative_scan leaves for the products of factors and for the states."""
    rank = like.dim()

    def of(number: int) -> tuple:
        return ("expression", number)

    def part(value: int, *place: Any) -> int:
        return e.call("slice", of(value), *place)

    def joined(left: tuple, right: tuple) -> tuple:
        product = e.call("mul", of(left[0]), of(right[0]))
        return product, e.call("add", of(e.call("mul", of(right[0]), of(left[1]))), of(right[1]))

    def interleaved(even: int, odd: int, count: int) -> int:
        if count % 2 == 1:
            odd = e.call("pad", of(odd), (0, 0) * (rank - 1) + (0, 1), "constant", None)
        pairs = e.call("flatten", of(e.call("stack", (of(even), of(odd)), dim=1)), start_dim=0, end_dim=1)
        return part(pairs, 0, 0, count) if count % 2 == 1 else pairs

    def scan(values: tuple, count: int) -> tuple:
        if count < 2:
            return values
        pairs = joined(tuple(part(value, *FIRST_OF_PAIRS) for value in values), tuple(part(value, *SECOND_OF_PAIRS) for value in values))
        odd = scan(pairs, count // 2)
        even = tuple(part(value, 0, 0, 1) for value in values)
        if count > 2:
            left = odd if count % 2 == 1 else tuple(part(value, 0, 0, -1) for value in odd)
            rest = joined(left, tuple(part(value, 0, 2, None, 2) for value in values))
            even = tuple(e.call("cat", (of(first), of(others)), dim=0) for first, others in zip(even, rest))
        return tuple(interleaved(*both, count) for both in zip(even, odd))

    return scan((factors, src), like.shape[0])


# ---- loops

class Loop(NamedTuple):
    factors: Node
    src: Node
    dim: int
    states: list  # of each pass


def _loops(module: GraphModule) -> Iterator[Loop]:
    """Recurrences that are written as loops, whose state is 0 at first."""
    for node in module.graph.nodes:
        start = _step_at(node, 0)
        if start is None or not _is_zero(start.before) or not _is_like_element(node, start.src):
            continue
        states, factors, src = [node], start.factors, start.src
        while len(states) < factors.extent:
            following = [user for product in states[-1].users for user in product.users if _follows(user, states[-1], start, len(states))]
            if len(following) != 1:
                break
            states += following
        if len(states) == factors.extent and not writes_between(_first(module, factors.tensor, src.tensor), states[-1]):
            yield Loop(factors.tensor, src.tensor, factors.dim, states)


class Element(NamedTuple):
    """tensor[:, .., i, ..] along dim."""
    tensor: Node
    dim: int

    @property
    def extent(self) -> int:
        return _value(self.tensor).shape[self.dim]


class Step(NamedTuple):
    factors: Element
    before: Node
    src: Element


def _step_at(node: Node, i: int) -> Optional[Step]:
    """The parts of factors[i] * before + src[i]."""
    for product, added in _both_orders(node, "add"):
        src = _element(added, i)
        if src is None:
            continue
        for factor, before in _both_orders(product, "mul"):
            factors = _element(factor, i)
            if factors is not None and factors.dim == src.dim and _suit(factors.tensor, src.tensor, src.dim):
                return Step(factors, before, src)
    return None


def _is_like_element(state: Node, element: Element) -> bool:
    """Whether no type and no extent of the zeros makes the state wider than the elements."""
    value, whole = _value(state), _value(element.tensor)
    return value is not None and value.dtype == whole.dtype and value.shape == whole.select(element.dim, 0).shape


def _follows(node: Node, before: Node, start: Step, i: int) -> bool:
    return _step_at(node, i) == Step(start.factors, before, start.src)


def _both_orders(node: Any, name: str) -> list:
    if not isinstance(node, Node) or node.op != "call_function" or NAMES.get(node.target) != name or node.kwargs:
        return []
    a, b = node.args[:2]
    return [(a, b), (b, a)] if len(node.args) == 2 and isinstance(a, Node) and isinstance(b, Node) else []


def _element(node: Node, i: int) -> Optional[Element]:
    """The tensor and the axis, if the node reads the elements at i along one axis and all along the others."""
    if node.op == "call_function" and node.target is operator.getitem and _value(node.args[0]) is not None:
        place = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
        numbers = [d for d, entry in enumerate(place) if isinstance(entry, int) and not isinstance(entry, bool)]
        if len(numbers) == 1 and all(entry == slice(None) for d, entry in enumerate(place) if d != numbers[0]):
            return _element_at(node.args[0], numbers[0], place[numbers[0]], i)
    if node.target in ("select", torch.select) and len(node.args) == 3 and isinstance(node.args[1], int):
        return _element_at(node.args[0], *node.args[1:], i)
    return None


def _element_at(tensor: Node, dim: int, place: Any, i: int) -> Optional[Element]:
    return Element(tensor, dim % _value(tensor).dim()) if place == i else None


def _is_zero(node: Node) -> bool:
    if node.op == "call_function" and node.target in (torch.zeros, torch.zeros_like):
        return True
    return node.op == "call_method" and node.target == "new_zeros"


def _replace_loop(module: GraphModule, loop: Loop) -> None:
    """Each pass reads its state from the op's result, and what is stacked after the loop is computed for all passes at once."""
    graph = module.graph
    with graph.inserting_before(loop.states[0]):
        whole = graph.call_function(torch.ops.lamina.linear_recurrence.default, (loop.factors, loop.src, loop.dim, False))
    whole.meta["example_value"] = torch.empty_like(_value(loop.src))
    for i, state in enumerate(loop.states):
        with graph.inserting_before(state):
            element = graph.call_function(torch.select, (whole, loop.dim, i))
        element.meta.update(state.meta)
        state.replace_all_uses_with(element)
    for node in [node for node in graph.nodes if node.op == "call_function" and node.target is torch.stack]:
        _compute_at_once(module, node, whole, len(loop.states))


class OfAllPasses(torch.nn.Module):
    """A function of the elements along an axis of each input, for all elements at once."""

    def __init__(self, function: GraphModule, axes: tuple, out_axis: int) -> None:
        super().__init__()
        self.function, self.axes, self.out_axis = function, axes, out_axis

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return torch.vmap(self.function, in_dims=self.axes, out_dims=self.out_axis)(*inputs)


def _compute_at_once(module: GraphModule, stack: Node, states: Node, count: int) -> None:
    """Replaces a stack of `count` results of the same function of the states by that function of all elements."""
    results, axis = stack.args[0], stack.kwargs.get("dim", stack.args[1] if len(stack.args) > 1 else 0)
    if len(results) != count or not all(isinstance(node, Node) and _value(node) is not None for node in results):
        return
    inputs: dict = {}  # of the function, at the first element: Element, or None for what all of them read
    if not all(_is_same(results[0], results[i], i, inputs) for i in range(1, count)) or results[0] in inputs:
        return
    if writes_between(_first(module, *(node if element is None else element.tensor for node, element in inputs.items())), stack):
        return
    function = torch.fx.Graph()
    made = {node: function.placeholder(f"input_{number}") for number, node in enumerate(inputs)}

    def copied(node: Node) -> Node:
        if node not in made:
            made[node] = function.node_copy(node, copied)
        return made[node]

    function.output(copied(results[0]))
    axes = tuple(None if element is None else element.dim for element in inputs.values())
    operands = tuple(node if element is None else element.tensor for node, element in inputs.items())
    at_once = OfAllPasses(GraphModule({}, function), axes, axis % (_value(results[0]).dim() + 1))
    if states not in operands or not _has_shape(at_once, operands, _value(stack)):
        return
    name = f"all_passes_of_{stack.name}"
    module.add_submodule(name, at_once)
    with module.graph.inserting_before(stack):
        whole = module.graph.call_module(name, operands)
    whole.meta.update(stack.meta)
    stack.replace_all_uses_with(whole)


def _has_shape(function: OfAllPasses, operands: tuple, like: Optional[torch.Tensor]) -> bool:
    """Whether the function can be computed at once, tried with tensors without data: vmap refuses what draws random numbers, which
    torch must draw pass by pass."""
    try:
        return like is not None and function(*map(_value, operands)).shape == like.shape
    except Exception:  # of any op in the function
        return False


def _is_same(first: Any, other: Any, i: int, inputs: dict) -> bool:
    """Whether `other` is at the elements i what `first` is at the elements 0; adds the inputs of both."""
    if not isinstance(first, Node) or not isinstance(other, Node):
        if isinstance(first, (list, tuple)) and isinstance(other, (list, tuple)) and len(first) == len(other):
            return all(_is_same(a, b, i, inputs) for a, b in zip(first, other))
        return type(first) is type(other) and first == other
    if first is other:
        inputs.setdefault(first, None)
        return inputs[first] is None and _value(first) is not None
    element = _element(first, 0)
    if element is not None and element == _element(other, i):
        return inputs.setdefault(first, element) == element
    if first.op not in ("call_function", "call_method") or (first.op, first.target) != (other.op, other.target) or first in inputs:
        return False
    return _is_same(first.args, other.args, i, inputs) and _is_same(tuple(first.kwargs.items()), tuple(other.kwargs.items()), i, inputs)
