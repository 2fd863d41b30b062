"""Loads the server of this folder on the loopback interface, and checks what it answers.

    load.py SERVE MODEL [--seconds N] [--connections N] [--may-grow MB] [--wrk]

Four parts: rows are answered alone and then by many connections at once, with the same bits; a load of N seconds (2), during which
no request fails and memory grows by less than 2 MB; a server that is killed and started again under load; a server that is asked to end
under load. The heaps of the server's threads grow at first, so a load in which memory grows is repeated, at most four times. --wrk: the second part is by wrk instead of Python's threads, which are the limit otherwise. Needs only Python, and Linux.
"""
import argparse
import array
import http.client
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROWS = 32
LOADS = 5  # the most until memory settles: it grows in all of them if each request keeps some


class Server:
    """The server's process, on a free port or on a given one."""

    def __init__(self, program, model, port=0):
        self.process = subprocess.Popen([program, model, "--port", str(port)], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)$", line.strip())
        if not found:
            sys.exit(f"load: the server did not start, it said '{line.strip()}'")
        self.port = int(found[1])

    def memory(self):
        """Returns the resident memory in MB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def end(self, how):
        """Sends a signal, and returns the exit status."""
        self.process.send_signal(how)
        status = self.process.wait(timeout=30)
        self.process.stdout.close()
        return status


def ask(connection, body, path="/run"):
    connection.request("POST" if body is not None else "GET", path, body)
    response = connection.getresponse()
    return response.status, response.read()


class Clients:
    """Threads that send rows, each over its own connection. A lost connection is opened again."""

    def __init__(self, port, count, rows, answers):
        self.port, self.rows, self.answers = port, rows, answers
        self.times, self.lost, self.wrong = [], 0, []
        self.ends = threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def work(self, number):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        while not self.ends.is_set():
            number = (number + 1) % len(self.rows)
            start = time.perf_counter()
            try:
                status, answer = ask(connection, self.rows[number])
            except (OSError, http.client.HTTPException):
                connection.close()
                with self.lock:
                    self.lost += 1
                time.sleep(0.01)
                continue
            with self.lock:
                self.times.append(time.perf_counter() - start)
                if status != 200 or answer != self.answers[number]:
                    self.wrong.append((number, status))
        connection.close()

    def answered(self):
        with self.lock:
            return len(self.times)

    def stop(self):
        self.ends.set()
        for thread in self.threads:
            thread.join()
        require(not self.wrong, f"{len(self.wrong)} answers are wrong, the first is (row, status) {self.wrong[:1]}")


def require(condition, sentence):
    if not condition:
        sys.exit(f"load: {sentence}")


def wait_for(condition, sentence, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        require(time.monotonic() < end, sentence)
        time.sleep(0.005)


def milliseconds(times):
    cuts = statistics.quantiles(times, n=100)
    return f"median {cuts[49] * 1e3:.2f} ms, 90% {cuts[89] * 1e3:.2f} ms, 99% {cuts[98] * 1e3:.2f} ms"


def answers_are_right(server, rows):
    """Returns the answers to the rows, each sent alone."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    answers = []
    for row in rows:
        status, answer = ask(connection, row)
        require(status == 200, f"a row gets status {status}: {answer}")
        answers.append(answer)
    require(len(set(answers)) == len(rows), "different rows have the same answer")
    status, sentence = ask(connection, rows[0][:-4])
    require(status == 400 and b"bytes" in sentence, f"a row that is too short gets {status} {sentence}")
    connection.close()
    return answers


def load_by_wrk(server, row, seconds, connections):
    with tempfile.TemporaryDirectory() as folder:
        body, script = pathlib.Path(folder, "body"), pathlib.Path(folder, "post.lua")
        body.write_bytes(row)
        script.write_text(f'wrk.method = "POST"\nwrk.body = io.open("{body}", "rb"):read("*a")\n', encoding="ascii")
        ran = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script),
                              f"http://127.0.0.1:{server.port}/run"], capture_output=True, text=True, check=True)
    print(ran.stdout.strip())
    require("errors" not in ran.stdout and "Non-2xx" not in ran.stdout, "requests failed")


def load_until_settled(server, rows, answers, arguments):
    for _ in range(LOADS):
        grown = load(server, rows, answers, arguments)
        if grown < arguments.may_grow:
            break
    else:
        require(False, f"memory grows by {grown:.1f} MB in {arguments.seconds} s, also after {LOADS - 1} such loads")
    status, stats = ask(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10), None, "/stats")
    require(status == 200, f"/stats gets status {status}")
    print(f"rows and batches: {stats.decode().strip()}")


def load(server, rows, answers, arguments):
    """Returns the MB by which the server's memory grows after the first quarter of the time."""
    samples, ends = [], threading.Event()

    def watch():
        while not ends.wait(arguments.seconds / 20):
            samples.append(server.memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    if arguments.wrk:
        load_by_wrk(server, rows[0], arguments.seconds, arguments.connections)
    else:
        clients = Clients(server.port, arguments.connections, rows, answers)
        time.sleep(arguments.seconds)
        clients.stop()
        require(clients.lost == 0, f"{clients.lost} connections were lost")
        print(f"{len(clients.times)} requests in {arguments.seconds} s, none failed; {milliseconds(clients.times)}")
    ends.set()
    watcher.join()
    settled = samples[len(samples) // 4:]
    print(f"memory: {settled[0]:.1f} MB after a quarter of the time, {settled[-1]:.1f} MB at the end")
    return settled[-1] - settled[0]


def killed_under_load(server, rows, answers, arguments):
    """Returns the server that replaces the killed one."""
    clients = Clients(server.port, arguments.connections, rows, answers)
    wait_for(lambda: clients.answered() > 100, "there are no answers before the server is killed")
    require(server.end(signal.SIGKILL) == -signal.SIGKILL, "the server was not killed")
    start, before = time.monotonic(), clients.answered()
    server = Server(arguments.serve, arguments.model, server.port)
    wait_for(lambda: clients.answered() > before + arguments.connections, "the new server does not answer")
    print(f"killed and started again under load: answers after {(time.monotonic() - start) * 1e3:.0f} ms")
    wait_for(lambda: clients.answered() > before + 200, "the new server stops to answer")
    clients.stop()
    require(clients.lost > 0, "no connection was lost: was the server killed?")
    return server


def ended_under_load(server, rows, answers, arguments):
    clients = Clients(server.port, arguments.connections, rows, answers)
    wait_for(lambda: clients.answered() > 100, "there are no answers before the server ends")
    status = server.end(signal.SIGTERM)
    clients.stop()
    require(status == 0, f"a server that is asked to end ends with status {status}")
    print("asked to end under load: it ended, and all answers were right")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("serve")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--may-grow", type=float, default=2)
    parser.add_argument("--wrk", action="store_true")
    arguments = parser.parse_args()
    server = Server(arguments.serve, arguments.model)
    try:
        elements = int(re.search(rb"of the model has (\d+)", ask(http.client.HTTPConnection("127.0.0.1", server.port), b"")[1])[1]) // 4
        draws = random.Random(1)
        rows = [array.array("f", [draws.uniform(-1, 1) for _ in range(elements)]).tobytes() for _ in range(ROWS)]
        answers = answers_are_right(server, rows)
        load_until_settled(server, rows, answers, arguments)
        server = killed_under_load(server, rows, answers, arguments)
        ended_under_load(server, rows, answers, arguments)
    finally:
        if server.process.poll() is None:
            server.process.kill()


if __name__ == "__main__":
    main()
