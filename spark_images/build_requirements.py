"""Prints what the project requires, from pyproject.toml: `build_requirements.py FILE [EXTRA]`.

Images install requirements apart from the project, so that a change of the code leaves them alone.
Runs in the images' build with nothing but Python.
"""

import sys
import tomllib
from pathlib import Path


def requirements(text: str, extra: str | None = None) -> list[str]:
    """List the project's own requirements, or those that an extra adds."""
    project = tomllib.loads(text)["project"]
    listed = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    return list(listed)


if __name__ == "__main__":
    sys.stdout.write("\n".join(requirements(Path(sys.argv[1]).read_text(), *sys.argv[2:])) + "\n")
