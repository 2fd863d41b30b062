"""Sequences and optional values. They exist only while the model is read: a sequence is a list of names of tensors. Positions in it
must be known."""

from __future__ import annotations

from typing import Any, Optional

import numpy
import onnx

from lamina.onnx.node import Node, Unfit


def expand_sequence(importer: Any, node: onnx.NodeProto, opset: int) -> bool:
    """Gives the outputs of an operator on sequences or optional values; returns False for other operators."""
    rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if rule is None or (node.op_type == "Identity" and node.input[0] not in importer.sequences):
        return False
    made = rule(Node(importer, node, f"node {node.name!r} ({node.op_type}, opset {opset})", opset))
    if isinstance(made, str):
        importer.alias(made, node.output[0])
    else:
        importer.sequences[node.output[0]] = made
        importer.sources[node.output[0]] = importer.sources_of(made or ())
    return True


def _elements(node: Node, position: int = 0) -> list:
    name = node.proto.input[position]
    names = node.importer.sequences.get(name)
    if names is None:
        raise Unfit(f"input {position} {name!r} is not a sequence")
    return names


def _position(node: Node, position: int, count: int, default: int) -> int:
    given = node.known(position)
    place = default if given is None else int(numpy.asarray(given).reshape(-1)[0])
    if not -count <= place < max(count, 1):
        raise Unfit(f"position {place}, allowed is {-count}..{count - 1}")
    return place % max(count, 1)


def _insert(node: Node) -> list:
    names = list(_elements(node))
    names.insert(_position(node, 2, len(names) + 1, -1), node.proto.input[1])
    return names


def _erase(node: Node) -> list:
    names = list(_elements(node))
    del names[_position(node, 1, len(names), -1)]
    return names


def _at(node: Node) -> str:
    names = _elements(node)
    return names[_position(node, 1, len(names), -1)]


def _named(node: Node, what: str, made: Any) -> str:
    """Names a tensor or a known value that a rule has made."""
    name = f"{node.proto.output[0]}/{what}"
    (node.importer.values if isinstance(made, numpy.ndarray) else node.importer.tensors)[name] = made
    node.importer.sources[name] = node.importer.sources_of(node.proto.input)
    return name


def _length(node: Node) -> str:
    return _named(node, "length", numpy.asarray(len(_elements(node)), "int64"))


def _split(node: Node) -> list:
    x, keeps = node.tensor(0), bool(node.attribute("keepdims", 1))
    axis, shape = node.axis(x), node.shape(x)
    given = node.known(1)
    sizes = [1] * shape[axis] if given is None else [int(v) for v in numpy.atleast_1d(given)]
    if given is not None and numpy.ndim(given) == 0:  # equal parts, of which the last may be shorter
        sizes = [min(sizes[0], shape[axis] - first) for first in range(0, shape[axis], sizes[0])]
    bounds = numpy.cumsum([0, *sizes])
    if bounds[-1] != shape[axis]:
        raise Unfit(f"parts of {sizes} along {shape[axis]} elements")
    names = []
    for i, (first, last) in enumerate(zip(bounds, bounds[1:])):
        part = node.op("Slice", [x], starts=[int(first)], ends=[int(last)], axes=[axis])
        names.append(_named(node, str(i), part if keeps or given is not None else node.reshape(part, shape[:axis] + shape[axis + 1:])))
    return names


def _concat(node: Node) -> str:
    names, axis, is_new = _elements(node), node.attribute("axis", 0), bool(node.attribute("new_axis", 0))
    if not names:
        raise Unfit("a sequence without elements")
    values = node.importer.values
    if all(name in values for name in names):
        return _named(node, "joined", (numpy.stack if is_new else numpy.concatenate)([values[name] for name in names], axis))
    parts = [node.importer.tensor(name, node.where) for name in names]
    if is_new:
        shape = node.shape(parts[0])
        axis %= len(shape) + 1
        parts = [node.reshape(part, shape[:axis] + [1] + shape[axis:]) for part in parts]
    return _named(node, "joined", node.op("Concat", parts, axis=axis) if len(parts) > 1 else node.copy(parts[0]))


def _is_absent(node: Node) -> bool:
    return not node.has(0) or node.importer.sequences.get(node.proto.input[0], ()) is None


def _optional(node: Node) -> Optional[Any]:
    return node.proto.input[0] if node.has(0) else None


def _element(node: Node) -> str:
    if _is_absent(node):
        raise Unfit("an optional value that is absent")
    return node.proto.input[0]


_RULES = {
    "SequenceConstruct": lambda node: list(node.proto.input), "SequenceEmpty": lambda node: [], "SequenceInsert": _insert, "SequenceErase": _erase,
    "SequenceAt": _at, "SequenceLength": _length, "SplitToSequence": _split, "ConcatFromSequence": _concat, "Identity": lambda node: node.proto.input[0],
    "Optional": _optional, "OptionalGetElement": _element,
    "OptionalHasElement": lambda node: _named(node, "has element", numpy.asarray(not _is_absent(node))),
}
OPERATORS = frozenset(_RULES) - {"Identity"}
