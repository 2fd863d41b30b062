"""RNN, GRU and LSTM, unrolled over the steps of the sequence. The products with the inputs are one product for all steps."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

import numpy

from lamina.onnx.node import Node, Unfit


class Activation(NamedTuple):
    """alpha, beta: the defaults of ONNX; None if the function has no such parameter."""

    apply: Callable  # (node, x, alpha, beta)
    alpha: Optional[float] = None
    beta: Optional[float] = None


def _op(kind: str, alpha: str = "", beta: str = "") -> Callable:
    return lambda node, x, a, b: node.op(kind, [x], **({alpha: a} if alpha else {}), **({beta: b} if beta else {}))


def _affine(node: Node, x: Any, alpha: float, beta: float) -> Any:
    return node.op("Add", [node.op("Multiply", [x, node.scalar(alpha, x)]), node.scalar(beta, x)])


def _scaled_tanh(node: Node, x: Any, alpha: float, beta: float) -> Any:
    inner = node.op("Tanh", [node.op("Multiply", [x, node.scalar(beta, x)])])
    return node.op("Multiply", [inner, node.scalar(alpha, x)])


def _softsign(node: Node, x: Any, alpha: float, beta: float) -> Any:
    return node.op("Divide", [x, node.op("Add", [node.op("Abs", [x]), node.scalar(1, x)])])


def _thresholded_relu(node: Node, x: Any, alpha: float, beta: float) -> Any:
    return node.op("Select", [node.op("Greater", [x, node.scalar(alpha, x)]), x, node.scalar(0, x)])


_ACTIVATIONS = {
    "relu": Activation(_op("ReLU")), "tanh": Activation(_op("Tanh")), "sigmoid": Activation(_op("Sigmoid")), "softplus": Activation(_op("SoftPlus")),
    "leakyrelu": Activation(_op("LeakyReLU", "alpha"), 0.01), "elu": Activation(_op("Elu", "alpha"), 1.0),
    "hardsigmoid": Activation(_op("HardSigmoid", "alpha", "beta"), 0.2, 0.5), "affine": Activation(_affine, 1.0, 0.0),
    "scaledtanh": Activation(_scaled_tanh, 1.0, 1.0), "softsign": Activation(_softsign), "thresholdedrelu": Activation(_thresholded_relu, 1.0),
}


class Cell:
    """The weights of one direction, with their gates along the first axis, and the functions that its steps use."""

    def __init__(self, node: Node, place: int, gates: int, functions: list) -> None:
        self.node, self.hidden, self.functions, self.gates = node, node.shape(node.tensor(2))[-1], functions, gates
        part = lambda position: node.reshape(_entry(node, node.tensor(position), place, 0), node.shape(node.tensor(position))[1:])
        self.weights, self.recurrent = part(1), part(2)
        both = part(3) if node.has(3) else None
        size = gates * self.hidden
        self.bias, self.recurrent_bias = (self.cut(both, 0, size), self.cut(both, size, 2 * size)) if both is not None else (None, None)
        self.peepholes = part(7) if node.has(7) else None
        self.clip = node.attribute("clip", None)

    def cut(self, x: Any, begin: int, end: int) -> Any:
        """Returns entries of the last axis."""
        return self.node.op("Slice", [x], starts=[begin], ends=[end], axes=[-1])

    def gate(self, x: Any, number: int) -> Any:
        return self.cut(x, number * self.hidden, (number + 1) * self.hidden)

    def activate(self, place: int, x: Any) -> Any:
        if self.clip is not None:
            x = self.node.op("Clamp", [x], min=-self.clip, max=self.clip)
        activation, alpha, beta = self.functions[place]
        return activation.apply(self.node, x, alpha, beta)

    def add(self, *terms: Any) -> Any:
        made = None
        for term in terms:
            made = term if made is None else made if term is None else self.node.op("Add", [made, term])
        return made

    def times(self, x: Any, y: Any) -> Any:
        return self.node.op("Multiply", [x, y])

    def one_minus(self, x: Any) -> Any:
        return self.node.op("Subtract", [self.node.scalar(1, x), x])

    def product(self, x: Any, weights: Any) -> Any:
        return self.node.op("MatMul", [x, weights], transpose_b=True)

    def of_rows(self, weights: Any, begin: int, end: int) -> Any:
        return self.node.op("Slice", [weights], starts=[begin * self.hidden], ends=[end * self.hidden], axes=[0])


def _rnn(cell: Cell, given: Any, state: list) -> list:
    return [cell.activate(0, cell.add(given, cell.product(state[0], cell.recurrent), cell.recurrent_bias))]


def _gru(cell: Cell, given: Any, state: list) -> list:
    """The gates are update (z), reset (r) and hidden (h)."""
    before = state[0]
    two = cell.add(cell.product(before, cell.of_rows(cell.recurrent, 0, 2)), cell.cut(given, 0, 2 * cell.hidden),
                   cell.cut(cell.recurrent_bias, 0, 2 * cell.hidden) if cell.recurrent_bias is not None else None)
    two = cell.activate(0, two)
    update, reset = cell.gate(two, 0), cell.gate(two, 1)
    weights = cell.of_rows(cell.recurrent, 2, 3)
    bias = cell.gate(cell.recurrent_bias, 2) if cell.recurrent_bias is not None else None
    if cell.node.attribute("linear_before_reset", 0):
        inner = cell.times(reset, cell.add(cell.product(before, weights), bias))
    else:
        inner = cell.add(cell.product(cell.times(reset, before), weights), bias)
    hidden = cell.activate(1, cell.add(cell.gate(given, 2), inner))
    return [cell.add(cell.times(cell.one_minus(update), hidden), cell.times(update, before))]


def _lstm(cell: Cell, given: Any, state: list) -> list:
    """The gates are input (i), output (o), forget (f) and cell (c); the peepholes are those of i, o and f."""
    before, memory = state
    gates = cell.add(given, cell.product(before, cell.recurrent), cell.recurrent_bias)
    peephole = lambda number, of: cell.times(cell.gate(cell.peepholes, number), of) if cell.peepholes is not None else None
    taken = cell.activate(0, cell.add(cell.gate(gates, 0), peephole(0, memory)))
    kept = cell.one_minus(taken) if cell.node.attribute("input_forget", 0) else cell.activate(0, cell.add(cell.gate(gates, 2), peephole(2, memory)))
    memory = cell.add(cell.times(kept, memory), cell.times(taken, cell.activate(1, cell.gate(gates, 3))))
    shown = cell.activate(0, cell.add(cell.gate(gates, 1), peephole(1, memory)))
    return [cell.times(shown, cell.activate(2, memory)), memory]


def _entry(node: Node, x: Any, place: int, axis: int) -> Any:
    """Returns one entry of an axis, which stays."""
    return node.op("Slice", [x], starts=[place], ends=[place + 1], axes=[axis])


def _functions(node: Node, defaults: list, place: int) -> list:
    """Returns (activation, alpha, beta) of each function of a direction."""
    names = [name.decode() if isinstance(name, bytes) else name for name in node.attribute("activations", None) or defaults * 2]
    parameters = {name: list(node.attribute(f"activation_{name}", None) or []) for name in ("alpha", "beta")}
    found = []
    for name in names:
        activation = _ACTIVATIONS.get(name.lower())
        if activation is None:
            raise Unfit(f"activation {name!r}")
        chosen = [parameters[which].pop(0) if default is not None and parameters[which] else default
                  for which, default in (("alpha", activation.alpha), ("beta", activation.beta))]
        found.append((activation, *chosen))
    return found[place * len(defaults):][:len(defaults)]


def recurrent(gates: int, states: int, defaults: list, step: Callable) -> Callable:
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        node.floating(x)
        if node.attribute("layout", 0):
            x = node.transpose(x, [1, 0, 2])
        directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[node.attribute("direction", "forward")]
        lengths = node.integers(4)
        runs = [_direction(node, x, Cell(node, place, gates, _functions(node, defaults, place)), place, backwards, states, step, lengths)
                for place, backwards in enumerate(directions)]
        return _results(node, runs, states)

    return rule


def _direction(node: Node, x: Any, cell: Cell, place: int, backwards: bool, states: int, step: Callable, lengths: Any) -> tuple:
    """Returns the hidden state after each step, [batch, hidden] each, and the final states."""
    steps, batch, width = node.shape(x)
    all_given = cell.add(cell.product(node.reshape(x, [steps * batch, width]), cell.weights), cell.bias)
    all_given = node.reshape(all_given, [steps, batch, cell.gates * cell.hidden])
    state = [_initial(node, x, cell, place, 5 + i) for i in range(states)]
    shown: list = [None] * steps
    for t in range(steps)[::-1] if backwards else range(steps):
        given = node.reshape(_entry(node, all_given, t, 0), [batch, cell.gates * cell.hidden])
        after = step(cell, given, state)
        shown[t] = after[0]
        if lengths is not None and min(lengths) <= t:  # the states of a shorter sequence stay, and it shows zeros
            lasts = node.array([[t < length] for length in lengths], "boolean")
            lasts = node.expand(lasts, [batch, cell.hidden])
            shown[t] = node.op("Select", [lasts, after[0], node.scalar(0, after[0])])
            after = [node.op("Select", [lasts, new, old]) for new, old in zip(after, state)]
        state = after
    return shown, state


def _initial(node: Node, x: Any, cell: Cell, place: int, position: int) -> Any:
    batch = node.shape(x)[1]
    if not node.has(position):
        return node.array(numpy.zeros([batch, cell.hidden]), x.dtype)
    given = node.tensor(position)
    axis = 1 if node.attribute("layout", 0) else 0
    return node.reshape(_entry(node, given, place, axis), [batch, cell.hidden])


def _results(node: Node, runs: list, states: int) -> list:
    by_batch = bool(node.attribute("layout", 0))
    made: list = []
    if node.wants(0):
        batch, hidden = node.shape(runs[0][0][0])
        shown = [_stacked(node, [node.reshape(x, [1, 1, batch, hidden]) for x in run[0]], 0) for run in runs]
        y = _stacked(node, shown, 1)  # [steps, directions, batch, hidden]
        made.append(node.transpose(y, [2, 0, 1, 3]) if by_batch else y)
    else:
        made.append(None)
    for i in range(states):
        parts = [node.reshape(run[1][i], [1, *node.shape(run[1][i])]) for run in runs]
        last = _stacked(node, parts, 0)
        made.append(node.transpose(last, [1, 0, 2]) if by_batch else last)
    return made


def _stacked(node: Node, parts: list, axis: int) -> Any:
    return node.op("Concat", parts, axis=axis) if len(parts) > 1 else parts[0]


RULES = {"RNN": recurrent(1, 1, ["Tanh"], _rnn), "GRU": recurrent(3, 1, ["Sigmoid", "Tanh"], _gru),
         "LSTM": recurrent(4, 2, ["Sigmoid", "Tanh", "Tanh"], _lstm)}
