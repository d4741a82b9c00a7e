"""Unmodified client SDKs against a gateway in front of the sandbox.

They are pointed at the gateway by base URL and given a caller key; nothing else about them is changed. Every check prints the calls the
provider saw: that is the bill. Run by `make test`; by hand, after `cargo build`:

    scripts/venv target/sdk tests/sdk/requirements.txt && scripts/npm target/sdk-npm tests/sdk
    target/sdk/bin/python tests/sdk/run.py [WORD ..]     only checks whose name holds one of the words

Each group of checks has a gateway and a sandbox of its own, and several run at a time: what they do most is wait.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

# opencage tries again for two minutes unless told otherwise: a failing run should not take that long to say so.
os.environ["BACKOFF_MAX_TIME"] = "20"

import reads
import writes
import writes_refused
import writes_unclear
from node import NODE
from processes import Gateway, Sandbox
from record import Record

GROUPS = [*reads.GROUPS, *writes.GROUPS, *writes_unclear.GROUPS, *writes_refused.GROUPS]
AT_A_TIME = 8


def run(config, group, only):
    with Sandbox() as sandbox, Gateway(config(sandbox.url)) as gateway:
        record = Record(sandbox, only)
        group(record, gateway, sandbox)
        if record.failed:
            record.say(gateway.last_words())
        return record


def main():
    records = []
    with NODE, ThreadPoolExecutor(AT_A_TIME) as pool:
        running = [(title, pool.submit(run, config, group, sys.argv[1:])) for title, config, group in GROUPS]
        for title, group in running:
            records.append(group.result())
            print(f"{title}:", *records[-1].lines, sep="\n", flush=True)
    passed, failed = sum(record.passed for record in records), sum(record.failed for record in records)
    print(f"\n{passed} passed, {failed} failed", flush=True)
    # No check at all is no success.
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
