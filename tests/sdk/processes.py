"""The sandbox and the gateway as processes of their own, and what can be asked of them."""

import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TOLLGATE_BIN", ROOT / "target/debug/tollgate")
ADMIN_TOKEN = "sdk-test-admin-token"


def ask(method, url, body=None, token=None):
    """The answer's text; anything but 2xx raises."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


class Process:
    """`tollgate ..`, once it has said where it listens."""

    def __init__(self, arguments, roles):
        self.log = tempfile.NamedTemporaryFile(prefix="tollgate-", suffix=".log")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TOLLGATE_")}
        environment |= {"TOLLGATE_LOG": "warn", "TOLLGATE_ADMIN_TOKEN": ADMIN_TOKEN, "PROVIDER_KEY": "any"}
        self.process = subprocess.Popen(
            [BINARY, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment
        )
        self.addresses = {}
        late = threading.Timer(30, self.process.kill)
        late.start()
        for line in self.process.stdout:
            if said := re.search(r"listening role=(\S+) addr=(\S+)", line):
                self.addresses[said[1]] = said[2]
            if roles <= self.addresses.keys():
                break
        late.cancel()
        if not roles <= self.addresses.keys():
            self.process.wait()
            raise SystemExit(f"tollgate {' '.join(map(str, arguments))} did not come up\n{self.last_words()}")
        # Whatever else it writes must not fill the pipe.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def last_words(self):
        lines = Path(self.log.name).read_text().splitlines()[-20:]
        return "\n".join(["  its log:", *(f"    {line}" for line in lines)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Sandbox(Process):
    def __init__(self):
        super().__init__(["sandbox", "--listen", "127.0.0.1:0"], {"sandbox"})
        self.url = f"http://{self.addresses['sandbox']}"

    def calls(self):
        return json.loads(ask("GET", f"{self.url}/meter"))["calls"]

    def reset_meter(self):
        ask("DELETE", f"{self.url}/meter")

    @contextmanager
    def trouble(self, provider, **fault):
        """A fault, set for as long as this lasts."""
        ask("POST", f"{self.url}/faults", {"provider": provider, **fault})
        try:
            yield
        finally:
            ask("DELETE", f"{self.url}/faults")


class Redis:
    """A store of its own for one gateway."""

    def __init__(self):
        # A port that is free may be taken before Redis has it; Redis ends then, and another is tried.
        if not any(self.comes_up() for _ in range(5)):
            raise SystemExit("redis-server did not come up")

    def comes_up(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            self.port = unused.getsockname()[1]
        arguments = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", ""]
        self.process = subprocess.Popen(["redis-server", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < until:
            if self.answers():
                return True
            time.sleep(0.02)
        self.stop()
        return False

    def answers(self):
        """Whether it is ours that has the port."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(b"INFO server\r\n")
            return f"process_id:{self.process.pid}\r\n".encode() in connection.recv(65536)
        return False

    def stop(self):
        self.process.kill()
        self.process.wait()


class Gateway(Process):
    """With Redis, if `{redis}` is in its config."""

    def __init__(self, config):
        self.redis = None
        if "{redis}" in config:
            self.redis = Redis()
            config = config.replace("{redis}", f"redis://127.0.0.1:{self.redis.port}/0")
        self.file = tempfile.NamedTemporaryFile("w", prefix="tollgate-", suffix=".toml")
        self.file.write(config)
        self.file.flush()
        try:
            super().__init__(["serve", "-c", self.file.name], {"gateway", "admin"})
        except SystemExit:
            self.stop_redis()
            raise
        self.port = self.addresses["gateway"].rsplit(":", 1)[1]
        self.admin = f"http://{self.addresses['admin']}"

    def requests(self):
        """How many it has answered, refusals counted."""
        return self.metric("tollgate_requests_total")

    def spent(self):
        """Money, in millionths."""
        return self.metric("tollgate_spend_micros_total")

    def metric(self, name):
        lines = re.findall(rf"^{name}(?:\{{.*\}})? (\d+)", ask("GET", f"{self.admin}/metrics"), re.MULTILINE)
        return sum(map(int, lines))

    def switch(self, route, state):
        ask("PUT", f"{self.admin}/v1/switches/{route}", {"state": state, "reason": "SDK test"}, ADMIN_TOKEN)

    def stop_redis(self):
        if self.redis:
            self.redis.stop()

    def __exit__(self, *_):
        super().__exit__()
        self.stop_redis()
