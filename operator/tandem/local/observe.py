"""Where processes on one machine can be asked: each says so in its card."""

from pathlib import Path

from tandem_core.contract.reports import decode_card
from tandem_core.network.member_client import Address, Whereabouts


def by_card(path: Path, pid: int) -> Whereabouts:
    """The address in a card, as long as the card is of this process and not of an earlier one."""

    def where() -> Address:
        card = decode_card(path.read_bytes())
        if card.pid != pid:
            raise ValueError(f"{path} is of another process")
        return Address(card.host, card.http_port)

    return where
