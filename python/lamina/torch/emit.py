"""Emits a lowered graph as one FX module: unchanged foreign nodes, with calls into lamina between them.

Consecutive partitions without a foreign node between them share one call. The module is generated Python; nothing is
interpreted at run time. Its argument is a list, which is emptied at the start of the call, so that activations are freed
early.

Results that the graph writes to its inputs are computed in the memory of these inputs where lamina can, and are copied
there at the end otherwise.
"""

from __future__ import annotations

import json
import operator
from typing import Any, Callable, NamedTuple, Optional

import torch
from torch.fx import Graph, GraphModule, Node

from lamina import _arrays, _core
from lamina._core import LogicalTensor
from lamina._errors import Error
from lamina._program import Linked, Port, link
from lamina.torch.lowering import Lowered
from lamina.torch.nodes import dtype_of, may_draw, writes_to_input
from lamina.torch.weights import Packing, Settings, candidate

KIND_CHARACTERS = 120  # maximum length of a call's name in the profiler
BYTES = {"f64": 8, "s64": 8, "f32": 4, "s32": 4, "bf16": 2, "f16": 2}


class Stay(NamedTuple):
    """A group of partitions that runs in one call."""

    partitions: list
    inputs: list  # pairs of a port's tensor and the node or tensor id that it is read from
    outputs: list  # logical tensors that are read outside the group


class Emitted(NamedTuple):
    module: GraphModule
    calls: list  # Linked, one per call into lamina
    packings: list  # Packing, of the calls that read weights


class Weights(NamedTuple):
    """names: those of the graph's inputs that stay the same tensors from call to call, by their nodes."""

    names: dict
    settings: Settings


def emit(lowered: Lowered, weights: Optional[Weights] = None) -> Emitted:
    """`weights` is None if no weights are packed once."""
    return _Emitter(lowered, weights).run()


class _Emitter:
    def __init__(self, lowered: Lowered, weights: Optional[Weights]) -> None:
        self.lowering, self.partitions = lowered
        self.weights = weights
        self.old = self.lowering.module.graph
        self.new = Graph()
        self.attributes: dict[str, Any] = {}
        self.env: dict[Node, Node] = {}
        self.made: dict[int, Node] = {}  # tensor id -> its node in the new graph
        self.calls: list = []
        self.packings: list = []
        self.writes = [n for n in self.old.nodes if writes_to_input(n)]
        self.foreign = [n for n in self.old.nodes if self._is_foreign(n)]
        self.tensors = {p.id: p for partition in self.partitions for p in (*partition.inputs, *partition.outputs)}
        self.maker = {port.id: partition for partition in self.partitions for port in partition.outputs}
        self.needed = self._needed_outside()

    def run(self) -> Emitted:
        for node in self.old.nodes:
            if node.op == "placeholder":
                self.env[node] = self.new.node_copy(node)
        self._schedule()
        self._write()
        output = next(n for n in self.old.nodes if n.op == "output")
        self.new.output(torch.fx.map_arg(output.args[0], self._output_value))
        module = GraphModule(_root(self), self.new)
        return Emitted(module, self.calls, self.packings)

    # ---- order

    def _is_foreign(self, node: Node) -> bool:
        if node.op == "call_module":
            return True
        if node.op != "call_function" or node in self.lowering.constants or writes_to_input(node):
            return False
        if node.target is operator.getitem:
            return not self.lowering.is_view(node) and not self.lowering.is_inner(node)
        return node not in self.lowering.inner and not self.lowering.is_view(node)

    def _schedule(self) -> None:
        foreign, partitions, done = list(self.foreign), list(self.partitions), set()
        while foreign or partitions:
            before = len(foreign) + len(partitions)
            held_back = False  # nodes that draw random numbers keep their order
            waiting = []
            for node in foreign:
                random = may_draw(node)
                if self._ready(node, waiting) and not (random and held_back):
                    self._copy(node)
                else:
                    waiting.append(node)
                    held_back = held_back or random
            foreign = waiting
            stay, made, rest = [], set(), []
            for partition in partitions:
                if all(self._port_ready(port.id, made) for port in partition.inputs):
                    stay.append(partition)
                    made.update(port.id for port in partition.outputs)
                else:
                    rest.append(partition)
            partitions = rest
            if stay:
                self._call(stay)
            if len(foreign) + len(partitions) == before:
                raise Error("nodes of torch and partitions depend on each other in a cycle: this is a bug in lamina.torch", "runtime_error")

    def _ready(self, node: Node, waiting: list) -> bool:
        return all(self._source_ready(source) for source in node.all_input_nodes)

    def _source_ready(self, node: Node) -> bool:
        base = self.lowering.base(node)
        if base in self.env or base.op == "get_attr" or base in self.lowering.constants:
            return True
        return self.lowering.is_inner(base) and self._id(base) in self.made

    def _port_ready(self, tensor_id: int, made: set) -> bool:
        if tensor_id in self.lowering.scalars:
            return True
        if tensor_id in self.lowering.sources:
            return self._source_ready(self.lowering.sources[tensor_id].root)
        return tensor_id in self.made or tensor_id in made

    # ---- calls

    def _needed_outside(self) -> set:
        needed = set()
        for node in [*self.foreign, *self.writes, *(n for n in self.old.nodes if n.op == "output")]:
            for source in node.all_input_nodes:
                base = self.lowering.base(source)
                if self.lowering.is_inner(base):
                    needed.add(self._id(base))
        return needed

    def _id(self, node: Node) -> int:
        return self.lowering.inner_tensor(node).id

    def _call(self, partitions: list) -> None:
        made = {port.id for partition in partitions for port in partition.outputs}
        later = {port.id for partition in self.partitions if partition not in partitions for port in partition.inputs}
        outputs = [self._output(self.tensors[i]) for i in sorted(made) if i in self.needed or i in later]
        inputs, ports, seen = [], [], set()
        for partition in partitions:
            for port in partition.inputs:
                if port.id in made or port.id in seen or port.id in self.lowering.scalars:
                    continue
                seen.add(port.id)
                node, given = self._given(port)
                inputs.append(node)
                ports.append(given)
        linked = link(partitions, ports, outputs, self.lowering.scalars)
        self.calls.append(linked)
        packing = self._packing(linked, ports)
        in_place = self._in_place(linked)
        written = {position: len(inputs) + i for i, position in enumerate(in_place)}  # output -> the argument with its memory
        arguments = (*inputs, *(self.env[placeholder] for placeholder in in_place.values()))
        call = self.new.call_function(_caller(linked, ports, len(self.calls) - 1, packing, written), arguments)
        for position, tensor in enumerate(outputs):
            self.made[tensor.id] = self.new.call_function(operator.getitem, (call, position))

    def _in_place(self, linked: Linked) -> dict:
        """{position of an output: the input of the graph in whose memory it is computed}. Only the partition that makes the output
        reads that input, and nothing else reads the output, so that no other order of reads and writes is possible."""
        made, places = {}, {tensor.id: position for position, tensor in enumerate(linked.outputs)}
        for node in self.writes:
            placeholder, value = node.args[:2]
            if not self._only_written(node, placeholder, value) or self._id(value) not in places:
                continue
            position, given = places[self._id(value)], placeholder.meta["val"]
            tensor, partition = linked.outputs[position], self.maker[self._id(value)]
            if (tuple(tensor.shape), tuple(tensor.strides), tensor.dtype) != (tuple(given.shape), tuple(given.stride()), dtype_of(given)):
                continue
            readers = [(p, port.id) for p in self.partitions for port in p.inputs if self._reads(port.id, placeholder)]
            code = linked.compiled[linked.partitions.index(partition)]
            if len(readers) <= 1 and all(p is partition and code.may_share(port, tensor.id) for p, port in readers):
                made[position] = placeholder
        return made

    def _only_written(self, write: Node, placeholder: Node, value: Node) -> bool:
        """Whether torch neither reads the input nor, apart from writing it to the input, the value."""
        if not isinstance(value, Node) or not self.lowering.is_inner(value) or self.lowering.is_view(value):
            return False
        readers = [node for node in (*self.foreign, *self.writes, *(n for n in self.old.nodes if n.op == "output")) if node is not write]
        return not any(self.lowering.base(source) in (placeholder, value, write) for node in readers for source in node.all_input_nodes)

    def _reads(self, tensor_id: int, placeholder: Node) -> bool:
        return tensor_id in self.lowering.sources and self.lowering.sources[tensor_id].root is placeholder

    def _write(self) -> None:
        """Copies values to inputs, unless they are there already."""
        left = []
        for node in self.writes:
            value = self._value(node.args[1])
            self.env[node] = self.env[node.args[0]]
            if value.target is not operator.getitem or value.args[1] not in getattr(value.args[0].target, "written", ()):
                left.append((self.env[node], value))
        if left:
            self.new.call_function(torch.ops.aten._foreach_copy_.default, tuple(map(list, zip(*left))))

    def _packing(self, linked: Linked, ports: list) -> Optional[Packing]:
        """Returns what packs the weights of a call; None if there are none."""
        if self.weights is None:
            return None
        candidates = []
        for place, port in enumerate(ports):
            source, use = self.lowering.sources.get(port.tensor.id), self.lowering.uses.get(port.tensor.id)
            if use is None or source is None or source.root.op != "placeholder":
                continue
            name = self.weights.names.get(source.root)
            candidates.append(candidate(place, name or source.root.name, source.root.meta["val"], use, name is not None, self.weights.settings))
        if not candidates:
            return None
        self.packings.append(Packing(linked, ports, candidates, self.weights.settings))
        return self.packings[-1] if self.packings[-1].places else None

    def _output(self, tensor: LogicalTensor) -> LogicalTensor:
        """Returns the tensor with the strides that torch expects of its node."""
        if tensor.id not in self.lowering.origin:
            return LogicalTensor(tensor.id, tensor.dtype, tensor.shape)
        value = self._value_of(tensor.id)
        return LogicalTensor(tensor.id, tensor.dtype, tuple(value.shape), tuple(value.stride()))

    def _given(self, port: LogicalTensor) -> tuple:
        source = self.lowering.sources.get(port.id)
        if source is None:
            tensor = self._output(port)
            tensor = tensor if tensor.strides else port
            return self.made[port.id], Port(tensor, tensor, 0)
        value = self.lowering.constants.get(source.root, source.root.meta["val"])
        given = LogicalTensor(port.id, dtype_of(value), tuple(value.shape), tuple(value.stride()))
        # The port's tensor has its properties and strides.
        own = next(t for t in self.lowering.ports.values() if t.id == port.id)
        return self._value(source.root), Port(own, given, source.offset * BYTES.get(port.dtype, 1))

    # ---- nodes

    def _output_value(self, node: Node) -> Node:
        """A constant is copied in each call, because the caller may write to it."""
        value = self._value(node)
        return self.new.call_function(torch.ops.aten.clone.default, (value,)) if self.lowering.base(node) in self.lowering.constants else value

    def _value_of(self, tensor_id: int) -> torch.Tensor:
        """Returns torch's FakeTensor of a node's tensor in lamina."""
        node, position = self.lowering.origin[tensor_id]
        return node.meta["val"] if position is None else node.meta["val"][position]

    def _value(self, node: Node) -> Node:
        """Returns the node's counterpart in the new graph. Views of lamina's results are torch views, created where they are
        read."""
        if node in self.env:
            return self.env[node]
        if node.op == "get_attr" or node in self.lowering.constants:
            name = f"constant_{len(self.attributes)}"
            self.attributes[name] = self.lowering.constants[node] if node in self.lowering.constants else self._held(node)
            self.env[node] = self.new.get_attr(name)
        elif self.lowering.is_inner(node) and not self.lowering.is_view(node):
            self.env[node] = self.made[self._id(node)]
        else:
            self._copy(node)
        return self.env[node]

    def _held(self, node: Node) -> Any:
        """Returns an attribute of the graph's module, such as a branch of torch.cond."""
        return operator.attrgetter(node.target)(self.lowering.module)

    def _copy(self, node: Node) -> None:
        chain = [node]
        while chain:  # arguments first, without recursion
            missing = [i for i in chain[-1].all_input_nodes if i not in self.env and self._must_be_copied(i)]
            if missing:
                chain.append(missing[0])
                continue
            last = chain.pop()
            if last not in self.env:
                self.env[last] = self.new.node_copy(last, self._value)

    def _must_be_copied(self, node: Node) -> bool:
        if node.op == "get_attr" or node in self.lowering.constants:
            return False
        return self.lowering.is_view(node) or not self.lowering.is_inner(node)


def _root(emitter: _Emitter) -> torch.nn.Module:
    root = torch.nn.Module()
    for name, value in emitter.attributes.items():
        if isinstance(value, torch.Tensor):
            root.register_buffer(name, value, persistent=False)
        else:
            setattr(root, name, value)
    for node in emitter.new.nodes:
        if node.op in ("get_attr", "call_module") and node.target not in emitter.attributes:
            setattr(root, node.target, operator.attrgetter(node.target)(emitter.lowering.module))
    return root


def _caller(linked: Linked, ports: list, number: int, packing: Optional[Packing], written: dict) -> Callable:
    """Returns the function that the generated code calls: it allocates the outputs, or takes the memory of arguments for those
    in `written` ({output: argument}), and runs. AOTAutograd counts these writes."""
    specs = [(tuple(t.shape), tuple(t.strides), _arrays.torch_dtype(t.dtype)) for t in linked.outputs]
    plain, empty, named = linked.run, torch.empty_strided, torch._C._profiler._RecordFunctionFast
    name = f"lamina_call_{number}: {_kinds_of(linked.partitions)}"
    count = len(ports)

    def call(*tensors):
        if written:
            outputs = [tensors[written[i]] if i in written else empty(shape, strides, dtype=dtype) for i, (shape, strides, dtype) in enumerate(specs)]
            tensors = tensors[:count]
        else:
            outputs = [empty(shape, strides, dtype=dtype) for shape, strides, dtype in specs]
        run = plain if packing is None else packing.choose(tensors)
        try:
            with named(name):
                run(tensors, outputs)
        except Error as refused:
            if refused.status == "index_out_of_range":
                raise IndexError(str(refused)) from None  # the exception type of torch's own ops
            made = [_as_compiled(tensor, port) for tensor, port in zip(tensors, ports)]
            if all(a is b for a, b in zip(made, tensors)):
                raise
            fresh = [empty(shape, strides, dtype=dtype) for shape, strides, dtype in specs]
            run(made, fresh)
            outputs = [outputs[i].copy_(tensor) if i in written else tensor for i, tensor in enumerate(fresh)]
        return outputs

    call.__name__ = call.__qualname__ = f"lamina_call_{number}"
    call.written = tuple(written)
    return call


def _kinds_of(partitions: list) -> str:
    """Returns a call's name for the profiler: the kinds of its ops, those of one partition joined by +."""
    told = [json.loads(partition.reasons_json())["ops"] for partition in partitions]
    text = ", ".join(" + ".join(op["kind"] for op in ops) for ops in told)
    return text if len(text) <= KIND_CHARACTERS else text[:KIND_CHARACTERS - 3] + "..."


def _as_compiled(tensor: torch.Tensor, port: Port) -> torch.Tensor:
    """Returns a copy with the compiled strides and type, for a tensor whose strides or type differ from those that torch announced:
    the statistics of its batch norm are f16 if the running ones are."""
    dtype = _arrays.torch_dtype(port.given.dtype)
    if tuple(tensor.shape) != tuple(port.given.shape) or (tensor.stride() == tuple(port.given.strides) and tensor.dtype is dtype):
        return tensor
    copy = torch.empty_strided(port.given.shape, port.given.strides, dtype=dtype)
    apart = tuple(slice(0, 1 if stride == 0 else None) for stride in port.given.strides)  # all entries of an expanded dim are equal
    copy[apart].copy_(tensor[apart])
    return copy
