"""An ExportedProgram in ops of the table (table.py), as torch.compile's backend gets them."""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple, Optional

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._export.utils import _collect_all_valid_cia_ops, _get_decomp_for_cia, _is_cia_op
from torch._guards import detect_fake_mode
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, TensorArgument
from torch.func import functionalize
from torch.fx import GraphModule, Interpreter
from torch.fx.experimental.proxy_tensor import make_fx

from lamina.torch.backend import decompositions
from lamina.torch.nodes import is_known
from lamina.torch.table import TABLE

MOST_PASSES = 2  # decompositions may write to tensors, which another pass removes


class Decomposed(NamedTuple):
    program: ExportedProgram  # has the weights, and describes the placeholders of `module`
    module: GraphModule
    names: list  # of the outputs that are tensors, in the program that was given


def decomposed(program: ExportedProgram) -> Decomposed:
    names = [spec.arg.name for spec in program.graph_signature.output_specs
             if spec.kind is OutputKind.USER_OUTPUT and isinstance(spec.arg, TensorArgument)]
    module = _traced(program)
    if module is not None:
        return Decomposed(program, module, names)
    program = program.run_decompositions(_with_composite(_collect_all_valid_cia_ops()))
    return Decomposed(program, program.graph_module, names)


def _with_composite(ops: Iterable[Any]) -> dict:
    """Decompositions of torch.compile's backend, and of composite ops, which torch.compile decomposes by itself and torch.export
    keeps."""
    made = dict(decompositions())
    for op in ops:
        if str(op).removeprefix("aten.") not in TABLE:
            made.setdefault(op, _get_decomp_for_cia(op))
    return made


def _traced(program: ExportedProgram) -> Optional[GraphModule]:
    """Traces the program's ops without autograd, several times as fast as run_decompositions. Returns None if there is more to
    it: open sizes, graphs in graphs, or writes to inputs."""
    nodes = list(program.graph.nodes)
    calls = [node for node in nodes if node.op == "call_function"]
    if not all(isinstance(node.target, torch._ops.OpOverload) or node.target.__module__ == "_operator" for node in calls):
        return None
    if not all(is_known(node.meta.get("val")) for node in nodes if node.op != "output"):
        return None
    placeholders = [node for node in nodes if node.op == "placeholder"]
    values = [node.meta["val"] for node in placeholders]
    mode = detect_fake_mode(values)
    if mode is None or not all(isinstance(value, torch.Tensor) for value in values):
        return None
    module = program.graph_module
    composite = {node.target for node in calls if isinstance(node.target, torch._ops.OpOverload) and _is_cia_op(node.target)}
    table = _with_composite(composite)  # other composite ops are called by decompositions, where tracing decomposes them
    for _ in range(MOST_PASSES):
        function = functionalize(Interpreter(module).run, remove="mutations")
        with mode, torch.no_grad(), enable_python_dispatcher():
            module = make_fx(function, decomposition_table=table, _allow_non_fake_inputs=True)(*values)
        if not _writes(module):
            break
    else:
        return None
    module.graph.eliminate_dead_code()
    for node, original in zip((node for node in module.graph.nodes if node.op == "placeholder"), placeholders):
        node.target = original.target
    return module


def _writes(module: GraphModule) -> bool:
    return any(node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
               for node in module.graph.nodes)
