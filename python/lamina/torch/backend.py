"""torch.compile(model, backend="lamina"): torch finds the backend through the package's entry point.

AOTAutograd creates forward and backward graphs of ATen ops. Ops that lamina supports are not decomposed, and the min-cut
partitioner minimises saved activations. Each graph is lowered (lowering.py), partitioned by lamina, compiled and emitted as
one module (emit.py). Dynamic sizes are known at the call: a graph is compiled once per set of sizes, without tracing again.
"""

from __future__ import annotations

import collections
import functools
import itertools
import logging
import os
import time
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Optional

import torch
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._inductor import list_mode_options
from torch._dynamo.backends.common import aot_autograd
from torch._guards import CompileContext, TracingContext
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.fx import GraphModule, map_arg
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from lamina._errors import Error
from lamina.torch import emit as _emit
from lamina.torch.complex_pairs import split_complex
from lamina.torch.decompositions import all_decompositions
from lamina.torch.halves import turn_halves
from lamina.torch.int4 import unpack_int4
from lamina.torch.lowering import lower
from lamina.torch.recomputed_norms import make_norms_whole, write_out_norms
from lamina.torch.report import GraphReport, NodeReport, is_floating, report_of
from lamina.torch import whole_ops
from lamina.torch.rewrites import join_permutes, join_scalars, name_empty_statistics, prepare_joint, separate_gradients, split_dropout, widen_integer_products, widen_products
from lamina.torch.table import KEPT_WHOLE, TABLE
from lamina.torch.views import VIEW_RULES
from lamina.torch.weights import Settings

log = logging.getLogger("lamina.torch")
KEPT_SIZES = 256  # capacity of a graph's LRU cache of compiled sets of sizes


class FallbackWarning(UserWarning):
    """Warns that PyTorch runs a part of a model; the text has the number of nodes, and why."""


@dataclass
class Options:
    """require: the minimum share (0 to 1) of nodes computing floats that lamina must run; below it, compilation fails. dump:
    folder for a JSON dump of each graph, which `lamina replay` runs. warn: False silences FallbackWarning. pack: the most
    bytes that packed weights may take in the process; None: a quarter of the available memory, and matrices of floats that products
    read as they are stay unpacked. freeze: True packs weights at
    once, and notices only changes that torch counts. reports: a list to which a GraphReport of each compiled graph is added; it
    silences FallbackWarning, too."""

    require: Optional[float] = None
    dump: Optional[str] = None
    warn: bool = True
    pack: Optional[int] = None
    freeze: bool = False
    reports: Optional[list] = None
    compile_id: Any = None  # which compilation of which frame torch is at; not for users
    warned: list = field(default_factory=list)  # graphs of this compilation, forward or backward, with a warning; not for users
    names: tuple = ()  # of the inputs of the model's graph; not for users
    static: tuple = ()  # positions of the graph's inputs that are parameters and buffers; not for users

    @classmethod
    def of(cls, given: Optional[dict]) -> "Options":
        known = ("require", "dump", "warn", "pack", "freeze", "reports")
        for name in given or {}:
            if name not in known:
                raise Error(f"option {name!r} is unknown, allowed is one of {', '.join(known)}")
        options = cls(**(given or {}))
        if options.require is not None and not 0 <= options.require <= 1:
            raise Error(f"option require is {options.require}, allowed is 0 to 1")
        if options.reports is not None and not isinstance(options.reports, list):
            raise Error(f"option reports is {options.reports!r}, allowed is a list")
        if options.pack is not None and (not isinstance(options.pack, int) or options.pack < 0):
            raise Error(f"option pack is {options.pack!r}, allowed is a number of bytes, 0 or more")
        return options


@functools.cache
def decompositions() -> dict:
    """Decompositions (decompositions.py), except of ops that lamina, or torch itself, runs better as one op."""
    return all_decompositions(lambda op: _base(op) in KEPT_WHOLE)


def _base(op: Any) -> str:
    return str(op).split(".")[1] if "." in str(op) else str(op)


def backend(module: GraphModule, example_inputs: list, *, options: Optional[dict] = None, mode: Optional[str] = None) -> Callable:
    """The backend that torch.compile calls. `mode`, one of torch's, has no effect: lamina has only one mode."""
    if mode is not None and mode not in list_mode_options():
        raise Error(f"mode is {mode!r}, allowed is one of {', '.join(list_mode_options())}")
    names = tuple(node.name.strip("_") for node in module.graph.nodes if node.op == "placeholder")
    chosen = replace(Options.of(options), names=names)

    def compiler(phase: str) -> Callable:
        return lambda graph, inputs: compile_graph(graph, inputs, phase, chosen)

    return aot_autograd(fw_compiler=compiler("forward"), bw_compiler=compiler("backward"), inference_compiler=compiler("inference"),
                        decompositions=dict(decompositions()), partition_fn=partition, pre_grad_passes=whole_ops.keep_whole, keep_inference_input_mutations=True)(module, example_inputs)


def partition(joint: GraphModule, inputs: list, **settings: Any) -> tuple:
    """Splits a joint graph into forward and backward graphs."""
    prepare_joint(joint)
    write_out_norms(joint)
    forward, backward = min_cut_rematerialization_partition(joint, inputs, **settings)
    make_norms_whole(forward)
    separate_gradients(backward)
    return forward, backward


_numbers = collections.Counter()


def compile_graph(module: GraphModule, example_inputs: list, phase: str, options: Options) -> Callable:
    """Compiles a graph of ATen ops to a boxed function."""
    options = replace(options, compile_id=CompileContext.current_compile_id(), static=() if phase == "backward" else _static_inputs())
    number = _numbers[phase]
    _numbers[phase] += 1
    name = f"{phase}_{number}"
    if any(isinstance(value, torch.SymInt) for value in _values(module)):
        reason = _why_left_whole(module)
        if reason is not None:
            return _left_whole(module, name, reason, options)
        return _by_sizes(module, name, options)
    return _boxed(_compiled(module, name, options))


def _static_inputs() -> tuple:
    context = TracingContext.try_get()
    known = context.fw_metadata.static_input_indices if context is not None and context.fw_metadata is not None else None
    return tuple(known or ())


def _why_left_whole(module: GraphModule) -> Optional[str]:
    """Why the sizes of a graph cannot be replaced by numbers known from its inputs; None if they can."""
    for node in module.graph.nodes:
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return f"{node.target} contains graphs, and its sizes are known only at a call"
        value = node.meta.get("val")
        if value is not None and free_unbacked_symbols(value):  # index.Tensor has a tag for this, but only masks make such sizes
            return f"{node.target} returns a size or number that depends on data, and other sizes are known only at a call"
        for size in (*value.shape, *value.stride()) if isinstance(value, torch.Tensor) else (value,):
            if isinstance(size, torch.SymInt) and size.node.is_nested_int():
                return "a jagged tensor's sizes"
    return None


def _left_whole(module: GraphModule, name: str, reason: str, options: Options) -> Callable:
    """A graph that torch runs, with its report."""
    nodes = [NodeReport(node.name, str(node.target), False, is_floating(node.meta.get("val")), reason)
             for node in module.graph.nodes if node.op == "call_function" and isinstance(node.meta.get("val"), torch.Tensor)]
    _tell(GraphReport(name, nodes, 0), options)
    return _boxed(module)


def _values(module: GraphModule) -> list:
    """The sizes that are inputs, and the sizes of inputs."""
    found = []
    for node in module.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" else None
        found += [value] if isinstance(value, torch.SymInt) else list(value.shape) if isinstance(value, torch.Tensor) else []
    return found


def rewrite(module: GraphModule) -> None:
    """The rewrites before lowering, in their order."""
    split_dropout(module)
    name_empty_statistics(module)
    join_permutes(module)
    join_scalars(module)
    split_complex(module)
    turn_halves(module)
    widen_products(module)
    widen_integer_products(module)
    unpack_int4(module)


def _compiled(module: GraphModule, name: str, options: Options) -> GraphModule:
    begin = time.perf_counter()
    rewrite(module)
    lowered = lower(module, TABLE, VIEW_RULES)
    inputs = [node for node in lowered.lowering.module.graph.nodes if node.op == "placeholder"]
    names = options.names if len(options.names) == len(inputs) else [node.name for node in inputs]
    weights = _emit.Weights({inputs[i]: names[i] for i in options.static}, Settings(options.pack, options.freeze))
    emitted = _emit.emit(lowered, weights if options.static else None)
    report = report_of(name, lowered, emitted)
    report.seconds = time.perf_counter() - begin
    _tell(report, options)
    if options.dump is not None:
        os.makedirs(options.dump, exist_ok=True)
        with open(os.path.join(options.dump, f"{name}.json"), "w", encoding="utf-8") as file:
            file.write(lowered.lowering.graph.to_json())
    return emitted.module


def _tell(report: GraphReport, options: Options) -> None:
    log.info("%s", report.summary())
    if options.reports is not None:
        options.reports.append(report)
    if options.require is not None and report.share < options.require:
        raise Error(f"{report.summary()}; required is {options.require:.2%} of the nodes that compute floats", "unimplemented")
    if options.warn and options.reports is None and report.share < 1:
        if not options.warned and _is_new(options.compile_id):
            warnings.warn(report.warning(), FallbackWarning, stacklevel=2)
        options.warned.append(report.name)


_warned: dict = {}  # frame id -> number of the frame's compilation that issued the warning


def _is_new(current: Any) -> bool:
    """Whether no earlier compilation of the frame, for other sizes, issued the warning."""
    if current is None or current.frame_id is None:
        return True
    before = _warned.get(current.frame_id)
    if before is not None and before < current.frame_compile_id:
        return False
    _warned[current.frame_id] = current.frame_compile_id  # after a reset, numbers restart and ids denote other frames
    return True


def _boxed(module: GraphModule) -> Callable:
    forward = module.forward

    def call(inputs: list) -> Any:
        arguments = tuple(inputs)
        inputs.clear()
        return forward(*arguments)

    call._boxed_call = True
    return call


def _by_sizes(module: GraphModule, name: str, options: Options) -> Callable:
    """Compiles when a call first uses a set of sizes, which are read from the inputs' shapes."""
    known: collections.OrderedDict = collections.OrderedDict()
    compiled_count = itertools.count()

    def call(inputs: list) -> Any:
        key = tuple(v if isinstance(v, int) else tuple(v.shape) + tuple(v.stride()) for v in inputs if v is not None)
        compiled = known.get(key)
        if compiled is None:
            place = next(compiled_count)
            told = options if place == 0 else replace(options, warn=False)  # warns only once per graph
            compiled = known[key] = _boxed(_compiled(with_sizes(module, inputs), f"{name}_{place}", told))
            if len(known) > KEPT_SIZES:
                known.popitem(last=False)
        else:
            known.move_to_end(key)
        return compiled(inputs)

    call._boxed_call = True
    return call


def with_sizes(module: GraphModule, inputs: list) -> GraphModule:
    """Returns a copy for these inputs, in which every size is a number."""
    copy = GraphModule(module, _copied(module))
    with unset_fake_temporarily(), torch.no_grad():
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        FakeTensorProp(copy, mode=mode).propagate(*inputs)
        for node, value in zip((n for n in copy.graph.nodes if n.op == "placeholder"), inputs):
            if isinstance(value, int):
                node.meta["val"] = value
    known = lambda node: node.meta["val"] if isinstance(node.meta.get("val"), (int, float)) else node
    for node in copy.graph.nodes:
        if node.op == "call_function" and not isinstance(node.meta.get("val"), (int, float)):  # their arithmetic stays
            node.args, node.kwargs = map_arg(node.args, known), map_arg(node.kwargs, known)
    return copy


def _copied(module: GraphModule) -> torch.fx.Graph:
    graph = torch.fx.Graph()
    output = graph.graph_copy(module.graph, {}, return_output_node=False)
    graph.output(output)
    return graph
