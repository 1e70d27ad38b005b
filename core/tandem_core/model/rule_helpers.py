"""Helpers of rules: comparing paths without a file system, and finding repeated names."""

from collections.abc import Sequence


def normal_path(path: str) -> str:
    """Normalise a path without the file system, so that equal paths compare equal."""
    steps: list[str] = []
    for step in path.split("/"):
        if step == ".." and steps and steps[-1] != "..":
            steps.pop()
        elif step not in {"", "."}:
            steps.append(step)
    return ("/" if path.startswith("/") else "") + "/".join(steps)


def is_within(directory: str, parent: str) -> bool:
    """Whether a normalised path is another one or below it."""
    return directory == parent or directory.startswith(f"{parent}/")


def repeated(names: Sequence[str | None]) -> list[int]:
    """Return the positions of names that occur earlier in the list."""
    return [
        position
        for position, name in enumerate(names)
        if name is not None and name in names[:position]
    ]
