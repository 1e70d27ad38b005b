"""Programs that commands run in pods by exec: send a signal, read the lead's report.

The programs are passed as arguments, so the image may be of any version. They need only Python,
which all images have.
"""

from tandem.control.pods import Pod
from tandem.kube.port import KubeError, Shell
from tandem.output.member_table import Missing
from tandem_core.contract.records import Undecodable
from tandem_core.contract.reports import LeadReport, decode_report
from tandem_core.model.kubernetes_names import HTTP_PORT, POD_UID_VARIABLE, TOKEN_FILE

SIGNAL_PROGRAM = """\
import contextlib, os, sys
mark, number = sys.argv[1].encode(), int(sys.argv[2])
found = []
for name in filter(str.isdecimal, os.listdir("/proc")):
    with contextlib.suppress(OSError), open("/proc/" + name + "/environ", "rb") as environment:
        if mark in environment.read().split(b"\\0") and int(name) not in (1, os.getpid()):
            found.append(int(name))
print(*sorted(found), flush=True)
for pid in sorted(found):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
"""
"""Prints, then signals all processes that have a mark in their environment. It prints first,
because it dies with the container's first process. The pod's first process has no mark."""

_STATE_PROGRAM = """\
import http.client, sys
with open(sys.argv[1]) as file:
    headers = {"Authorization": "Bearer " + file.read().strip()}
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]), timeout=2)
connection.request("GET", "/state", headers=headers)
sys.stdout.write(connection.getresponse().read().decode())
"""


def signal_pod(shell: Shell, pod: Pod, number: int) -> tuple[int, ...]:
    """Send a signal to all processes of a pod's container; return their pids in the pod.

    They are recognised, as on one machine, by an environment variable.

    Raises:
        Missing: no process runs at the moment.
        KubeError: the cluster does not answer, or does not allow it.
    """
    mark = f"{POD_UID_VARIABLE}={pod.uid}"
    ran = shell.run(pod.document, [*_PYTHON, SIGNAL_PROGRAM, mark, str(number)])
    signalled = tuple(int(word) for word in ran.printed.split() if word.isdecimal())
    if not signalled:
        why = f": {ran.problem}" if ran.problem else ""
        raise Missing(f"no process runs in {pod.name}{why}")
    return signalled


def ask_lead(shell: Shell, lead: Pod) -> LeadReport | None:
    """Return the lead's report; None if it cannot be reached, or does not lead."""
    command = [*_PYTHON, _STATE_PROGRAM, f"/{TOKEN_FILE}", str(HTTP_PORT)]
    try:
        return decode_report(shell.run(lead.document, command).printed).lead
    except (KubeError, Undecodable):
        return None


_PYTHON = ("python", "-I", "-S", "-c")
