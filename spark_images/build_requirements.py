"""Prints the project's requirements from pyproject.toml: `build_requirements.py FILE [EXTRA]`.

Images install requirements in a layer of their own, which a change of the code does not rebuild.
Runs in the images' build and needs only Python.
"""

import sys
import tomllib
from pathlib import Path


def requirements(text: str, extra: str | None = None) -> list[str]:
    """Return the project's own requirements, or those that an extra adds."""
    project = tomllib.loads(text)["project"]
    listed = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    return list(listed)


if __name__ == "__main__":
    sys.stdout.write("\n".join(requirements(Path(sys.argv[1]).read_text(), *sys.argv[2:])) + "\n")
