"""Einsum, as transposes, reductions and matrix products."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy

from lamina.onnx.node import Node, Unfit
from lamina.onnx.indexed import places


class Term(NamedTuple):
    tensor: Any
    labels: list  # of its axes, each different


def einsum(node: Node) -> Any:
    tensors = node.tensors()
    node.floating(*tensors)
    inputs, output = _parsed(node, [node.rank(x) for x in tensors])
    terms = [_with_different_labels(node, x, labels) for x, labels in zip(tensors, inputs)]
    extents = _extents(node, terms)
    made = terms[0]
    for position, term in enumerate(terms[1:], 1):
        later = {label for other in terms[position + 1:] for label in other.labels} | set(output)
        made = _product(node, made, term, later, extents)
    made = _summed(node, made, set(output))
    order = [made.labels.index(label) for label in output]
    result = node.transpose(made.tensor, order) if order else made.tensor
    return node.copy(result) if result in tensors else result


def _parsed(node: Node, ranks: list) -> tuple:
    """Returns the labels of each input and of the output; the axes of an ellipsis have numbers as labels."""
    text = node.attribute("equation", "").replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise Unfit(f"{len(ranks)} inputs for the equation {text!r}")
    widest = max([rank - len(term) + 3 for term, rank in zip(inputs, ranks) if "..." in term], default=0)
    spelled = [_labels(term, widest, rank) for term, rank in zip(inputs, ranks)]
    if any(labels is None for labels in spelled):
        raise Unfit(f"an input whose rank does not fit the equation {text!r}")
    if arrow:
        return spelled, _labels(right, widest, None)
    letters = left.replace(",", "").replace(".", "")
    return spelled, list(range(widest)) + sorted(label for label in set(letters) if letters.count(label) == 1)


def _labels(term: str, widest: int, rank: Any) -> Any:
    before, dots, behind = term.partition("...")
    count = widest if rank is None else rank - len(before) - len(behind)
    if (not dots and rank is not None and count != 0) or count < 0:
        return None
    return [*before, *(range(widest - count, widest) if dots else []), *behind]


def _with_different_labels(node: Node, x: Any, labels: list) -> Term:
    """An axis whose label stands twice is a diagonal."""
    if len(set(labels)) == len(labels):
        return Term(x, labels)
    kept = list(dict.fromkeys(labels))
    numbers = {label: i for i, label in enumerate(kept)}
    return Term(node.take_elements(x, numpy.einsum(places(node.shape(x)), [numbers[label] for label in labels], list(range(len(kept))))), kept)


def _extents(node: Node, terms: list) -> dict:
    extents: dict = {}
    for term in terms:
        for label, extent in zip(term.labels, node.shape(term.tensor)):
            if extents.setdefault(label, extent) == 1:
                extents[label] = extent
            elif extent not in (1, extents[label]):
                raise Unfit(f"extents {extents[label]} and {extent} of one label")
    return extents


def _summed(node: Node, term: Term, kept: set) -> Term:
    gone = [axis for axis, label in enumerate(term.labels) if label not in kept]
    if not gone:
        return term
    return Term(node.op("ReduceSum", [term.tensor], axes=gone, keep_dims=False), [label for label in term.labels if label in kept])


def _product(node: Node, left: Term, right: Term, later: set, extents: dict) -> Term:
    """A matrix product: labels of both that are read later are batches, those of both that are not are summed."""
    left = _summed(node, left, later | set(right.labels))
    right = _summed(node, right, later | set(left.labels))
    both = [label for label in left.labels if label in right.labels]
    batch, inner = [label for label in both if label in later], [label for label in both if label not in later]
    rows, columns = ([label for label in term.labels if label not in both] for term in (left, right))
    sizes = lambda labels: [extents[label] for label in labels]
    factors = [_arranged(node, left, [batch, rows, inner], extents), _arranged(node, right, [batch, inner, columns], extents)]
    made = node.op("MatMul", factors) if factors[0].dtype != "f64" else _by_sums(node, factors)
    return Term(node.reshape(made, sizes(batch) + sizes(rows) + sizes(columns)), batch + rows + columns)


def _arranged(node: Node, term: Term, groups: list, extents: dict) -> Any:
    """Returns the tensor with its labels in the order of the groups, and one axis a group."""
    order = [label for group in groups for label in group]
    x = node.transpose(term.tensor, [term.labels.index(label) for label in order])
    x = node.expand(x, [extents[label] for label in order]) if order else x
    return node.reshape(x, [math.prod(extents[label] for label in group) for group in groups])


def _by_sums(node: Node, factors: list) -> Any:
    left, right = factors
    batch, rows, inner = node.shape(left)
    columns = node.shape(right)[2]
    spread = node.op("Multiply", [node.reshape(left, [batch, rows, inner, 1]), node.reshape(right, [batch, 1, inner, columns])])
    return node.op("ReduceSum", [spread], axes=[2], keep_dims=False)


RULES = {"Einsum": einsum}
