"""What rules share: paths compared without a file system, names that stand twice in a list."""

from collections.abc import Sequence


def normal_path(path: str) -> str:
    """Write a path in the one way that equal paths share, without asking the file system."""
    steps: list[str] = []
    for step in path.split("/"):
        if step == ".." and steps and steps[-1] != "..":
            steps.pop()
        elif step not in {"", "."}:
            steps.append(step)
    return ("/" if path.startswith("/") else "") + "/".join(steps)


def is_within(directory: str, parent: str) -> bool:
    """Whether a normal path is another one or below it."""
    return directory == parent or directory.startswith(f"{parent}/")


def repeated(names: Sequence[str | None]) -> list[int]:
    """The positions of names that stand earlier in the list already."""
    return [
        position
        for position, name in enumerate(names)
        if name is not None and name in names[:position]
    ]
