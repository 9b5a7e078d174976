# SPDX-License-Identifier: Apache-2.0
"""What the lab does on another machine: files and processes of one node.

ssh.py sends this file to a Python 3 there and then talks to it over standard input and output: one
JSON request a line, one answer a line, {"id", "ok": result} or {"id", "error": text}. Requests
never wait for anything. When its input ends, for whatever reason, the agent stops all that it has
started and removes its directory, so that a lost connection leaves nothing behind. Standard library
only, no other module of the lab.
"""

import base64
import ctypes
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

STOP_SECONDS = 10.0
PREFIX = "ecpipe-lab-"
_PR_SET_PDEATHSIG = 1
_CPUCLOCK_SCHED = 2


def die_with_parent():
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Agent:
    def __init__(self, parent):
        self.directory = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        self.children = {}

    # ---- Requests: the names and arguments of ssh.py -------------------------------------------

    def hello(self):
        return self.directory

    def spawn(self, words, log, errors, environment):
        """`errors`: a file for what goes to standard error, or None for the same as `log`."""
        with open(log, "ab") as output, open(errors or os.devnull, "ab") as error_output:
            child = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output,
                stderr=error_output if errors else output, env={**os.environ, **environment},
                start_new_session=True, preexec_fn=die_with_parent)
        self.children[child.pid] = child
        return child.pid

    def poll(self, pid):
        return self.children[pid].poll()

    def signal(self, pid, number):
        self.children[pid].send_signal(number)  # nothing happens when it has ended

    def cpu_seconds(self, pid):
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)

    def free_port(self, address):
        with socket.socket() as probe:
            probe.bind((address, 0))
            return probe.getsockname()[1]

    def make_directory(self, path):
        os.makedirs(path, exist_ok=True)

    def write(self, path, content, begin, executable):
        """A piece of a file: the first one replaces what is there."""
        with open(path, "wb" if begin else "ab") as file:
            file.write(base64.b64decode(content))
        if executable:
            os.chmod(path, 0o755)

    def read_text(self, path):
        try:
            with open(path, errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def exists(self, path):
        return os.path.exists(path)

    def remove(self, path):
        if os.path.exists(path):
            os.unlink(path)

    def list_directory(self, path):
        return sorted(os.listdir(path))

    def sha256(self, path):
        with open(path, "rb") as file:
            digest = hashlib.sha256()
            while chunk := file.read(1 << 20):
                digest.update(chunk)
            return digest.hexdigest()

    # ---- Life ----------------------------------------------------------------------------------

    def answer(self, line):
        request = json.loads(line)
        number, operation = request.pop("id"), request.pop("do")
        try:
            return {"id": number, "ok": getattr(self, operation)(**request)}
        except Exception as error:  # whatever it is, the other end must learn of it
            return {"id": number, "error": f"{type(error).__name__}: {error}"}

    def close(self):
        running = [child for child in self.children.values() if child.poll() is None]
        for child in running:
            child.send_signal(signal.SIGCONT)
            child.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for child in running:
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def leave(number, _frame):
    raise SystemExit(128 + number)


def main(parent):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, leave)
    agent = Agent(parent)
    try:
        for line in sys.stdin:
            print(json.dumps(agent.answer(line)), flush=True)
    except BrokenPipeError:
        pass
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        agent.close()


main(sys.argv[1] if len(sys.argv) > 1 else None)
