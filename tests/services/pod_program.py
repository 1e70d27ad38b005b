"""Runs a program as a pod does, but on a loopback address of its own.

Usage: pod_program.py PROGRAM ARGUMENT... The name of the splits' Service leads to the addresses in
the file that TANDEM_TEST_SPLITS names.
"""

import os
import runpy
import socket
import sys
from pathlib import Path
from typing import Any

from tandem_runtime.environment import hosts

_real = socket.getaddrinfo


def resolve(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
    if host != "p-splits":
        return _real(host, port, *rest, **more)
    addresses = Path(os.environ["TANDEM_TEST_SPLITS"]).read_text().split()
    return [entry for address in addresses for entry in _real(address, port, *rest, **more)]


socket.getaddrinfo = resolve
hosts.all_addresses = lambda host: host
program = sys.argv.pop(1)
runpy.run_module(f"tandem_runtime.services.{program}", run_name="__main__")
