"""What was checked, and how it went."""

import time
import traceback


class Record:
    """Of one group of checks."""

    def __init__(self, sandbox, only):
        self.sandbox = sandbox
        self.only = only
        self.passed = 0
        self.failed = 0
        self.lines = []

    def check(self, name, body):
        """Runs one check; every one starts with an empty meter and says what it cost."""
        if self.only and not any(word.lower() in name.lower() for word in self.only):
            return
        self.sandbox.reset_meter()
        start = time.monotonic()
        try:
            body()
            self.passed += 1
            verdict = "ok  "
        except Exception as error:  # an SDK may raise anything
            self.failed += 1
            verdict = "FAIL"
            report = "" if isinstance(error, AssertionError) else traceback.format_exc(limit=-3)
            name += f"\n       {type(error).__name__}: {error}\n{report}"
        self.say(f"  {verdict} {self.sandbox.calls():>2} upstream  {time.monotonic() - start:5.1f} s  {name}")

    def say(self, text):
        self.lines.append(text)


def same(got, wanted, what):
    assert got == wanted, f"{what}: {got!r}, not {wanted!r}"


def near(got, wanted):
    assert got is not None, "no place found"
    assert all(abs(one - other) < 0.2 for one, other in zip(got, wanted)), f"{got} is not near {wanted}"
