"""Which of the project's packages stand in an image that was built."""

from __future__ import annotations

from cluster.engine import ContainerEngine

CONTENTS = {
    "runtime": frozenset({"tandem_core", "tandem_runtime"}),
    "operator": frozenset({"tandem", "tandem_core"}),
    "spark": frozenset({"tandem_core", "tandem_runtime"}),
}
"""What each image carries of the project: pods nothing of the operator, the operator nothing of the
data plane, and nobody the command line or the simulator."""

# Every directory is looked at, not only where this interpreter would find packages.
_LOOK = """
import os
for directory, below, files in os.walk("/"):
    below[:] = [name for name in below if os.path.join(directory, name) not in ("/proc", "/sys")]
    name = os.path.basename(directory)
    if name.startswith("tandem") and any(file.endswith((".py", ".pyc")) for file in files):
        print(name)
"""


def packages_in(engine: ContainerEngine, reference: str) -> frozenset[str]:
    """The names of the project's packages, found by looking through the image.

    Raises:
        StepFailed: there is no such image, or it cannot be run.
    """
    run = ("run", "--rm", "--network", "none", "--entrypoint", "python", reference)
    return frozenset(engine.ask(*run, "-c", _LOOK).split())
