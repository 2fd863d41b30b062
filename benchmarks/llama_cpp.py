#!/usr/bin/env python3
"""Times matrix products of llama.cpp and of lamina, for the same shapes and weights of the same size, in turns.

    llama_cpp.py [--lamina FOLDER] [--folder FOLDER] [--package PACKAGE] [--program FILE] [--jobs N]
                 [--types TYPE,...] [--rows N,...] [--threads N,...] [--rounds R] [--seconds S]
    llama_cpp.py --smoke

llama.cpp's figures are those of its own benchmark, `test-backend-ops perf -o MUL_MAT -b CPU`. The first call downloads the
source package of llama-cpp-python with pip (80 MB) and builds this one program with cmake in --folder (default: llama_cpp in the
user's cache folder), which takes some minutes of processor time; --program FILE names one that is already built. The program
always takes half of the processors; the build replaces this number by the environment variable TEST_BACKEND_OPS_THREADS.
lamina's figures are those of `products` and `dequantized_products` in --lamina (default: build/bench/bin).

One row per product of N rows, K and M columns of weights that are contiguous along K:
  llama.cpp, lamina   microseconds, and the bandwidth as a fraction of that of reading (below 16 rows this is the limit)
  ratio               llama.cpp over lamina: above 1, lamina is faster
llama.cpp's time is the least of R means of a second or more, lamina's is the least of all calls of R times S seconds. The
bandwidth of reading is the best that lamina's programs measured in these runs.

llama.cpp rounds the activations to 8 bits for q4_0, q8_0 and q4_K, in groups of 32, and to the type of the weights for bf16 and
f16. lamina's forms with s8 get such activations, with one scale per row, and the time without it is that of the product alone;
those without keep f32. For bf16 and f16 it gets activations of 16 bits. What differs besides: q4_0 and q4_K are compared with
s4 in groups of 32 with a scale of f16, which has as many bytes; q4_K has minima too. test-backend-ops does not rearrange weights
when it loads them, as llama.cpp does for q4_0; lamina packs them once. llama.cpp reads the same weights in every call, which may
stay in a cache; lamina's weights of few bits are those of several layers, which do not.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "llama-cpp-python==0.3.36"
THREADS = "TEST_BACKEND_OPS_THREADS"
# the peer's type of the weights -> lamina's forms: bytes per weight of the peer, lamina's program, the option that names the
# form there, its value
Form = collections.namedtuple("Form", "bytes program option name")
plain = lambda size, name: [Form(size, "products", "--type", name)]
few_bits = lambda size, name: [Form(size, "dequantized_products", "--weights", name + rows) for rows in (" s8", "")]
FORMS = {"f32": plain(4, "f32"), "bf16": plain(2, "bf16"), "f16": plain(2, "f16"), "q8_0": few_bits(34 / 32, "s8/32 f16"),
         "q4_0": few_bits(18 / 32, "s4/32 f16"), "q4_K": few_bits(144 / 256, "s4/32 f16")}
Product = collections.namedtuple("Product", "type rows k columns")
SMALL = [Product(dtype, 1, 64, 70) for dtype in FORMS]
CMAKE = """cmake_minimum_required(VERSION 3.18)
project(test_backend_ops C CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set(GGML_LLAMAFILE_DEFAULT ON)  # as its project sets it
add_subdirectory(source/ggml)
add_executable(test-backend-ops test-backend-ops.cpp)
target_link_libraries(test-backend-ops PRIVATE ggml)
"""


def fail(text):
    sys.exit(f"llama_cpp.py: {text}")


def say(text):
    print(f"llama_cpp.py: {text}", file=sys.stderr, flush=True)


# ---- building the peer's program

def default_folder():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "lamina" / "llama_cpp"


def run_tool(*command, where=None):
    if shutil.which(command[0]) is None:
        fail(f"{command[0]} is not installed; it builds llama.cpp's program (--program FILE names one that is built)")
    done = subprocess.run(command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))} failed:\n{done.stdout[-4000:]}")


def unpacked(package, folder):
    """Downloads the package and unpacks llama.cpp's library, and the one source of the program."""
    say(f"downloading the source of {package}")
    run_tool(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package.split("=")[0], "--dest", str(folder), package)
    archives = list(folder.glob("*.tar.gz"))
    if len(archives) != 1:
        fail(f"pip left {len(archives)} archives in {folder}, allowed is one")
    with tarfile.open(archives[0]) as archive:
        for member in archive:
            inner = member.name.partition("/vendor/llama.cpp/")[2]
            if member.isfile() and (inner.startswith("ggml/") or inner == "tests/test-backend-ops.cpp"):
                path = folder / "source" / inner
                if ".." in path.parts:
                    fail(f"{archives[0].name} has a file {member.name}")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.extractfile(member).read())
    archives[0].unlink()


def take_threads_from_environment(source):
    """Returns the program's source with the number of threads of an environment variable, of which it takes half."""
    old = "#   define N_THREADS std::thread::hardware_concurrency()"
    if source.count(old) != 1:
        fail("test-backend-ops.cpp sets its number of threads in another way than version 0.3.36 of the package")
    return source.replace(old, f'#   define N_THREADS (2 * std::stoul(std::getenv("{THREADS}")))')


def built_program(chosen):
    folder = pathlib.Path(chosen.folder) / re.sub(r"[^\w.-]+", "-", chosen.package)
    program = folder / "build" / "test-backend-ops"
    if program.exists():
        return program
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    unpacked(chosen.package, folder)
    source = (folder / "source/tests/test-backend-ops.cpp").read_text()
    (folder / "test-backend-ops.cpp").write_text(take_threads_from_environment(source))
    (folder / "CMakeLists.txt").write_text(CMAKE)
    say(f"building test-backend-ops in {folder}")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run_tool("cmake", "-S", ".", "-B", "build", *generator, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF", where=folder)
    run_tool("cmake", "--build", "build", "--target", "test-backend-ops", "--parallel", str(chosen.jobs), where=folder)
    return program


# ---- running

def output_of(*command, **environment):
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))} failed: {done.stderr or done.stdout}")
    return done.stdout


def llama_times(program, chosen, threads):
    """Returns microseconds by product."""
    pattern = f"type_a=({'|'.join(chosen.types)}),type_b=f32,m=[0-9]+,n=({'|'.join(map(str, chosen.rows))}),k=[0-9]+,bs=.1,1.,nr=.1,1.,per=.0,1,2,3.,k_v=0"
    printed = output_of(program, "perf", "-o", "MUL_MAT", "-b", "CPU", "-p", pattern, "--output", "sql", **{THREADS: str(threads)})
    return parsed_times(printed)


def parsed_times(printed):
    """Reads the SQL that test-backend-ops prints."""
    found = {}
    for names, values in re.findall(r"^INSERT INTO test_backend_ops \((.*)\) VALUES \((.*)\);$", printed, re.MULTILINE):
        row = dict(zip(names.split(", "), re.findall(r"'([^']*)'", values)))
        of_op = dict(re.findall(r"(\w+)=(\w+)", row["op_params"]))
        if row["op_name"] == "MUL_MAT" and float(row["time_us"]) > 0:
            found[Product(of_op["type_a"], int(of_op["n"]), int(of_op["k"]), int(of_op["m"]))] = float(row["time_us"])
    if not found:
        fail(f"test-backend-ops printed no times:\n{printed[-2000:]}")
    return found


def lamina_times(products, chosen, threads):
    """Returns microseconds by product and form, and the best bandwidth of reading in GB/s."""
    found, reading = {}, 0.0
    for form in sorted({form for product in products for form in FORMS[product.type]}):
        of_form = [p for p in products if form in FORMS[p.type]]
        shapes = {f"{p.rows}x{p.k}x{p.columns}" + ("t" if form.program == "products" else ""): p for p in of_form}
        printed = output_of(pathlib.Path(chosen.lamina) / form.program, "--threads", str(threads), "--seconds", str(chosen.seconds), form.option,
                            form.name, *shapes)
        for shape, product in shapes.items():
            line = next((line for line in printed.splitlines() if line.startswith(f"{shape} ")), "")
            numbers = re.findall(r"(?<![\w/.])\d+\.\d+", line)
            if len(numbers) < 6:
                fail(f"{form.program} printed no times of {shape}:\n{printed}")
            # products: as they are, packed, GF/s four times, reading; dequantized_products: packed, as they are, GB/s, reading
            time, read = (numbers[1], numbers[6]) if form.program == "products" else (numbers[0], numbers[3])
            found.update(((p, form), float(time)) for p in of_form if p[1:] == product[1:])
            reading = max(reading, float(read))
    return found, reading


def least(first, second):
    return {key: min(value, second.get(key, value)) for key, value in {**second, **first}.items()}


def measure(program, chosen, threads):
    theirs, ours, reading = {}, {}, 0.0
    for _ in range(chosen.rounds):
        if program is not None:
            theirs = least(llama_times(program, chosen, threads), theirs)
        made, read = lamina_times(list(theirs) or SMALL, chosen, threads)
        ours, reading = least(made, ours), max(reading, read)
    print(f"{threads} threads, reading {reading:.1f} GB/s")
    print(f"{'rows x K x M':18}{'type':>6}{'llama.cpp us':>14}{'of reading':>12}  {'lamina':13}{'us':>9}{'of reading':>12}{'ratio':>8}")
    for product, form in sorted(ours, key=lambda own: (list(FORMS).index(own[0].type), own[0], FORMS[own[0].type].index(own[1]))):
        share = lambda time: f"{1e-3 * form.bytes * product.k * product.columns / time / reading:.2f}" if reading else "-"
        their, our = theirs.get(product), ours[product, form]
        print(f"{f'{product.rows}x{product.k}x{product.columns}':18}{product.type:>6}"
              + (f"{their:>14.1f}{share(their):>12}" if their else f"{'-':>14}{'-':>12}")
              + f"  {form.name:13}{our:>9.1f}{share(our):>12}" + (f"{their / our:>8.2f}" if their else f"{'-':>8}"), flush=True)


def listed(kind, allowed=None):
    def read(text):
        values = [kind(value) for value in text.split(",")]
        for value in values:
            if allowed is not None and value not in allowed:
                raise argparse.ArgumentTypeError(f"{value} is not known, allowed are {', '.join(allowed)}")
        return values

    return read


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lamina", default=str(HERE.parent / "build/bench/bin"))
    parser.add_argument("--folder", default=str(default_folder()))
    parser.add_argument("--package", default=PACKAGE)
    parser.add_argument("--program")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--types", type=listed(str, FORMS), default=list(FORMS))
    parser.add_argument("--rows", type=listed(int), default=[1, 4, 8, 512])
    parser.add_argument("--threads", type=listed(int), default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--smoke", action="store_true", help="lamina alone on small products, once; with --program also that")
    chosen = parser.parse_args()
    if chosen.smoke:
        chosen.rounds, chosen.seconds = 1, 0.0
    return chosen


def main():
    chosen = arguments()
    for name in ("products", "dequantized_products"):
        if not (pathlib.Path(chosen.lamina) / name).exists():
            fail(f"{name} is not in {chosen.lamina}; build it (preset bench) and name its folder with --lamina")
    program = chosen.program or (None if chosen.smoke else built_program(chosen))
    for threads in chosen.threads:
        measure(program, chosen, threads)


if __name__ == "__main__":
    main()
