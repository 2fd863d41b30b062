#!/usr/bin/env python3
"""Runs convolutional networks of the onnx package through lamina and ONNX Runtime, in turns, each in a process of its own.

    onnx_models.py [MODEL]... [--threads 1,2] [--rounds R] [--seconds S] [--int8] [--batch N] [--openvino] [--profile FOLDER]
                   [--json FILE]
    onnx_models.py --smoke

MODEL: a part of a name (resnet50, densenet121, ...) or a path; default: all models in onnx/backend/test/data/light. In these each
weight has one value for all elements; random values replace it. One row per model and number of threads:
  lamina, ORT    milliseconds per call: the median of all calls of R rounds; in a round each runs for S seconds
  ratio          ORT over lamina: above 1, lamina is faster
  fastest        the same of the fastest calls, which neighbours of the machine disturb less
  first, s       from reading the model to the first result, of lamina and of ORT
  MB             the most memory of the processes, with the interpreter
  apart          the largest difference of the outputs, relative to the largest output
The last row of each number of threads is the geometric mean of the ratios.

--int8 runs the model as onnxruntime.quantization makes it: static, QuantizeLinear and DequantizeLinear, u8 activations, s8 weights
per channel, calibrated with random inputs. --batch N gives the model's inputs N as their first extent.

Needs the packages lamina, onnx and onnxruntime; --openvino also openvino. --profile writes MODEL-THREADS.txt and .json for each
model (lamina.profile) instead. --smoke runs a small model once, and compares with ONNX Runtime only if it is installed.
"""
import argparse
import importlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

OWN = "ONNX_MODELS_THREADS"  # the number of threads of a process that profiles


def models_of(names):
    """Returns the paths of the models."""
    import onnx

    folder = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
    all_of_them = sorted(folder.glob("*.onnx"))
    found = []
    for name in names:
        matches = [pathlib.Path(name)] if pathlib.Path(name).is_file() else [path for path in all_of_them if name in path.stem]
        if not matches:
            sys.exit(f"{name}: no file, and no model in {folder} has this in its name")
        found += matches
    return found if names else all_of_them


def small_model():
    """Convolutions, a pool and a Concat, with random weights."""
    import numpy
    from onnx import helper, numpy_helper

    rng = numpy.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(shape, dtype="f") * 0.3, name)
               for name, shape in (("w", (8, 3, 3, 3)), ("b", (8,)), ("v", (16, 8, 1, 1)))]
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), helper.make_node("Conv", ["p", "v"], ["d"]),
             helper.make_node("Concat", ["r", "d"], ["e"], axis=1), helper.make_node("GlobalAveragePool", ["e"], ["y"])]
    value = lambda name, shape: helper.make_tensor_value_info(name, 1, shape)
    graph = helper.make_graph(nodes, "small", [value("x", (1, 3, 12, 12))], [value("y", (1, 24, 1, 1))], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def with_random_weights(model):
    """Replaces the tensors that ConstantOfShape makes: matrices and filters are scaled so that results keep their magnitude, and
    lists (scales, shifts, variances) are about 1."""
    import numpy
    from onnx import numpy_helper

    rng, values = numpy.random.default_rng(2), {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept, made = [], []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in values:
            kept.append(node)
            continue
        shape = [int(extent) for extent in values[node.input[0]]]
        fan_in = math.prod(shape[1:])
        array = rng.standard_normal(shape, dtype="f") * math.sqrt(2 / fan_in) if len(shape) > 1 else 0.5 + rng.random(shape, dtype="f")
        made.append(numpy_helper.from_array(array.astype("f"), node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    model.graph.initializer.extend(made)
    model.ir_version = max(model.ir_version, 4)  # before, initializers had to be inputs too
    return model


def with_batch(model, batch):
    """Gives inputs, and the shapes of Reshape nodes that begin with 1, this first extent."""
    import numpy
    from onnx import numpy_helper

    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    for value in [*model.graph.input, *model.graph.output]:
        if value.name not in weights:
            value.type.tensor_type.shape.dim[0].dim_value = batch
    for node in model.graph.node:
        shape = numpy_helper.to_array(weights[node.input[1]]) if node.op_type == "Reshape" and node.input[1] in weights else None
        if shape is not None and shape.size > 1 and shape[0] == 1:
            weights[node.input[1]].CopyFrom(numpy_helper.from_array(numpy.concatenate([[batch], shape[1:]]), node.input[1]))
    del model.graph.value_info[:]
    return model


def quantized(model):
    """Quantises a model statically, with random inputs for calibration."""
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Inputs(CalibrationDataReader):
        def __init__(self):
            self.given = iter([inputs_of(model, seed) for seed in range(4)])

        def get_next(self):
            return next(self.given, None)

    if model.opset_import[0].version < 13:  # scales per channel
        model = onnx.version_converter.convert_version(model, 13)
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{name}.onnx" for name in ("given", "prepared", "quantized")]
        onnx.save(model, files[0])
        quant_pre_process(*files[:2], skip_symbolic_shape=True)
        quantize_static(*files[1:], Inputs(), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        per_channel=True)
        return onnx.load(files[2])


# ---- runtimes: a function of the path of a model, which returns a function of a dict of arrays that returns the outputs

def lamina_runtime(path, threads):
    import lamina

    return lamina.from_onnx(path)


def onnx_runtime(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


def open_vino(path, threads):
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU",
                                  {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    return lambda inputs: list(request.infer(inputs).values())


MODULES = {"lamina": "lamina", "ORT": "onnxruntime", "OpenVINO": "openvino"}
MAKERS = {"lamina": lamina_runtime, "ORT": onnx_runtime, "OpenVINO": open_vino}


def most_memory():
    """Returns the most MB that this process has had (Linux)."""
    line = next(line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def serve(name, folder, threads):
    """Runs the model in the folder, and prints the seconds to its first result; then times, in milliseconds, for the seconds that each
    line of the standard input has, and at its end the most memory in MB."""
    import numpy

    importlib.import_module(MODULES[name])
    folder, inputs = pathlib.Path(folder), dict(numpy.load(f"{folder}/inputs.npz"))
    begin = time.perf_counter()
    run = MAKERS[name](f"{folder}/model.onnx", threads)
    outputs = run(inputs)
    first = time.perf_counter() - begin
    numpy.savez(folder / f"{name}.npz", *[numpy.asarray(output) for output in outputs])
    print(first, flush=True)
    for line in sys.stdin:
        run(inputs)  # brings its data to the caches
        times, until = [], time.perf_counter() + float(line)
        while not times or time.perf_counter() < until:
            begin = time.perf_counter()
            run(inputs)
            times.append((time.perf_counter() - begin) * 1e3)
        print(json.dumps(times), flush=True)
    print(most_memory(), flush=True)


class Runtime:
    """A process that serves."""

    def __init__(self, name, folder, threads):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen([sys.executable, __file__, "--serve", name, folder, "--threads", str(threads)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.first, self.taken = self.answer(), []

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{' '.join(self.process.args)} ended with {self.process.wait()}")
        return json.loads(line)

    def run(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        self.taken += self.answer()

    def end(self):
        """Returns its most memory."""
        self.process.stdin.close()
        memory = self.answer()
        self.process.wait()
        return memory


def inputs_of(model, seed=1):
    import numpy

    rng, weights = numpy.random.default_rng(seed), {tensor.name for tensor in model.graph.initializer}
    return {value.name: rng.random([dim.dim_value for dim in value.type.tensor_type.shape.dim], dtype="f")
            for value in model.graph.input if value.name not in weights}


def apart(a, b):
    """Returns the largest difference of two lists of arrays, relative to the largest element of the second."""
    import numpy

    return max(float(numpy.max(numpy.abs(x - y)) / max(float(numpy.max(numpy.abs(y))), 1e-30)) for x, y in zip(a, b))


def model_of(path, chosen):
    import onnx

    model = small_model() if path is None else with_random_weights(onnx.load(path))
    if chosen.batch > 1:
        model = with_batch(model, chosen.batch)
    return quantized(model) if chosen.int8 else model


def compared(path, chosen, threads):
    import numpy

    model = model_of(path, chosen)
    names = ["lamina", *(["ORT"] if not chosen.smoke or has_onnx_runtime() else []), *(["OpenVINO"] if chosen.openvino else [])]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "model.onnx").write_bytes(model.SerializeToString())
        numpy.savez(f"{folder}/inputs.npz", **inputs_of(model))
        runtimes = {name: Runtime(name, folder, threads) for name in names}
        outputs = {name: list(numpy.load(f"{folder}/{name}.npz").values()) for name in names}
        for _ in range(chosen.rounds):
            for runtime in runtimes.values():
                runtime.run(chosen.seconds)
        memory = {name: runtime.end() for name, runtime in runtimes.items()}
    row = {"model": "small" if path is None else path.stem.removeprefix("light_"), "threads": threads, "MB": memory}
    row["ms"] = {name: statistics.median(runtime.taken) for name, runtime in runtimes.items()}
    row["fastest"] = {name: min(runtime.taken) for name, runtime in runtimes.items()}
    row["first"] = {name: runtime.first for name, runtime in runtimes.items()}
    row["apart"] = max((apart(outputs["lamina"], other) for name, other in outputs.items() if name != "lamina"), default=0.0)
    return row


def has_onnx_runtime():
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return False
    return True


def write_profile(path, chosen, threads):
    import lamina

    folder, model = pathlib.Path(chosen.profile), model_of(path, chosen)
    run, inputs = lamina_runtime(model, threads), inputs_of(model)
    run(inputs)
    with lamina.profile(path.stem.removeprefix("light_")) as profile:
        until = time.perf_counter() + max(chosen.seconds, 1.0)
        while time.perf_counter() < until:
            run(inputs)
    folder.mkdir(parents=True, exist_ok=True)
    name = folder / f"{path.stem.removeprefix('light_')}-{threads}"
    name.with_suffix(".txt").write_text(str(profile))
    name.with_suffix(".json").write_text(json.dumps(profile.data, indent=1))
    print(str(profile).splitlines()[0])


def print_rows(rows):
    runtimes = list(rows[0]["ms"])
    others = runtimes[1:]
    width = max(16, *(len(row["model"]) + 1 for row in rows))
    print(f"{'model':{width}}{'threads':>8}" + "".join(f"{name + ' ms':>12}" for name in runtimes)
          + "".join(f"{'ratio':>8}{'fastest':>8}" for _ in others) + f"{'first, s':>{7 * len(runtimes)}}{'MB':>{6 * len(runtimes)}}"
          + f"{'apart':>9}")
    for threads in sorted({row["threads"] for row in rows}):
        ratios = {name: [] for name in others}
        for row in (row for row in rows if row["threads"] == threads):
            line = f"{row['model']:{width}}{threads:>8}" + "".join(f"{row['ms'][name]:>12.2f}" for name in runtimes)
            for name in others:
                ratios[name].append([row[key][name] / row[key]["lamina"] for key in ("ms", "fastest")])
                line += "".join(f"{ratio:>8.2f}" for ratio in ratios[name][-1])
            line += "".join(f"{row['first'][name]:>7.2f}" for name in runtimes) + "".join(f"{row['MB'][name]:>6.0f}" for name in runtimes)
            print(line + f"{row['apart']:>9.1g}")
        if others:
            means = [statistics.geometric_mean(column) for name in others for column in zip(*ratios[name])]
            print(f"{'geometric mean':{width}}{threads:>8}" + " " * 12 * len(runtimes) + "".join(f"{mean:>8.2f}" for mean in means))


def profile_all(chosen, threads):
    """Profiles all models in a process of its own, with this number of threads."""
    own = subprocess.run([sys.executable, __file__, *sys.argv[1:]], env={**os.environ, "OMP_NUM_THREADS": str(threads), OWN: str(threads)})
    if own.returncode != 0:
        sys.exit(own.returncode)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--openvino", action="store_true")
    parser.add_argument("--profile")
    parser.add_argument("--json")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.smoke:
        chosen.rounds, chosen.seconds = 1, 0.0
    if chosen.serve:
        serve(*chosen.serve, int(chosen.threads))
        return
    paths = [None] if chosen.smoke else models_of(chosen.models)
    if chosen.profile and OWN in os.environ:
        for path in paths:
            write_profile(path, chosen, int(os.environ[OWN]))
        return
    rows = []
    for threads in map(int, chosen.threads.split(",")):
        if chosen.profile:
            profile_all(chosen, threads)
            continue
        for path in paths:
            rows.append(compared(path, chosen, threads))
            print(f"{rows[-1]['model']}, {threads} threads: {rows[-1]['ms']}", file=sys.stderr)
    if chosen.json:
        pathlib.Path(chosen.json).write_text(json.dumps(rows, indent=1) + "\n")
    if rows:
        print_rows(rows)


if __name__ == "__main__":
    main()
