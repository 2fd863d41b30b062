#!/usr/bin/env python3
"""Writes graph dumps of the parts of transformers, for `lamina replay` and `corpus`.

    transformer_dumps.py OUT_DIR [--attention BxHxSxD[xK]]... [--decoding BxHxSxD[xK]]... [--training BxHxSxD[xK]]...
                         [--encoder BxS]... [--types f32,bf16]

Attention: softmax(Q K' / sqrt(D)) V of a batch of B, H heads, S tokens and width D, with K heads of keys and values if K is
given (H is a multiple of it). Written for every type, and also causal: the graph computes the mask from indices. Scores are f32
in every type, as frameworks do.

Decoding: the same, not causal, of one query per head with S keys and values.

Training: the same attention with Dropout of its weights: the forward pass with the statistics of the softmax, and the gradients
of query, key and value, which recompute the weights from the statistics. Each is a separate dump.

Encoder: a layer of BERT-base, in f32, for a batch of B sequences of S tokens. Its weights are constant. Heads are split
and joined by views: the transposed tensors have the strides of the tensor in memory.

Without shapes: 1x12x512x64, 1x32x2048x128x8, 8x16x1024x64, decoding of 1x32x4096x128x8 and 1x32x32768x128x8, and encoders 1x128, 1x512, 8x128, 8x512.
"""
import argparse
import json
import math
import os
import sys

ATTENTION_SHAPES = [(1, 12, 512, 64, 12), (1, 32, 2048, 128, 8), (8, 16, 1024, 64, 16)]
DECODING_SHAPES = [(1, 32, 4096, 128, 8), (1, 32, 32768, 128, 8)]  # one query per head
ENCODER_SHAPES = [(1, 128), (1, 512), (8, 128), (8, 512)]
TYPES = ("f32", "bf16")

HIDDEN = 768
HEADS = 12
WIDTH = HIDDEN // HEADS
INTERMEDIATE = 3072
EPSILON = 1e-12


def dense_strides(shape):
    return [math.prod(shape[axis + 1:]) for axis in range(len(shape))]


def attribute(value):
    if isinstance(value, bool):
        return {"type": "bool", "value": int(value)}
    if isinstance(value, int):
        return {"type": "s64", "value": value}
    if isinstance(value, float):
        return {"type": "f32", "value": value}
    if isinstance(value, str):
        return {"type": "string", "value": value}
    return {"type": "s64[]", "value": list(value)}


class Dump:
    """A graph under construction. `inputs` contains the tensors without a producer, by name. `output` is the result, and `results`
    are further ones."""

    def __init__(self, name):
        self.name = name
        self.ops = []
        self.tensors = 0
        self.inputs = {}
        self.output = None
        self.results = []

    def tensor(self, dtype, shape, strides=None, property_type="undef"):
        self.tensors += 1
        strides = dense_strides(shape) if strides is None else strides
        return {"id": self.tensors - 1, "dtype": dtype, "shape": list(shape), "stride": list(strides),
                "layout_type": "strided", "property_type": property_type}

    def input(self, name, dtype, shape, property_type="undef"):
        self.inputs[name] = self.tensor(dtype, shape, property_type=property_type)
        return self.inputs[name]

    def op(self, kind, inputs, output, *others, **attributes):
        """Adds an op and returns its first output."""
        self.ops.append({"id": len(self.ops), "name": f"{kind}_{len(self.ops)}", "kind": kind,
                         "attrs": {name: attribute(value) for name, value in attributes.items()},
                         "inputs": list(inputs), "outputs": [output, *others]})
        self.output = output
        return output

    def like(self, kind, inputs, **attributes):
        """An op whose output has the type and shape of its first input."""
        return self.op(kind, inputs, self.tensor(inputs[0]["dtype"], inputs[0]["shape"]), **attributes)

    def reshape(self, source, shape):
        return self.op("StaticReshape", [source], self.tensor(source["dtype"], shape), shape=shape, special_zero=False)

    def swap_middle_axes(self, source):
        """A view from [B, S, H, D] to [B, H, S, D], or back."""
        order = [0, 2, 1, 3]
        shape, strides = ([source[key][axis] for axis in order] for key in ("shape", "stride"))
        return self.op("StaticTranspose", [source], self.tensor(source["dtype"], shape, strides), order=order)

    def matmul(self, inputs, output, transpose_a=False, transpose_b=False):
        return self.op("MatMul", inputs, output, transpose_a=transpose_a, transpose_b=transpose_b, accumulation_mode="strict")

    def cast(self, source, dtype):
        return source if source["dtype"] == dtype else self.op("TypeCast", [source], self.tensor(dtype, source["shape"]))

    def write(self, path):
        made = {tensor["id"] for op in self.ops for tensor in op["outputs"]}
        content = {"version": "3.11.0", "engine_kind": "cpu", "fpmath_mode": "strict", "fpmath_mode_apply_to_int": "false",
                   "input_ports": [t["id"] for op in self.ops for t in op["inputs"] if t["id"] not in made],
                   "output_ports": [t["id"] for t in self.results + [self.output]], "graph": self.ops}
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.write("\n")
        os.replace(path + ".new", path)


def causal_mask(dump, scores):
    """Replaces the scores of keys after the query by the input "hidden", which is -infinity."""
    rank, shape = len(scores["shape"]), scores["shape"]
    query, key = (dump.op("GenIndex", [scores], dump.tensor("s32", shape), axis=axis) for axis in (rank - 2, rank - 1))
    keep = dump.op("GreaterEqual", [query, key], dump.tensor("boolean", shape), auto_broadcast="numpy")
    hidden = dump.input("hidden", "f32", [], "host_scalar")
    return dump.op("Select", [keep, scores, hidden], dump.tensor("f32", shape), auto_broadcast="numpy")


def attention(batch, heads, tokens, width, kv_heads, dtype, causal, queries=None):
    """Inputs query [B, H, Q, D], key and value [B, K, S, D], scale [] = 1 / sqrt(D) and, causal, hidden [] = -infinity. Q, the
    number of queries, is S by default; it is smaller when a model decodes with a cache of keys and values."""
    grouped = kv_heads != heads
    suffix = (f"-kv{kv_heads}" if grouped else "") + ("-causal" if causal else "") + (f"-q{queries}" if queries else "")
    queries = queries or tokens
    dump = Dump(f"attention-{batch}x{heads}x{tokens}x{width}{suffix}-{dtype}")
    query = dump.input("query", dtype, [batch, heads, queries, width])
    key, value = (dump.input(port, dtype, [batch, kv_heads, tokens, width]) for port in ("key", "value"))
    scale = dump.input("scale", "f32", [], "host_scalar")
    rows = [batch, heads, queries]
    if grouped:  # the queries of a group share a head of keys
        rows = [batch, kv_heads, heads // kv_heads, queries]
        query = dump.reshape(query, rows + [width])
        key, value = (dump.reshape(tensor, [batch, kv_heads, 1, tokens, width]) for tensor in (key, value))
    scores = dump.matmul([query, key], dump.tensor("f32", rows + [tokens]), transpose_b=True)
    scores = dump.like("Multiply", [scores, scale], auto_broadcast="numpy")
    if causal:
        scores = causal_mask(dump, scores)
    weights = dump.op("SoftMax", [scores], dump.tensor(dtype, scores["shape"]), axis=-1, mode="inf_as_zero")
    result = dump.matmul([weights, value], dump.tensor(dtype, rows + [width]))
    if grouped:
        dump.reshape(result, [batch, heads, queries, width])
    return dump


class Training:
    """Builds the dumps of attention in training. Inputs of both: query [B, H, S, D], key and value [B, K, S, D], scale [] =
    1 / sqrt(D), and seed [], offset [] and probability [] of the Dropout. Inputs of the gradients: also stats [B, H, S, 1], the
    logarithm of each row's sum of exponentials, and dst and diff_dst [B, H, S, D]."""

    def __init__(self, batch, heads, tokens, width, kv_heads, dtype):
        self.dtype, self.grouped = dtype, kv_heads != heads
        self.name = f"{batch}x{heads}x{tokens}x{width}" + (f"-kv{kv_heads}" if self.grouped else "") + f"-{dtype}"
        self.rows = [batch, kv_heads, heads // kv_heads, tokens] if self.grouped else [batch, heads, tokens]
        self.shared = [batch, kv_heads, 1, tokens] if self.grouped else self.rows
        self.tokens, self.width = tokens, width

    def begin(self, direction):
        self.dump = dump = Dump(f"attention-training-{direction}-{self.name}")
        self.query = dump.input("query", self.dtype, self.rows + [self.width])
        self.key, self.value = (dump.input(port, self.dtype, self.shared + [self.width]) for port in ("key", "value"))
        self.random = [dump.input(port, dtype, [], "host_scalar")
                       for port, dtype in (("seed", "s64"), ("offset", "s64"), ("probability", "f32"))]
        self.scale = dump.input("scale", "f32", [], "host_scalar")
        scores = dump.matmul([self.query, self.key], dump.tensor("f32", self.rows + [self.tokens]), transpose_b=True)
        return dump, dump.like("Multiply", [scores, self.scale], auto_broadcast="numpy")

    def dropout(self, source):
        return self.dump.like("Dropout", [source] + self.random)

    def forward(self):
        dump, scores = self.begin("forward")
        stats = dump.tensor("f32", self.rows + [1])
        weights = dump.op("SoftMax", [scores], dump.tensor(self.dtype, scores["shape"]), stats, axis=-1, mode="inf_as_zero")
        dump.results = [stats]
        dump.matmul([self.dropout(weights), self.value], dump.tensor(self.dtype, self.rows + [self.width]))
        return dump

    def backward(self):
        dump, scores = self.begin("backward")
        stats = dump.input("stats", "f32", self.rows + [1])
        dst, diff_dst = (dump.input(port, self.dtype, self.rows + [self.width]) for port in ("dst", "diff_dst"))
        weights = dump.like("Exp", [dump.like("Subtract", [scores, stats], auto_broadcast="numpy")])
        diff_value = self.gradient(dump.cast(self.dropout(weights), self.dtype), diff_dst)
        diff_weights = dump.matmul([diff_dst, self.value], dump.tensor("f32", scores["shape"]), transpose_b=True)
        products = dump.op("Multiply", [dst, diff_dst], dump.tensor("f32", dst["shape"]), auto_broadcast="numpy")
        inner = dump.op("ReduceSum", [products], dump.tensor("f32", stats["shape"]), axes=[-1], keep_dims=True)
        diff_scores = dump.like("Subtract", [self.dropout(diff_weights), inner], auto_broadcast="numpy")
        diff_scores = dump.like("Multiply", [weights, diff_scores], auto_broadcast="numpy")
        diff_scores = dump.cast(dump.like("Multiply", [diff_scores, self.scale], auto_broadcast="numpy"), self.dtype)
        diff_key = self.gradient(diff_scores, self.query)
        dump.results = [diff_value, diff_key]
        dump.matmul([diff_scores, self.key], dump.tensor(self.dtype, self.rows + [self.width]))
        return dump

    def gradient(self, scores, other):
        """The gradient of key or value: the sum over the queries, and over the heads that share it."""
        dump = self.dump
        result = dump.matmul([scores, other], dump.tensor(self.dtype, self.rows + [self.width]), transpose_a=True)
        if not self.grouped:
            return result
        return dump.op("ReduceSum", [result], dump.tensor(self.dtype, self.shared + [self.width]), axes=[2], keep_dims=True)


class Encoder:
    """Builds the dump of a BERT-base layer. Inputs: hidden_states [B, S, 768]; mask [B, 1, 1, S], which is added to the scores;
    divisor [] = 8; weights [in, out] and biases of query, key, value, attention, intermediate and dense; gamma and beta of
    the norms attention_norm and dense_norm."""

    def __init__(self, batch, tokens):
        self.batch, self.tokens = batch, tokens
        self.dump = Dump(f"bert-base-layer-{batch}x{tokens}-f32")

    def build(self):
        states = self.dump.input("hidden_states", "f32", [self.batch, self.tokens, HIDDEN])
        projected = self.linear("attention", self.attention(states), HIDDEN)
        states = self.add_and_norm("attention_norm", projected, states)
        inner = self.dump.like("GELU", [self.linear("intermediate", states, INTERMEDIATE)], mode="gelu_erf")
        self.add_and_norm("dense_norm", self.linear("dense", inner, HIDDEN), states)
        return self.dump

    def attention(self, states):
        dump, shape = self.dump, [self.batch, HEADS, self.tokens, self.tokens]
        query, key, value = (self.heads(self.linear(name, states, HIDDEN)) for name in ("query", "key", "value"))
        scores = dump.matmul([query, key], dump.tensor("f32", shape), transpose_b=True)
        divisor = dump.input("divisor", "f32", [], "constant")
        scores = dump.like("Divide", [scores, divisor], auto_broadcast="numpy")
        mask = dump.input("mask", "f32", [self.batch, 1, 1, self.tokens])
        scores = dump.like("Add", [scores, mask], auto_broadcast="numpy")
        weights = dump.like("SoftMax", [scores], axis=-1, mode="inf_as_zero")
        result = dump.tensor("f32", [self.batch, HEADS, self.tokens, WIDTH], query["stride"])
        joined = dump.swap_middle_axes(dump.matmul([weights, value], result))
        return dump.reshape(joined, [self.batch, self.tokens, HIDDEN])

    def heads(self, source):
        return self.dump.swap_middle_axes(self.dump.reshape(source, [self.batch, self.tokens, HEADS, WIDTH]))

    def linear(self, name, source, width):
        weight = self.dump.input(name + ".weight", "f32", [source["shape"][-1], width], "constant")
        bias = self.dump.input(name + ".bias", "f32", [width], "constant")
        return self.dump.matmul([source, weight, bias], self.dump.tensor("f32", source["shape"][:-1] + [width]))

    def add_and_norm(self, name, source, residual):
        total = self.dump.like("Add", [source, residual], auto_broadcast="numpy")
        affine = [self.dump.input(f"{name}.{part}", "f32", [HIDDEN], "constant") for part in ("gamma", "beta")]
        return self.dump.like("LayerNorm", [total] + affine, begin_norm_axis=-1, epsilon=EPSILON, keep_stats=False,
                              use_affine=True)


def encoder(batch, tokens):
    """The dump of a BERT-base layer; see Encoder."""
    return Encoder(batch, tokens).build()


def extents(text, counts):
    """Positive integers between x; as many as `counts` allows."""
    parts = text.split("x")
    if len(parts) not in counts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"\"{text}\", allowed are {' or '.join(map(str, counts))} positive extents between x")
    return tuple(map(int, parts))


def attention_shape(text):
    shape = extents(text, (4, 5))
    shape = shape if len(shape) == 5 else shape + (shape[1],)
    if shape[1] % shape[4] != 0:
        raise argparse.ArgumentTypeError(f"\"{text}\": {shape[1]} heads, allowed is a multiple of the {shape[4]} heads of keys")
    return shape


def types(text):
    chosen = text.split(",")
    for name in chosen:
        if name not in TYPES:
            raise argparse.ArgumentTypeError(f"\"{name}\" is no type, allowed are {', '.join(TYPES)}")
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="OUT_DIR")
    parser.add_argument("--attention", action="append", default=[], type=attention_shape, metavar="BxHxSxD[xK]")
    parser.add_argument("--decoding", action="append", default=[], type=attention_shape, metavar="BxHxSxD[xK]")
    parser.add_argument("--training", action="append", default=[], type=attention_shape, metavar="BxHxSxD[xK]")
    parser.add_argument("--encoder", action="append", default=[], type=lambda text: extents(text, (2,)), metavar="BxS")
    parser.add_argument("--types", type=types, default=list(TYPES), help="of attention; all by default")
    given = parser.parse_args()
    every = not (given.attention or given.decoding or given.training or given.encoder)
    dumps = [attention(*shape, dtype, causal) for shape in (ATTENTION_SHAPES if every else given.attention)
             for causal in (False, True) for dtype in given.types]
    dumps += [attention(*shape, dtype, False, queries=1) for shape in (DECODING_SHAPES if every else given.decoding)
              for dtype in given.types]
    for training in (Training(*shape, dtype) for shape in given.training for dtype in given.types):
        dumps += [training.forward(), training.backward()]
    dumps += [encoder(*shape) for shape in (ENCODER_SHAPES if every else given.encoder)]
    try:
        os.makedirs(given.folder, exist_ok=True)
        for dump in dumps:
            path = os.path.join(given.folder, dump.name + ".json")
            dump.write(path)
            print(path)
    except OSError as error:
        sys.exit(f"transformer_dumps.py: {error}")


if __name__ == "__main__":
    main()
