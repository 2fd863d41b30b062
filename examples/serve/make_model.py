"""Writes the graph and the weights of a small network, for `lamina export`: two linear layers with GELU, 256 -> 1024 -> 64.

    make_model.py DIR
    lamina export DIR/graph.json -o DIR/model.lamina --weights DIR --shapes 0:1..16x256

The second command exports it for batches of 1 to 16 rows. Needs only Python.
"""
import array
import json
import math
import pathlib
import random
import sys

INPUTS, HIDDEN, OUTPUTS = 256, 1024, 64
WEIGHTS = {1: (INPUTS, HIDDEN), 2: (HIDDEN,), 5: (HIDDEN, OUTPUTS), 6: (OUTPUTS,)}  # by id


def tensor(index, *shape, constant=False):
    strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
    return {"id": index, "dtype": "f32", "shape": shape, "stride": strides, "layout_type": "strided",
            "property_type": "constant" if constant else "variable"}


def op(index, kind, inputs, output, **attributes):
    return {"id": 100 + index, "name": f"{kind.lower()}{index}", "kind": kind, "inputs": inputs, "outputs": [output],
            "attrs": {name: {"type": "string", "value": value} for name, value in attributes.items()}}


def graph():
    weights = {index: tensor(index, *shape, constant=True) for index, shape in WEIGHTS.items()}
    src, dst = tensor(0, 1, INPUTS), tensor(7, 1, OUTPUTS)
    hidden = {index: tensor(index, 1, HIDDEN) for index in (3, 4)}
    return {"version": "0.1.0", "engine_kind": "cpu", "fpmath_mode": "strict", "input_ports": [0, *WEIGHTS], "output_ports": [7],
            "graph": [op(0, "MatMul", [src, weights[1], weights[2]], hidden[3]),
                      op(1, "GELU", [hidden[3]], hidden[4]),
                      op(2, "MatMul", [hidden[4], weights[5], weights[6]], dst)]}


def npy(shape, values):
    """Returns a file of numpy's format."""
    described = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    header = described.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + array.array("f", values).tobytes()


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.json").write_text(json.dumps(graph()), encoding="utf-8")
    draws = random.Random(1)
    for index, shape in WEIGHTS.items():
        scale = shape[0] ** -0.5
        (folder / f"{index}.npy").write_bytes(npy(shape, [draws.uniform(-scale, scale) for _ in range(math.prod(shape))]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
