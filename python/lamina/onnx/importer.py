"""Converts a model's nodes to a lamina graph and compiles it."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy
import onnx
import onnx.defs
from onnx import helper, numpy_helper, shape_inference

from lamina._errors import Error
from lamina.graph import Graph
from lamina.onnx.control import expand_control
from lamina.onnx.folding import fold
from lamina.onnx.node import FLOATS, OF_NUMPY, ONNX_TYPES, TYPES, WIDER, NeedsValue, Node, Unfit
from lamina.onnx.scales import fold_scales
from lamina.onnx.table import RULES

_DEEPEST = 6  # maximum nesting of functions


class Importer:
    """Reads one model for given values of its static inputs."""

    def __init__(self, model: onnx.ModelProto, name: str, static: dict) -> None:
        self.model, self.name, self.static = model, name, static
        self.opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
        self.graph = Graph()
        self.tensors: dict[str, Any] = {}
        self.weights: dict[int, numpy.ndarray] = {}  # by tensor id
        self.values: dict[str, numpy.ndarray] = {}  # known values: initializers, static inputs and values computed from them
        self.widened: set = set()  # ids of tensors of s8 and u8 that are of 4 bits in the model
        self.of_static: set = set(static)  # names of known values that depend on the caller's static inputs
        self.open: set = set()  # names of inputs whose values are unknown
        self.sources: dict[str, set] = {}  # the unknown inputs from which each tensor is computed

    def run(self) -> Callable:
        """Returns a function of a dict of inputs by name."""
        graph = self._inferred().graph
        self.values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.values.update(self.static)
        inputs = [value for value in graph.input if value.name not in self.values]
        self.open = {value.name for value in inputs}
        self.sources = {name: {name} for name in self.open}
        for value in inputs:
            self.tensors[value.name] = self._input(value)
        outputs = [value.name for value in graph.output]
        nodes = [node for node in graph.node if not self._is_known(node)]
        for node in fold_scales(nodes, self.values, set(outputs)):
            self.add_node(node, self.opset, 0)
        return self._compile(inputs, outputs)

    def _is_known(self, node: onnx.NodeProto) -> bool:
        """Whether the node's outputs are known, without the ops before it."""
        if node.op_type == "Constant":
            self.add_node(node, self.opset, 0)
            return True
        try:
            return self._is_folded(node, self.opset)
        except Unfit:
            return False  # its rule decides, and names the reason

    def _inferred(self) -> onnx.ModelProto:
        try:
            return shape_inference.infer_shapes(self.model, strict_mode=False)
        except Exception as error:
            raise Error(f"{self.name}: {error}", "invalid_graph") from None

    # ---- tensors

    def _input(self, value: onnx.ValueInfoProto) -> Any:
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type") or kind.elem_type not in TYPES:
            raise Error(f"{self.name}: input {value.name!r} is {_type_name(value.type)}, allowed is a tensor of {', '.join(TYPES.values())}",
                        "unimplemented")
        dtype = TYPES[kind.elem_type]
        shape = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim] if kind.HasField("shape") else None
        tensor = self.graph.input(shape, WIDER.get(dtype, dtype))
        if dtype in WIDER:
            self.widened.add(tensor.id)
        return tensor

    def tensor(self, name: str, where: str) -> Any:
        """Returns the tensor of that name; a known value becomes a constant tensor."""
        if name in self.tensors:
            return self.tensors[name]
        if name not in self.values:
            raise Error(f"{self.name}: {where} reads {name!r}, which no node produces", "invalid_graph")
        array = self.values[name]
        dtype = OF_NUMPY.get(str(array.dtype))
        if dtype is None:
            raise Unfit(f"{name!r} is a tensor of {array.dtype}")
        self.tensors[name] = self.constant(array, dtype)
        return self.tensors[name]

    def constant(self, array: numpy.ndarray, dtype: str) -> Any:
        """Returns a constant tensor. s4 and u4 have two values per byte; with an odd last axis they become s8 and u8."""
        if dtype in WIDER and array.ndim and array.shape[-1] % 2 == 0:
            return self.bytes_of_4_bits(packed(array), dtype)
        if dtype in WIDER:
            tensor = self.constant(array, WIDER[dtype])
            self.widened.add(tensor.id)
            return tensor
        if dtype == "bf16" and str(array.dtype) != "bfloat16":
            array = array.astype(helper.tensor_dtype_to_np_dtype(ONNX_TYPES["bf16"]))
        if dtype != "bf16":
            array = array.astype(helper.tensor_dtype_to_np_dtype(ONNX_TYPES[dtype]), copy=False)
        tensor = self.graph.input(array.shape, dtype, constant=True)
        self.weights[tensor.id] = numpy.array(plain(array), order="C")
        return tensor

    def bytes_of_4_bits(self, array: numpy.ndarray, dtype: str) -> Any:
        """Returns a constant tensor of s4 or u4 of bytes with two values each."""
        tensor = self.graph.input((*array.shape[:-1], 2 * array.shape[-1]), dtype, constant=True)
        self.weights[tensor.id] = numpy.array(array, order="C")
        return tensor

    def value_of(self, tensor: Any) -> Optional[numpy.ndarray]:
        """Returns the value of a constant tensor."""
        value = self.weights.get(tensor.id)
        return unpacked(value, tensor.dtype) if tensor.dtype in WIDER and value is not None else value

    def needs_integers(self, names: Any) -> None:
        """If these tensors depend only on inputs of integer or boolean type, requests the values of those inputs."""
        sources = self.sources_of(names)
        if sources and all(self.tensors[name].dtype not in FLOATS for name in sources):
            raise NeedsValue(min(sources))

    def sources_of(self, names: Any) -> set:
        return set().union(*(self.sources.get(name, set()) for name in names if name not in self.values))

    # ---- nodes

    def add_node(self, node: onnx.NodeProto, opset: int, depth: int) -> None:
        where = f"node {node.name or node.output[0]!r} ({node.op_type})"
        rule = RULES.get("" if node.domain == "ai.onnx" else node.domain, {}).get(node.op_type)
        why = "no rule" if node.domain in ("", "ai.onnx") else f"domain {node.domain!r}: no rule"
        sources = self.sources_of(node.input)
        for name in node.output:
            self.sources[name] = sources
        try:
            if expand_control(self, node, opset, depth) or self._is_folded(node, opset):
                return
            if rule is not None:
                self._keep(node, rule(Node(self, node, where)))
                return
        except (Unfit, Error) as refused:
            why = str(refused).removeprefix(f"{self.name}: ")  # of a node inside of this one
        if depth >= _DEEPEST or not self._expand(node, opset, depth):
            self.needs_integers(node.input)
            raise Error(f"{self.name}: {where}: {why}", "unimplemented")

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
        if any(given in self.of_static for given in node.input):
            self.of_static.update(name for name in node.output if name)
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
            dtype = tensor.dtype.replace("8", "4") if tensor.id in self.widened else tensor.dtype
            return helper.make_tensor_type_proto(ONNX_TYPES[dtype], tensor.shape)
        if name in self.values:
            array = self.values[name]
            return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        return onnx.TypeProto()

    # ---- outputs

    def _compile(self, inputs: list, outputs: list) -> Callable:
        computed = {name: self.tensors[name] for name in outputs if name in self.tensors and name not in self.values}
        fixed = {name: self._fixed(name) for name in outputs if name not in computed}
        passed = {self.tensors[v.name].id for v in inputs}
        ids = [tensor.id for tensor in computed.values()]
        if any(i in passed for i in ids) or len(set(ids)) != len(ids):
            raise Error(f"{self.name}: an output is an input or another output, allowed is a result of a node", "unimplemented")
        if not computed:
            return lambda given: tuple(fixed[name].copy() for name in outputs)
        compiled = self.graph.compile(list(computed.values()), values=self.weights)
        names = {self.tensors[value.name].id: value.name for value in inputs}
        order = [names[tensor.id] for tensor in self.graph._inputs if tensor.id in names]

        def call(given: dict) -> tuple:
            made = compiled(*[plain(given[name]) for name in order])
            made = dict(zip(computed, made if isinstance(made, tuple) else (made,)))
            return tuple(_typed(made[name], computed[name].dtype) if name in made else fixed[name].copy() for name in outputs)

        call.explain = compiled.explain
        return call

    def _fixed(self, name: str) -> numpy.ndarray:
        """Returns an output that is known when the model is read. It may depend on shapes and constants, but not on the
        caller's inputs."""
        if name not in self.values:
            raise Error(f"{self.name}: no node produces output {name!r}", "invalid_graph")
        if name in self.of_static:
            raise Error(f"{self.name}: output {name!r} depends only on static inputs, allowed is an output that depends on another input", "unimplemented")
        return self.values[name]


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


def plain(array: Any) -> Any:
    """Converts types that numpy's protocols cannot share: bfloat16 to raw bits, integers of 4 bits to those of 8 bits."""
    dtype = str(getattr(array, "dtype", ""))
    return array.view("uint16") if dtype == "bfloat16" else array.astype(dtype.replace("4", "8")) if dtype in ("int4", "uint4") else array


def packed(array: numpy.ndarray) -> numpy.ndarray:
    """Returns integers of 4 bits as bytes with two of them along the last axis, the first in the low four bits."""
    pairs = array.astype("int8").view("uint8").reshape(*array.shape[:-1], -1, 2) & 15
    return pairs[..., 0] | pairs[..., 1] << 4


def unpacked(array: numpy.ndarray, dtype: str) -> numpy.ndarray:
    """The inverse of `packed`, one integer per byte."""
    values = numpy.stack([array & 15, array >> 4], axis=-1).reshape(*array.shape[:-1], -1)
    return (values ^ 8).astype("int8") - 8 if dtype == "s4" else values


def _typed(array: Any, dtype: str) -> Any:
    """Converts raw bits of bf16 to the bfloat16 type of the onnx package."""
    if dtype != "bf16" or not isinstance(array, numpy.ndarray):
        return array
    return array.view(helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16))


def _type_name(kind: Any) -> str:
    if not kind.HasField("tensor_type"):
        return kind.WhichOneof("value") or "untyped"
    return onnx.TensorProto.DataType.Name(kind.tensor_type.elem_type)
