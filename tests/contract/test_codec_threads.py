"""Decoding by a type for the first time, in many threads at once."""

import subprocess
import sys

PROGRAM = """
import sys, threading
from tandem_core.contract.records import encode
from tandem_core.contract.reports import decode_report
from tandem_runtime.wire.frames import read_frame
from tandem_runtime.protocol.messages.peers import TakeLead

sys.setswitchinterval(1e-6)
REPORT = b'{"volume": "v", "incarnation": 1, "part": {"kind": "replica", "state": "running"}}'
FRAME = memoryview(encode(TakeLead(1)))
start = threading.Barrier(8)


def decode(number):
    start.wait()
    decode_report(REPORT) if number % 2 else read_frame(FRAME)


threads = [threading.Thread(target=decode, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_types_are_prepared_by_one_thread_at_a_time() -> None:
    for _ in range(5):
        ended = subprocess.run([sys.executable, "-c", PROGRAM], check=False)
        assert ended.returncode == 0
