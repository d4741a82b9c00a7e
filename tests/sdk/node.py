"""The JavaScript SDKs, in a process of their own: see node.js."""

import itertools
import json
import os
import subprocess
import threading
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = Path(os.environ.get("TOLLGATE_SDK_NPM", HERE.parents[1] / "target/sdk-npm")).resolve() / "node_modules"
PATIENCE = 60


class NodeError(Exception):
    """One of an SDK's own errors."""

    def __init__(self, type, message, status=None, code=None):
        super().__init__(f"{type}: {message}")
        self.type, self.message, self.status, self.code = type, message, status, code


class Node:
    def __enter__(self):
        environment = os.environ | {"NODE_PATH": str(MODULES)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(["node", HERE / "node.js"], **pipes, text=True, env=environment)
        self.lock, self.waiting, self.numbers = threading.Lock(), {}, itertools.count(1)
        threading.Thread(target=self.listen, daemon=True).start()
        return self

    def __exit__(self, *_):
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(30)

    def listen(self):
        for line in self.process.stdout:
            said = json.loads(line)
            self.waiting.pop(said["id"]).set_result(said)
        for future in list(self.waiting.values()):
            future.set_exception(RuntimeError("node has ended"))

    def ask(self, sdk, client, given):
        """What the SDK gives, or raises; several threads may ask at a time."""
        number, future = next(self.numbers), Future()
        self.waiting[number] = future
        with self.lock:
            self.process.stdin.write(json.dumps({"id": number, "sdk": sdk, "client": client, "with": given}) + "\n")
            self.process.stdin.flush()
        said = future.result(PATIENCE)
        if error := said.get("error"):
            raise NodeError(**error)
        if broken := said.get("broken"):
            raise RuntimeError(f"{sdk} for JavaScript broke: {broken}")
        return said["ok"]


NODE = Node()
