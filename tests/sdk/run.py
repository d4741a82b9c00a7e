"""Unmodified client SDKs against a gateway in front of the sandbox.

They are pointed at the gateway by base URL and given a caller key; nothing else about them is changed. Every check prints the calls the
provider saw: that is the bill. Run by `make test`; by hand, after `cargo build`:

    target/sdk/bin/python tests/sdk/run.py [WORD ..]     only checks whose name holds one of the words
"""

import os
import sys

# opencage tries again for two minutes unless told otherwise: a failing run should not take that long to say so.
os.environ["BACKOFF_MAX_TIME"] = "20"

import checks
from processes import Gateway, Sandbox
from record import Record


def main():
    record = Record(only=sys.argv[1:])
    with Sandbox() as sandbox:
        record.sandbox = sandbox
        for title, settings, group in checks.GROUPS:
            print(f"{title}:", flush=True)
            with Gateway(sandbox, **settings) as gateway:
                group(record, gateway, sandbox)
                if record.failed_since_last_look():
                    print(gateway.last_words())
    print(f"\n{record.passed} passed, {record.failed} failed", flush=True)
    # No check at all is no success.
    return 1 if record.failed or not record.passed else 0


if __name__ == "__main__":
    sys.exit(main())
