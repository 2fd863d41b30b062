"""Folds constant scales and shifts per channel behind a convolution into its weights and bias.

    Conv ── BatchNormalization ── Mul ── Add ── y        ==>        Conv ── y

The products are computed in float64 and rounded once. A convolution then needs no constants besides its own, and its result is
written once. Values of 16 bits stay as they are, because rounding their weights again would cost digits."""

from __future__ import annotations

from typing import Any, Iterator, Optional

import numpy
import onnx
from onnx import helper


def fold_scales(nodes: list, values: dict, outputs: set) -> list:
    """Returns the nodes in order, with each such chain replaced by its convolution.

    values: all known values by name; receives those of the new weights. outputs: names that must remain."""
    readers: dict = {}
    for node in nodes:
        for name in names_read(node):
            readers.setdefault(name, []).append(node)
    folded: dict = {}  # by the identity of a convolution: the one that replaces it
    dropped: set = set()
    for node in nodes:
        if not _is_convolution(node, values):
            continue
        made, chain = _Convolution(node, values), [node]
        while (follower := _only_reader(chain[-1], readers, outputs)) is not None and made.absorb(follower, chain[-1].output[0]):
            chain.append(follower)
        if len(chain) > 1:
            folded[id(node)] = made.node(chain[-1].output[0])
            dropped.update(id(each) for each in chain[1:])
    return [folded.get(id(node), node) for node in nodes if id(node) not in dropped]


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """Yields the names that the node reads, also those that the bodies of its subgraphs read from outside."""
    yield from node.input
    for attribute in node.attribute:
        for graph in ([attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs):
            yield from (value.name for value in graph.output)
            for inner in graph.node:
                yield from names_read(inner)


def _only_reader(node: onnx.NodeProto, readers: dict, outputs: set) -> Optional[onnx.NodeProto]:
    name = node.output[0]
    found = readers.get(name, [])
    return found[0] if len(found) == 1 and name not in outputs else None


def _is_convolution(node: onnx.NodeProto, values: dict) -> bool:
    constants = [name for name in node.input[1:] if name]
    return (node.op_type == "Conv" and node.domain in ("", "ai.onnx") and all(name in values for name in constants)
            and str(values[node.input[1]].dtype) in ("float32", "float64"))


class _Convolution:
    """A convolution with the scales and shifts that it has absorbed: sum * scale + shift, per channel."""

    def __init__(self, node: onnx.NodeProto, values: dict) -> None:
        self._node, self._values = node, values
        self._weights = values[node.input[1]]
        self._scale = numpy.ones(len(self._weights))
        has_bias = len(node.input) > 2 and node.input[2]
        self._shift = values[node.input[2]].astype("float64") if has_bias else numpy.zeros(len(self._weights))

    def absorb(self, node: onnx.NodeProto, source: str) -> bool:
        """Whether the node, which reads `source` and nothing else unknown, became part of the convolution."""
        if node.domain not in ("", "ai.onnx"):
            return False
        if node.op_type == "BatchNormalization":
            return self._absorb_norm(node, source)
        if node.op_type not in ("Mul", "Add") or list(node.input).count(source) != 1:
            return False
        operand = self._per_channel(self._values.get(next(name for name in node.input if name != source)))
        if operand is None:
            return False
        if node.op_type == "Mul":
            self._scale, self._shift = self._scale * operand, self._shift * operand
        else:
            self._shift = self._shift + operand
        return True

    def _absorb_norm(self, node: onnx.NodeProto, source: str) -> bool:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        given = [self._values.get(name) for name in node.input[1:]]
        is_plain = node.input[0] == source and not attributes.get("training_mode", 0) and sum(map(bool, node.output)) == 1
        if not is_plain or any(value is None or value.shape != self._scale.shape for value in given):
            return False
        gamma, beta, mean, variance = (value.astype("float64") for value in given)
        scale = gamma / numpy.sqrt(variance + attributes.get("epsilon", 1e-5))
        if not numpy.all(numpy.isfinite(scale)):
            return False
        self._scale, self._shift = self._scale * scale, (self._shift - mean) * scale + beta
        return True

    def _per_channel(self, value: Any) -> Any:
        """Returns one finite number per channel; None if the value differs along other axes, or broadcasts the convolution."""
        rank = self._weights.ndim
        if value is None or value.ndim > rank or str(value.dtype) != str(self._weights.dtype) or not numpy.all(numpy.isfinite(value)):
            return None
        shape = [1] * (rank - value.ndim) + list(value.shape)
        if any(extent != 1 for axis, extent in enumerate(shape) if axis != 1) or shape[1] not in (1, len(self._scale)):
            return None
        return numpy.broadcast_to(value.reshape(-1).astype("float64"), self._scale.shape)

    def node(self, output: str) -> onnx.NodeProto:
        dtype = self._weights.dtype
        weights, bias = f"{output}/weights", f"{output}/bias"
        self._values[weights] = (self._weights * self._scale.reshape([-1] + [1] * (self._weights.ndim - 1))).astype(dtype)
        self._values[bias] = self._shift.astype(dtype)
        made = onnx.NodeProto()
        made.CopyFrom(self._node)
        del made.input[:], made.output[:]
        made.input.extend([self._node.input[0], weights, bias])
        made.output.append(output)
        return made
