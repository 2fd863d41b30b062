"""Control flow that is known when a model is read: the taken branch of an If, and loops whose steps can be counted, which are
unrolled."""

from __future__ import annotations

from typing import Any

import numpy
import onnx
from onnx import numpy_helper

from lamina.onnx.node import Node, Unfit

_MOST_STEPS = 1024  # of a loop that is unrolled


def expand_control(importer: Any, node: onnx.NodeProto, opset: int, depth: int) -> bool:
    """Adds the nodes of the graphs inside an If, Loop or Scan; returns False for other operators. Raises Unfit if the condition
    or the number of steps depends on data."""
    rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if rule is None:
        return False
    results = rule(importer, Node(importer, node, f"node {node.name!r} ({node.op_type})", opset), opset, depth)
    for name, result in zip(node.output, results):
        if name:
            importer.alias(result, name)
    return True


def _added(importer: Any, graph: onnx.GraphProto, given: list, prefix: str, opset: int, depth: int) -> list:
    """Adds the nodes of a graph whose inputs have these names; returns the names of its outputs. Names that the graph does not
    define are those of the graphs around it."""
    own = {name for inner in graph.node for name in inner.output} | {tensor.name for tensor in graph.initializer}
    names = {name: prefix + name for name in own if name}
    names.update((value.name, outer) for value, outer in zip(graph.input, given))
    for tensor in graph.initializer:
        importer.values[names[tensor.name]] = numpy_helper.to_array(tensor)
    for inner in graph.node:
        importer.add_node(_renamed(inner, names), opset, depth)
    return [names.get(value.name, value.name) for value in graph.output]


def _renamed(node: onnx.NodeProto, names: dict) -> onnx.NodeProto:
    """A copy with these names, also in the graphs inside of it, which may read names of the graphs around them."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for side in (copy.input, copy.output):
        side[:] = [names.get(name, name) for name in side]
    for attribute in copy.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            hidden = {value.name for value in attribute.g.input}
            inner_names = {name: new for name, new in names.items() if name not in hidden}
            nodes = [_renamed(inner, inner_names) for inner in attribute.g.node]
            del attribute.g.node[:]
            attribute.g.node.extend(nodes)
            for value in (*attribute.g.initializer, *attribute.g.output):
                value.name = inner_names.get(value.name, value.name)
    return copy


def _prefix(node: Node) -> str:
    return next(name for name in node.proto.output if name) + "/"


def _if(importer: Any, node: Node, opset: int, depth: int) -> list:
    branch = node.attributes["then_branch" if bool(node.known(0)) else "else_branch"]
    return _added(importer, branch, [], _prefix(node), opset, depth)


def _loop(importer: Any, node: Node, opset: int, depth: int) -> list:
    body, prefix = node.attributes["body"], _prefix(node)
    limit = node.known(0)
    going = node.known(1)
    going = True if going is None else bool(numpy.asarray(going).reshape(-1)[0])
    states, parts, step = list(node.proto.input[2:]), [], 0
    while going and (limit is None or step < int(numpy.asarray(limit).reshape(-1)[0])):
        if step == _MOST_STEPS:
            raise Unfit(f"more than {_MOST_STEPS} steps")
        here = f"{prefix}{step}/"
        importer.values[here + "step"] = numpy.asarray(step, "int64")
        importer.values[here + "goes on"] = numpy.asarray(True)
        condition, *made = _added(importer, body, [here + "step", here + "goes on", *states], here, opset, depth)
        if condition not in importer.values:
            importer.needs_integers([condition])
            raise Unfit("its condition depends on data")
        states, new = made[:len(states)], made[len(states):]
        parts.append(new)
        going, step = bool(numpy.asarray(importer.values[condition]).reshape(-1)[0]), step + 1
    if not parts and len(node.proto.output) > len(states):
        raise Unfit("no step, whose results it collects")
    return states + [_stacked(importer, node, list(column), 0, f"{prefix}{i}") for i, column in enumerate(zip(*parts))]


def _scan(importer: Any, node: Node, opset: int, depth: int) -> list:
    body, prefix, count = node.attributes["body"], _prefix(node), node.attribute("num_scan_inputs", 0)
    inputs = list(node.proto.input)
    states, scanned = inputs[:len(inputs) - count], inputs[len(inputs) - count:]
    results = len(body.output) - len(states)
    axes, backwards, out_axes, out_backwards = (list(node.attribute(f"scan_{what}", None) or [0] * many) for what, many in (
        ("input_axes", count), ("input_directions", count), ("output_axes", results), ("output_directions", results)))
    steps = {_extent(importer, node, name, axis) for name, axis in zip(scanned, axes)}
    if len(steps) != 1:
        raise Unfit(f"inputs of {', '.join(map(str, sorted(steps)))} steps")
    steps, parts = steps.pop(), []
    if steps > _MOST_STEPS:
        raise Unfit(f"{steps} steps, allowed is {_MOST_STEPS}")
    for step in range(steps):
        here = f"{prefix}{step}/"
        entries = [_entry(importer, node, name, steps - 1 - step if back else step, axis, f"{here}scanned {i}")
                   for i, (name, axis, back) in enumerate(zip(scanned, axes, backwards))]
        made = _added(importer, body, [*states, *entries], here, opset, depth)
        states = made[:len(states)]
        parts.append(made[len(states):])
    if not parts:
        raise Unfit("no steps")
    columns = [column[::-1] if back else column for column, back in zip(zip(*parts), out_backwards)]
    return states + [_stacked(importer, node, list(column), axis, f"{prefix}{i}") for i, (column, axis) in enumerate(zip(columns, out_axes))]


def _extent(importer: Any, node: Node, name: str, axis: int) -> int:
    return importer.values[name].shape[axis] if name in importer.values else node.shape(importer.tensor(name, node.where))[axis]


def _entry(importer: Any, node: Node, name: str, place: int, axis: int, known_as: str) -> str:
    """The entry of an axis, without the axis."""
    if name in importer.values:
        importer.values[known_as] = numpy.take(importer.values[name], place, axis)
    else:
        x = importer.tensor(name, node.where)
        shape = node.shape(x)
        axis %= len(shape)
        part = node.op("Slice", [x], starts=[place], ends=[place + 1], axes=[axis])
        importer.tensors[known_as] = node.reshape(part, shape[:axis] + shape[axis + 1:])
    importer.sources[known_as] = importer.sources_of([name])
    return known_as


def _stacked(importer: Any, node: Node, names: list, axis: int, known_as: str) -> str:
    """The results of all steps along a new axis."""
    if all(name in importer.values for name in names):
        importer.values[known_as] = numpy.stack([importer.values[name] for name in names], axis)
    else:
        parts = [importer.tensor(name, node.where) for name in names]
        shape = node.shape(parts[0])
        axis %= len(shape) + 1
        parts = [node.reshape(x, shape[:axis] + [1] + shape[axis:]) for x in parts]
        importer.tensors[known_as] = node.op("Concat", parts, axis=axis) if len(parts) > 1 else parts[0]
    importer.sources[known_as] = importer.sources_of(names)
    return known_as


_RULES = {"If": _if, "Loop": _loop, "Scan": _scan}
OPERATORS = frozenset(_RULES)
