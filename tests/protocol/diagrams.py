"""The state diagrams of `docs/`, drawn from the tables of the state machines.

`python -m tests.protocol.diagrams` writes them into the documents.
"""

import re
from enum import StrEnum
from pathlib import Path
from typing import Any

from tandem.policy.change.stages import CHANGE
from tandem_core.model.lifecycle import Lifecycle, Transition
from tandem_core.model.states import ChangeStage
from tandem_runtime.protocol.states import LIFECYCLES

_DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTS = [*sorted((_DOCS / "protocol").glob("*.md")), _DOCS / "changing.md"]
DRAWN = (*LIFECYCLES, CHANGE)


def diagram(lifecycle: Lifecycle[Any]) -> str:
    """A machine as Mermaid draws it. What may happen in every state is one note, not many lines."""
    always = {
        move.cause: move.after for move in lifecycle.moves if _from_everywhere(lifecycle, move)
    }
    lines = ["stateDiagram-v2"]
    lines += [
        f"    {_name(move.before)} --> {_name(move.after)}: {_label(move)}"
        for move in lifecycle.moves
        if move.cause not in always
    ]
    lines += [
        f"    note right of {_name(after)}: {cause}, in every state"
        for cause, after in always.items()
    ]
    return "\n".join(lines)


def _from_everywhere(lifecycle: Lifecycle[Any], move: Transition[Any]) -> bool:
    states = {each.after for each in lifecycle.moves} - {None, move.after}
    causing = {each.before for each in lifecycle.moves if each.cause == move.cause}
    return move.after is not None and len(states) > 1 and causing == states


def _name(state: StrEnum | None) -> str:
    if isinstance(state, ChangeStage):
        return str(state)
    return "[*]" if state is None else state.name


def _label(move: Transition[Any]) -> str:
    return f"{move.cause}, {move.note}" if move.note else move.cause


def drawn(machine: str) -> str:
    """The diagram that the documents show of a machine."""
    found = [_block(machine).search(document.read_text()) for document in DOCUMENTS]
    (diagram,) = [match["diagram"] for match in found if match]
    return diagram


def _block(machine: str) -> re.Pattern[str]:
    return re.compile(rf"<!-- states: {machine} -->\n```mermaid\n(?P<diagram>.*?)\n```", re.DOTALL)


def main() -> None:
    """Write every diagram into its document."""
    for document in DOCUMENTS:
        text = document.read_text()
        for lifecycle in DRAWN:
            block = f"<!-- states: {lifecycle.machine} -->\n```mermaid\n{diagram(lifecycle)}\n```"
            text = _block(lifecycle.machine).sub(block, text)
        document.write_text(text)


if __name__ == "__main__":
    main()
