"""Measures how long `import lamina` takes beside an interpreter that imports nothing: the median of starts in turns.

    import_time.py PYTHON [MOST_MS]     exit status 1 if it takes longer
"""
import statistics
import subprocess
import sys
import time

STARTS = 15


def start(python, code):
    begin = time.perf_counter()
    subprocess.run([python, "-c", code], check=True)
    return (time.perf_counter() - begin) * 1e3


def main(python, most):
    start(python, "import lamina")  # reads the files
    pairs = [(start(python, "import lamina"), start(python, "pass")) for _ in range(STARTS)]
    median = statistics.median(with_lamina - without for with_lamina, without in pairs)
    print(f"import lamina: {median:.0f} ms (allowed are {most} ms); {statistics.median(without for _, without in pairs):.0f} ms without it")
    return median > most


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) == 3 else 80))
