"""Models in which data determine the size of a result, or a value that must be known. Such a model is split: a first model computes
what these operators read, they are computed in NumPy, and a second model reads their results as inputs, whose shapes differ from
call to call."""

from __future__ import annotations

from typing import Callable

import numpy
import onnx
from onnx import helper

from lamina._errors import Error
from lamina.onnx.folding import fold
from lamina.onnx.node import DataSized
from lamina.onnx.scales import names_read
from lamina.onnx.suppression import non_max_suppression


def _non_zero(node: onnx.NodeProto, inputs: list) -> list:
    return [numpy.stack(numpy.nonzero(numpy.atleast_1d(inputs[0]))).astype("int64")]


_BY_NUMPY: dict = {"NonMaxSuppression": lambda node, inputs: [non_max_suppression(node, inputs)], "NonZero": _non_zero}


class Stages:
    """A model as a first model, nodes, and a second model. make(model) returns a model as a function."""

    def __init__(self, model: onnx.ModelProto, cut: DataSized, weights: dict, name: str, make: Callable) -> None:
        self._weights, self._name = weights, name
        self._opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
        self._outputs = [value.name for value in model.graph.output]
        inputs = [value.name for value in model.graph.input if value.name not in weights]
        sorted_nodes = _Sorted(list(model.graph.node), cut, set(weights))
        self._nodes, later = sorted_nodes.cut, sorted_nodes.later
        made = {name for node in sorted_nodes.first for name in node.output if name}
        read = {name for node in later for name in names_read(node)} | set(self._outputs)
        results = [name for node in self._nodes for name in node.output if name]
        crossing = [name for name in dict.fromkeys([*inputs, *made, *results]) if name in read and name not in sorted_nodes.constants]
        needed = [name for node in self._nodes for name in node.input] + [name for name in self._outputs if name in made]
        self._given = [name for name in dict.fromkeys([*crossing, *needed]) if name in made]
        part = _Part(model, name)
        self.first = make(part.model(sorted_nodes.first, inputs, self._given)) if self._given else None
        self.second = make(part.model(sorted_nodes.constants_before(later) + later, crossing, self._outputs)) if later else None

    def __call__(self, given: dict) -> tuple:
        values = {**self._weights, **given}
        if self.first is not None:
            values.update(zip(self._given, self.first({name: given[name] for name in self.first.input_names})))
        for node in self._nodes:
            values.update(zip(node.output, self._computed(node, values)))
        if self.second is not None:
            made = self.second({name: values[name] for name in self.second.input_names})
            values.update(zip(self._outputs, made))
        return tuple(numpy.array(values[name]) if name in self._weights else values[name] for name in self._outputs)

    def _computed(self, node: onnx.NodeProto, values: dict) -> list:
        read = {name: numpy.asarray(values[name]) for name in node.input if name}
        if node.op_type in _BY_NUMPY:
            return _BY_NUMPY[node.op_type](node, [read.get(name) for name in node.input])
        made = fold(node, read, self._opset)
        if made is None:
            raise Error(f"{self._name}: node {node.name or node.output[0]!r} ({node.op_type}) has results that are too large", "unimplemented")
        return made


class _Sorted:
    """The nodes of a model: those that are cut, those that follow from them (`later`), and the others (`first`)."""

    def __init__(self, nodes: list, cut: DataSized, constants: set) -> None:
        dependent = cut.outputs | cut.values
        self.cut, self.first, self.later, self.constants = [], [], [], constants
        for node in nodes:
            read = {name for name in names_read(node) if name}
            if not dependent.isdisjoint(read):
                self.later.append(node)
                dependent.update(node.output)
            elif not cut.outputs.isdisjoint(node.output):
                self.cut.append(node)
            else:
                self.first.append(node)
                if read <= constants:
                    constants.update(node.output)

    def constants_before(self, later: list) -> list:
        """The nodes that compute the constants of these nodes, which both models have."""
        read, chosen = {name for node in later for name in names_read(node)}, []
        for node in reversed(self.first):
            if not read.isdisjoint(node.output) and self.constants.issuperset(node.output):
                chosen.append(node)
                read.update(names_read(node))
        return chosen[::-1]


class _Part:
    """Makes models of some nodes of a model."""

    def __init__(self, model: onnx.ModelProto, name: str) -> None:
        graph = model.graph
        self._model, self._name = model, name
        self._known = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
        self._initializers = {tensor.name: tensor for tensor in graph.initializer}

    def model(self, nodes: list, inputs: list, outputs: list) -> onnx.ModelProto:
        read = {name for node in nodes for name in names_read(node)} | set(outputs)
        graph = helper.make_graph(nodes, self._model.graph.name or "graph", [self._described(name) for name in inputs if name in read],
                                  [self._known.get(name, helper.make_empty_tensor_value_info(name)) for name in outputs],
                                  [tensor for name, tensor in self._initializers.items() if name in read])
        return helper.make_model(graph, opset_imports=self._model.opset_import, functions=self._model.functions, ir_version=self._model.ir_version)

    def _described(self, name: str) -> onnx.ValueInfoProto:
        if name not in self._known:
            raise Error(f"{self._name}: the type of {name!r} is not known, which a part of the model reads behind a result whose size depends "
                        "on data", "unimplemented")
        return self._known[name]
