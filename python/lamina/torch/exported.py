"""A torch model as a graph for `lamina.export`: the import of torch.compile's backend, with nothing left to PyTorch."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from torch.fx import GraphModule, Node

from lamina._core import LogicalTensor
from lamina._errors import Error
from lamina.exporting import Variant
from lamina.torch.backend import rewrite, with_sizes
from lamina.torch.decomposed import Decomposed, decomposed
from lamina.torch.lowering import Lowering
from lamina.torch.nodes import Refused, dtype_of, name_of
from lamina.torch.table import TABLE
from lamina.torch.views import VIEW_RULES


def maker_of(model: Any, weights: dict, example_inputs: Optional[Sequence[Any]]) -> Callable:
    """Returns a function from shapes of inputs by name to a Variant."""
    if weights:
        raise Error("export: weights are given, allowed are they for graphs and ONNX models")
    if isinstance(model, ExportedProgram):
        if example_inputs is not None:
            raise Error("export: example_inputs are given, allowed are they with a torch.nn.Module")
        found = decomposed(model)
        return lambda shapes: _variant(found, shapes)
    if example_inputs is None:
        raise Error("export: a torch.nn.Module is given, allowed is one with example_inputs")
    return lambda shapes: _module_variant(model, example_inputs, shapes)


def _module_variant(module: torch.nn.Module, example_inputs: Sequence[Any], shapes: dict) -> Variant:
    """The example inputs with these shapes; other shapes of one program would depend on which of its sizes torch fixes."""
    given = dict(example_inputs) if isinstance(example_inputs, dict) else dict(zip(_names_of(module), example_inputs))
    for name, shape in shapes.items():
        if not isinstance(given.get(name), torch.Tensor):
            raise Error(f"export: the model has no input {name!r}, allowed is one of {', '.join(map(str, given))}")
        given[name] = _example(given[name].dtype, shape)
    arguments = ((), given) if isinstance(example_inputs, dict) else (tuple(given.values()), None)
    with torch.no_grad():
        program = torch.export.export(module, *arguments, strict=False)
    return _variant(decomposed(program), {})


def _names_of(module: torch.nn.Module) -> list:
    import inspect

    return list(inspect.signature(module.forward).parameters)


def _example(dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    return torch.zeros(tuple(shape), dtype=dtype)


def _variant(model: Decomposed, shapes: dict) -> Variant:
    program = model.program
    inputs, outputs = program.graph_signature.input_specs, program.graph_signature.output_specs
    values = {spec.arg.name: _value_of(program, spec) for spec in inputs if spec.kind is not InputKind.USER_INPUT}
    module = _of_shapes(model.module, inputs, values, shapes)
    rewrite(module)
    refused = [f"the model writes {spec.target!r}" for spec in outputs if spec.kind is not OutputKind.USER_OUTPUT]
    lowering = WholeLowering(module, {name: value for name, value in values.items() if isinstance(value, torch.Tensor)})
    refused += [f"node {node.name!r} ({name_of(node)}): {why}" for node, why in lowering.reasons.items() if _is_needed(node)]
    refused += [f"output {name!r} is {why}" for name, why in zip(model.names, lowering.faults_of_results()) if why]
    if refused:
        raise Error("export: " + "; ".join(refused), "unimplemented")
    lowering.graph.finalize()
    read = {tensor.id for tensor in lowering.graph.border()[0]}
    ports = [(tensor.id, name) for name, tensor in lowering.inputs.items() if tensor.id in read]
    return Variant(lowering.graph, ports, list(zip((tensor.id for tensor in lowering.results), model.names)),
                   {key: array for key, array in lowering.weights().items() if key in read})


def _value_of(program: ExportedProgram, spec: InputSpec) -> Any:
    if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER) and spec.target in program.state_dict:
        return program.state_dict[spec.target].detach()
    value = program.constants.get(spec.target)
    return value.detach() if isinstance(value, torch.Tensor) else value


def _is_needed(node: Node) -> bool:
    """Whether it is more than a check of sizes, which the shapes of the file make needless."""
    return bool(node.users) or isinstance(node.meta.get("val"), (torch.Tensor, list, tuple))


def _of_shapes(module: GraphModule, specs: Sequence[InputSpec], values: dict, shapes: dict) -> GraphModule:
    """The program's module with numbers for all sizes."""
    nodes = {node.target: node for node in module.graph.nodes if node.op == "placeholder"}
    users = [spec.arg.name for spec in specs if spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument)]
    for name in shapes:
        if name not in users:
            raise Error(f"export: the model has no input {name!r}, allowed is one of {', '.join(users)}")
    inputs, is_open = [], False
    for spec in specs:
        value = values.get(spec.arg.name, getattr(spec.arg, "value", None))
        if spec.arg.name in users:
            fake = nodes[spec.arg.name].meta["val"]
            is_open = is_open or not all(isinstance(extent, int) for extent in fake.shape)
            value = _example(fake.dtype, _shape_of(spec.arg.name, fake, shapes.get(spec.arg.name)))
        elif spec.kind is InputKind.USER_INPUT and not isinstance(spec.arg, ConstantArgument):
            raise Error(f"export: input {spec.arg.name!r} is a number, allowed are tensors", "unimplemented")
        inputs.append(value)
    if is_open:
        return with_sizes(module, inputs)
    copy = torch.fx.Graph()
    copy.output(copy.graph_copy(module.graph, {}))
    return GraphModule(module, copy)


def _shape_of(name: str, fake: torch.Tensor, given: Optional[Sequence[int]]) -> tuple:
    known = tuple(extent if isinstance(extent, int) else None for extent in fake.shape)
    if given is None:
        if None in known:
            raise Error(f"export: the shape of input {name!r} is open, allowed is to give it in shapes", "invalid_shape")
        return known
    if len(given) != len(known) or any(extent not in (None, wanted) for extent, wanted in zip(known, given)):
        allowed = ", ".join("?" if extent is None else str(extent) for extent in known)
        raise Error(f"export: input {name!r} is given as {list(given)}, allowed is [{allowed}]", "invalid_shape")
    return tuple(given)


class WholeLowering(Lowering):
    """Lowers a module of which PyTorch runs nothing: inputs of the model are tensors of the graph, and weights are constants, so that
    what depends only on them is computed here."""

    def __init__(self, module: GraphModule, values: dict) -> None:
        """values: weights by the names of their placeholders."""
        self.inputs: dict[str, LogicalTensor] = {}
        self.results: list = []  # None for an output that is no tensor of the graph
        self._values = values
        super().__init__(module, TABLE, VIEW_RULES)

    def weights(self) -> dict:
        """Returns the constants of the graph by tensor id."""
        nodes = {tensor.id: key[1] if isinstance(key, tuple) else key for key, tensor in self.ports.items()}
        return {tensor_id: self.constants[nodes[tensor_id]].detach() for tensor_id in self.sources if nodes[tensor_id] in self.constants}

    def faults_of_results(self) -> list:
        """Returns, for each output, why the model cannot have it; "" if it can."""
        own = {tensor.id for tensor in self.inputs.values()}
        seen: set = set()
        faults = []
        for tensor in self.results:
            is_again = isinstance(tensor, LogicalTensor) and tensor.id in seen
            faults.append(tensor if isinstance(tensor, str) else "an input" if tensor.id in own else "another output, too" if is_again else "")
            if isinstance(tensor, LogicalTensor):
                seen.add(tensor.id)
        return faults

    def _lower_all(self) -> None:
        for node in self.module.graph.nodes:
            if node.op == "placeholder" and node.target in self._values:
                self.constants[node] = self._values[node.target]
            elif node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor):
                value = node.meta["val"]
                self.inputs[node.target] = self.inner[node] = LogicalTensor(self._take_id(), dtype_of(value), tuple(value.shape))
        super()._lower_all()

    def _connect_foreign(self) -> None:
        """PyTorch runs nothing: other nodes are refused, or they are checks of shapes and types."""
        self._mark_outputs(next(node for node in self.module.graph.nodes if node.op == "output"))

    def _mark_outputs(self, output: Node) -> None:
        for node in output.args[0]:
            if isinstance(node, Node) and isinstance(node.meta.get("val"), torch.Tensor):
                self.results.append(self._result(node))
                if isinstance(self.results[-1], LogicalTensor):
                    self._add_wildcard([self.results[-1]], [], kind="End")

    def _result(self, node: Node) -> Any:
        """Returns the tensor of an output, or why it has none."""
        first_op = self._op_count
        base = self.base(node)
        if base in self.reasons or node in self.reasons:
            return "not computed"
        if node in self.constants or not self.is_inner(node):
            return "a constant"
        try:
            made = self._port_or_inner(node)
            self._commit(node)
            return made
        except (Refused, Error) as refused:
            self._undo(first_op)
            return f"a view: {refused}"
