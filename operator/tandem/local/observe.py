"""Where processes on one machine can be asked: each says so in its card."""

from pathlib import Path

from tandem_core.client import Address, Whereabouts
from tandem_core.reports import decode_card


def by_card(path: Path, pid: int) -> Whereabouts:
    """The address in a card, as long as the card is of this process and not of an earlier one."""

    def where() -> Address:
        card = decode_card(path.read_bytes())
        if card.pid != pid:
            raise ValueError(f"{path} is of another process")
        return Address(card.host, card.http_port)

    return where
