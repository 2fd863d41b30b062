"""Converts a model's nodes to a lamina graph and compiles it."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional

import numpy
import onnx
import onnx.defs
from onnx import helper

from lamina._errors import Error
from lamina.graph import Graph
from lamina.onnx import types
from lamina.onnx.control import expand_control
from lamina.onnx.folding import fold
from lamina.onnx.node import DataSized, NeedsValue, Node, NotKnown, Unfit
from lamina.onnx.refusals import Refusals, Refused
from lamina.onnx.scales import fold_scales, names_read
from lamina.onnx.sequences import expand_sequence
from lamina.onnx.table import RULES

_DEEPEST = 6  # maximum nesting of functions


class Importer:
    """Reads one model for given values of its static inputs, and for given forms (inputs.py) of its inputs."""

    def __init__(self, model: onnx.ModelProto, name: str, weights: dict, static: dict, forms: dict) -> None:
        """weights: the arrays of the model's initializers, which are not copied."""
        self.model, self.name, self.forms = model, name, forms
        self.opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
        self.opset = self.opsets.pop("", 1)
        self.has_shapes = all(value.name in {**weights, **static, **forms} for value in model.graph.input)
        self.graph = Graph()
        self.tensors: dict[str, Any] = {}
        self.sequences: dict[str, Optional[list]] = {}  # the names of the elements; None for an optional value that is absent
        self.packed: dict[str, Any] = {}  # constants of s4 and u4
        self.weights: dict[int, numpy.ndarray] = {}  # by tensor id
        # Known values. Callers may change arrays that they have passed.
        self.values: dict[str, numpy.ndarray] = {**weights, **{name: numpy.array(value) for name, value in static.items()}}
        self.held: dict[int, int] = {}  # by tensor id: the model's type of tensors whose type lamina lacks
        self.open: set = set()  # names of inputs whose values are unknown
        self.sources: dict[str, set] = {}  # the unknown inputs from which each tensor is computed
        self.readers: dict[str, list] = {}  # nodes of the model's graph by what they read; none for its outputs
        self.refusals = Refusals()

    def run(self) -> Callable:
        """Returns a function of a dict of inputs by name."""
        return self._compile(self.read(), [value.name for value in self.model.graph.output])

    def read(self) -> list:
        """Converts the model to the graph. Returns the names of the inputs that are tensors of the graph."""
        graph = self.model.graph
        inputs = [value for given in graph.input for value in self._elements_of(given) if value.name not in self.values]
        self.open = {value.name for value in inputs}
        self.sources = {name: {name} for name in self.open}
        for value in inputs:
            self.refusals.attempt([], [value.name], functools.partial(self._add_input, value))
        outputs = [value.name for value in graph.output]
        nodes = fold_scales([node for node in graph.node if not self._is_known(node)], self.values, set(outputs))
        for node in nodes:
            for name in names_read(node):
                self.readers.setdefault(name, []).append(node)
        self.readers.update({name: [] for name in outputs})
        for node in nodes:
            self.refusals.attempt(names_read(node), node.output, functools.partial(self.add_node, node, self.opset, 0))
        self.refusals.raise_all(self.name)
        return [value.name for value in inputs]

    def _elements_of(self, value: onnx.ValueInfoProto) -> list:
        """Returns the input itself, or the tensors of a sequence or an optional value."""
        if value.name not in self.forms:
            return [value]
        form = self.forms[value.name]
        made = form.tensors(value)
        if form.count is not None or not made:
            self.sequences[value.name] = [each.name for each in made] if form.count is not None else None
        return made

    def alias(self, known_as: str, name: str) -> None:
        """Gives a tensor, a known value or a sequence another name."""
        for table in (self.values, self.tensors, self.sequences):
            if known_as in table:
                table[name] = table[known_as]
        self.sources[name] = self.sources_of([known_as])

    def _is_known(self, node: onnx.NodeProto) -> bool:
        """Whether the node's outputs are known, without the ops before it."""
        if node.op_type == "Constant":
            self.refusals.attempt([], node.output, functools.partial(self.add_node, node, self.opset, 0))
            return True
        try:
            return self._is_folded(node, self.opset)
        except Unfit:
            return False  # its rule decides, and names the reason

    # ---- tensors

    def _add_input(self, value: onnx.ValueInfoProto) -> None:
        kind = value.type.tensor_type
        dtype = types.held_in(kind.elem_type) if value.type.HasField("tensor_type") else None
        if dtype is None:
            raise Refused("input", repr(value.name), f": {_type_name(value.type)}, allowed is a tensor of {types.names()}")
        shape = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim] if kind.HasField("shape") else None
        self.tensors[value.name] = self.as_held(self.graph.input(shape, dtype), kind.elem_type)

    def as_held(self, tensor: Any, number: int) -> Any:
        """Notes the tensor's type in the model, if lamina lacks it; returns the tensor."""
        if not types.is_own(number):
            self.held[tensor.id] = number
        return tensor

    def number_of(self, tensor: Any) -> int:
        """Returns the number of a tensor's type in the model."""
        return self.held[tensor.id] if tensor.id in self.held else {**types.ONNX_TYPES, **types.PACKED_TYPES}[tensor.dtype]

    def tensor(self, name: str, where: str, packed: bool = False) -> Any:
        """Returns the tensor of that name; a known value becomes a constant tensor. packed: of s4 or u4, if it has elements of 4
        bits and an even last axis."""
        if name in self.tensors:
            return self.tensors[name]
        if name not in self.values:
            raise Error(f"{self.name}: {where} reads {name!r}, which no node produces", "invalid_graph")
        array = self.values[name]
        number = types.number_of(array)
        if number is None:
            raise Unfit(f"{name!r} is a tensor of {array.dtype}")
        bits = types.packed_type(number) if packed and array.ndim and array.shape[-1] % 2 == 0 else None
        known = self.packed if bits else self.tensors
        if name not in known:
            known[name] = self.bytes_of_4_bits(types.packed(array), bits) if bits else self.constant_of_model(array, number)
        return known[name]

    def constant_of_model(self, array: numpy.ndarray, number: int) -> Any:
        return self.as_held(self.constant(array, types.held_in(number)), number)

    def constant(self, array: numpy.ndarray, dtype: str) -> Any:
        """Returns a constant tensor of a type of lamina."""
        array = numpy.asarray(array).astype(types.of_numpy(dtype), copy=False)
        tensor = self.graph.input(array.shape, dtype, constant=True)
        self.weights[tensor.id] = numpy.asarray(types.to_graph(array), order="C")
        return tensor

    def bytes_of_4_bits(self, array: numpy.ndarray, dtype: str) -> Any:
        """Returns a constant tensor of s4 or u4 of bytes with two values each."""
        tensor = self.graph.input((*array.shape[:-1], 2 * array.shape[-1]), dtype, constant=True)
        self.weights[tensor.id] = numpy.array(array, order="C")
        return tensor

    def value_of(self, tensor: Any) -> Optional[numpy.ndarray]:
        """Returns the value of a constant tensor."""
        value = self.weights.get(tensor.id)
        return types.unpacked(value, tensor.dtype) if tensor.dtype in types.PACKED and value is not None else value

    def needs_integers(self, names: Any) -> None:
        """If these tensors depend only on inputs of integer or boolean type, requests the values of those inputs."""
        sources = self.sources_of(names)
        if sources and all(self.tensors[name].dtype not in types.FLOATS for name in sources):
            raise NeedsValue(min(sources))

    def is_only_cast_to_floats(self, name: str) -> bool:
        """Whether only Cast nodes of the model's graph read this tensor of integers, and their results are floats."""
        readers = self.readers.get(name)
        return bool(readers) and all(node.op_type == "Cast" and not node.domain and types.is_float(helper.get_node_attr_value(node, "to"))
                                     for node in readers)

    def sources_of(self, names: Any) -> set:
        return set().union(*(self.sources.get(name, set()) for name in names if name not in self.values))

    # ---- nodes

    def add_node(self, node: onnx.NodeProto, opset: int, depth: int) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        name, kind = repr(node.name or next(filter(None, node.output), "")), f" ({node.op_type}, opset {self.opsets.get(domain, opset)})"
        try:
            self._add_node(node, domain, opset, depth, name, kind)
        except DataSized as found:
            if found.outputs <= set(node.output) and found.values <= set(node.input):
                raise
            raise Refused("node", name, f"{kind}: {found.why}") from None  # of a node inside of this one

    def _add_node(self, node: onnx.NodeProto, domain: str, opset: int, depth: int, name: str, kind: str) -> None:
        rule = RULES.get(domain, {}).get(node.op_type)
        why, unknown = f"domain {domain!r}: no rule" if domain else "no rule", None
        sources = self.sources_of(node.input)
        self.sources.update(dict.fromkeys(node.output, sources))
        try:
            if expand_control(self, node, opset, depth) or expand_sequence(self, node, opset) or self._is_folded(node, opset):
                return
            if rule is not None:
                self._keep_result(Node(self, node, f"node {name}{kind}", opset), rule)
                return
        except (Unfit, Error) as refused:
            unknown = refused.name if isinstance(refused, NotKnown) else None
            why = str(refused).removeprefix(f"{self.name}: ")  # of a node inside of this one
        if depth >= _DEEPEST or not self._expand(node, opset, depth):
            self.needs_integers(node.input)
            if unknown is not None:
                raise DataSized(values=[unknown], why=f"node {name}{kind}: {why}")
            raise Refused("node", name, f"{kind}: {why}")

    def _keep_result(self, node: Node, rule: Callable) -> None:
        """Outputs whose type is that of an input, in ONNX's description of the operator, have the model's type of that input."""
        self._keep(node.proto, rule(node))
        held = {node.ports("inputs", i).type_str: self.held[self.tensors[name].id] for i, name in enumerate(node.proto.input)
                if name in self.tensors and self.tensors[name].id in self.held and node.ports("inputs", i) is not None}
        for i, name in enumerate(node.proto.output if held else ()):
            number = held.get(node.ports("outputs", i).type_str)
            if number is not None and name in self.tensors:
                self.held[self.tensors[name].id] = number

    def _keep(self, node: onnx.NodeProto, made: Any) -> None:
        for name, result in zip(node.output, made if isinstance(made, (list, tuple)) else [made]):
            if name:
                (self.values if isinstance(result, numpy.ndarray) else self.tensors)[name] = result

    def _is_folded(self, node: onnx.NodeProto, opset: int) -> bool:
        if node.op_type == "Constant":
            return False  # has a rule
        made = fold(node, self.values, opset)
        if made is None:
            return False
        self._keep(node, made)
        return True

    # ---- functions

    def _expand(self, node: onnx.NodeProto, opset: int, depth: int) -> bool:
        """Replaces the node by the body of the function that ONNX defines for it."""
        body = self._function_of(node, opset)
        if body is None:
            return False
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
        defaults = {name: attribute.default_value for name, attribute in schema.attributes.items() if attribute.default_value.name}
        given = {**defaults, **{attribute.name: attribute for attribute in node.attribute}}
        prefix = f"{next(name for name in node.output if name)}/{depth}/"
        names = {**{name: "" for name in body.input}, **dict(zip(body.input, node.input)),
                 **{a: b for a, b in zip(body.output, node.output) if b}}
        inner_opset = next((o.version for o in body.opset_import if o.domain in ("", "ai.onnx")), opset)
        for inner in body.node:
            self.add_node(_bound(inner, names, prefix, given), inner_opset, depth + 1)
        return True

    def _function_of(self, node: onnx.NodeProto, opset: int) -> Optional[onnx.FunctionProto]:
        try:
            schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
        except Exception:
            return None
        if schema.has_function:
            return schema.function_body
        if not schema.has_context_dependent_function:
            return None
        types = [self._type_of(name).SerializeToString() for name in node.input]
        for version in sorted((v for v in schema.context_dependent_function_opset_versions if v <= opset), reverse=True):
            text = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), types)
            if text:
                body = onnx.FunctionProto()
                body.ParseFromString(text)
                return body
        return None

    def _type_of(self, name: str) -> onnx.TypeProto:
        if name in self.tensors:
            tensor = self.tensors[name]
            return helper.make_tensor_type_proto(self.number_of(tensor), tensor.shape)
        if name in self.values:
            array = self.values[name]
            return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        if name in self.sequences:
            names = self.sequences[name] or ()
            return helper.make_sequence_type_proto(self._type_of(names[0]) if names else helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None))
        return onnx.TypeProto()

    # ---- outputs

    def _compile(self, inputs: list, outputs: list) -> Callable:
        """inputs: names of tensors. outputs: names of tensors, known values, or sequences of these."""
        leaves = [leaf for name in outputs for leaf in (self.sequences.get(name, [name]) or ())]
        known = {leaf: self._known_output(leaf) for leaf in leaves if leaf not in self.tensors or leaf in self.values}
        passed = {self.tensors[name].id: name for name in inputs}
        computed = {self.tensors[leaf].id: self.tensors[leaf] for leaf in leaves if leaf not in known and self.tensors[leaf].id not in passed}
        compiled = self.graph.compile(list(computed.values()), values=self.weights) if computed else None
        order = [passed[tensor.id] for tensor in self.graph._inputs if tensor.id in passed]
        numbers = {tensor_id: self.number_of(tensor) for tensor_id, tensor in computed.items()}

        def call(given: dict) -> tuple:
            made = compiled(*[types.to_graph(given[name]) for name in order]) if compiled else ()
            made = {key: types.from_graph(array, numbers[key]) for key, array in zip(computed, made if isinstance(made, tuple) else (made,))}

            def result(leaf: str) -> Any:
                if leaf in known:
                    return known[leaf].copy()
                tensor_id = self.tensors[leaf].id
                return made[tensor_id] if tensor_id in made else _copied(given[passed[tensor_id]])

            def whole(name: str) -> Any:
                names = self.sequences.get(name, ())
                return None if names is None else [result(leaf) for leaf in names] if name in self.sequences else result(name)

            return tuple(whole(name) for name in outputs)

        if compiled:
            call.explain, call.values = compiled.explain, self.weights
        return call

    def _known_output(self, name: str) -> numpy.ndarray:
        """Returns an output that is known when the model is read: it depends on shapes, constants and static inputs."""
        if name not in self.values:
            raise Error(f"{self.name}: no node produces output {name!r}", "invalid_graph")
        return self.values[name]


def _copied(array: Any) -> Any:
    return array.clone() if hasattr(array, "clone") else numpy.array(array)


def _bound(inner: onnx.NodeProto, names: dict, prefix: str, given: dict) -> onnx.NodeProto:
    """Returns a node of a function's body with the names and attributes of the call, including the nodes of its subgraphs."""
    copy = onnx.NodeProto()
    copy.CopyFrom(inner)
    del copy.input[:], copy.output[:], copy.attribute[:]
    copy.input.extend(names.get(name, prefix + name) if name else "" for name in inner.input)
    copy.output.extend(names.get(name, prefix + name) if name else "" for name in inner.output)
    for attribute in inner.attribute:
        if not attribute.ref_attr_name:
            bound = copy.attribute.add()
            bound.CopyFrom(attribute)
            if attribute.type == onnx.AttributeProto.GRAPH:
                nodes = [_bound(node, names, prefix, given) for node in attribute.g.node]
                del bound.g.node[:]
                bound.g.node.extend(nodes)
                for tensor in bound.g.initializer:
                    tensor.name = prefix + tensor.name
                for value in (*bound.g.input, *bound.g.output):
                    value.name = names.get(value.name, prefix + value.name)
        elif attribute.ref_attr_name in given:
            bound = copy.attribute.add()
            bound.CopyFrom(given[attribute.ref_attr_name])
            bound.name = attribute.name
    return copy


def _type_name(kind: Any) -> str:
    if not kind.HasField("tensor_type"):
        return kind.WhichOneof("value") or "untyped"
    return onnx.TensorProto.DataType.Name(kind.tensor_type.elem_type)
