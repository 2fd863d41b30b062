"""Reports of which nodes of a model lamina runs, which PyTorch runs, and why."""

from __future__ import annotations

import collections
import html
import json
import operator
from dataclasses import dataclass, field
from typing import Any, Optional

import torch

from lamina.explanation import Explanation, framed
from lamina.torch.nodes import REINTERPRETED, VIEWS, base_of, draws, name_of, writes_to_input

KINDS_IN_A_WARNING = 3


@dataclass
class NodeReport:
    name: str
    op: str  # "aten.gelu.default"
    carried: bool
    floating: bool  # it computes floats; nodes that draw random numbers always run in torch and do not count
    reason: str = ""  # why PyTorch runs it


@dataclass
class GraphReport:
    """One graph: its nodes that compute tensors, and its calls into lamina."""

    name: str
    nodes: list
    calls: int
    partitions: list = field(default_factory=list)  # the explanation of each: ops with reasons
    kernels: list = field(default_factory=list)  # the compiled kernels of each partition
    explanation: Optional[Explanation] = None  # a picture of lamina's part; None if there is none
    seconds: float = 0.0  # the time for lowering and compiling
    packings: list = field(default_factory=list)  # what packs the weights of each call

    @property
    def share(self) -> float:
        """The share of nodes computing floats that lamina runs; 1 if the graph has no such nodes."""
        floating = [node for node in self.nodes if node.floating]
        return sum(node.carried for node in floating) / len(floating) if floating else 1.0

    def left(self) -> list:
        return [node for node in self.nodes if not node.carried]

    def summary(self, name: Optional[str] = None) -> str:
        """Returns one sentence; `name` replaces the graph's own name."""
        carried = sum(node.carried for node in self.nodes)
        text = f"lamina runs {carried} of {len(self.nodes)} nodes of {name or self.name} ({self.share:.1%} of those that compute floats) in {self.calls} calls"
        left = collections.Counter((node.op, node.reason) for node in self.left())
        if left:
            text += "; left to PyTorch: " + ", ".join(f"{count} x {op} ({reason})" for (op, reason), count in left.most_common())
        return text

    def warning(self) -> str:
        """Returns a line about the nodes with floats that are left to PyTorch: the most frequent kinds."""
        floating = [node for node in self.nodes if node.floating]
        left = collections.Counter((node.op, node.reason) for node in floating if not node.carried).most_common()
        kinds = ", ".join(f"{count} x {op} ({reason})" for (op, reason), count in left[:KINDS_IN_A_WARNING])
        more = f" and {len(left) - KINDS_IN_A_WARNING} other kinds" if len(left) > KINDS_IN_A_WARNING else ""
        return (f"lamina runs {sum(node.carried for node in floating)} of {len(floating)} nodes that compute floats ({self.share:.1%}) in "
                f"{self.name.split('_')[0]}, left to PyTorch: {kinds}{more}; lamina.torch.explain lists all")

    def weights(self) -> list:
        """Returns a WeightReport for each weight of products that is an input of the graph."""
        return [WeightReport(candidate.name, candidate.size, why == "", why) for packing in self.packings for candidate, why in packing.told()[0]]

    def weights_summary(self) -> str:
        """Returns one sentence; "" if no weights are inputs."""
        told = self.weights()
        if not told:
            return ""
        kept = [weight for weight in told if weight.packed]
        text = f"{len(kept)} of {len(told)} weights of {self.name} are packed once they stay the same, in {sum(p.told()[1] for p in self.packings):,} bytes"
        left = collections.Counter(weight.reason for weight in told if not weight.packed)
        return text + "".join(f"; {count} are not: {reason}" for reason, count in left.most_common())


@dataclass
class WeightReport:
    """Weights that products read from an input of a graph."""

    name: str
    size: int  # bytes
    packed: bool
    reason: str  # why it is not packed


@dataclass
class Report:
    """The result of `lamina.torch.explain`. It prints as text; a notebook shows it as a table."""

    graphs: list  # GraphReport
    graph_breaks: int

    @property
    def calls(self) -> int:
        """The number of calls into lamina, over all graphs."""
        return sum(graph.calls for graph in self.graphs)

    def left(self) -> list:
        """Returns a NodeReport, with its reason, for each node that PyTorch runs."""
        return [node for graph in self.graphs for node in graph.left()]

    @property
    def share(self) -> float:
        nodes = [node for graph in self.graphs for node in graph.nodes if node.floating]
        return sum(node.carried for node in nodes) / len(nodes) if nodes else 1.0

    def __str__(self) -> str:
        lines = [line for graph in self.graphs for line in (graph.summary(), graph.weights_summary()) if line]
        return "\n".join([*lines, f"graph breaks: {self.graph_breaks}"])

    def show(self) -> list:
        """Opens a page with partitions, kernels and tiles for each graph with nodes that lamina runs. Returns the paths of
        the files."""
        return [graph.explanation.show() for graph in self.graphs if graph.explanation]

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{html.escape(graph.name)}<td>{html.escape(node.op)}<td>{'lamina' if node.carried else 'PyTorch'}"
                       f"<td>{html.escape(node.reason)}" for graph in self.graphs for node in graph.nodes)
        pictures = [graph.explanation.text() for graph in self.graphs if graph.explanation]
        return framed(*pictures) + f"<table><tr><th>graph<th>op<th>runs by<th>reason{rows}</table>"


def _explanation(name: str, emitted: Any) -> Optional[Explanation]:
    pairs = [pair for call in emitted.calls for pair in zip(call.partitions, call.compiled)]
    return Explanation([p for p, _ in pairs], [c for _, c in pairs], name) if pairs else None


def is_floating(value: Any) -> bool:
    values = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(v, torch.Tensor) and v.is_floating_point() for v in values)


def report_of(name: str, lowered: Any, emitted: Any) -> GraphReport:
    lowering, nodes = lowered.lowering, []
    for node in lowering.module.graph.nodes:
        if node.op != "call_function" or node.target is operator.getitem or node in lowering.constants or base_of(node) in VIEWS | REINTERPRETED:
            continue
        if not isinstance(node.meta.get("val"), (torch.Tensor, list, tuple)) or writes_to_input(node):
            continue
        carried = node in lowering.inner
        floating = is_floating(node.meta["val"]) and not draws(node)
        op = str(node.target) if isinstance(node.target, torch._ops.OpOverload) else getattr(node.target, "__name__", str(node.target))
        nodes.append(NodeReport(node.name, op, carried, floating, lowering.reasons.get(node, "")))
    partitions = [json.loads(partition.reasons_json()) for partition in lowered.partitions]
    kernels = [json.loads(code.info_json()) for call in emitted.calls for code in call.compiled]
    return GraphReport(name, nodes, len(emitted.calls), partitions, kernels, _explanation(name, emitted), packings=emitted.packings)
