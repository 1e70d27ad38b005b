"""Shows `kubectl get stp --watch` beside the growth of the output."""

from __future__ import annotations

import os
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from cluster.kind_cluster import KindCluster
from cluster.programs import KUBECTL, built
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demo.failures import now
from demo.recount import deliveries

_SHOWN_LINES = 12
_SHOWN_SECONDS = 40
_REDRAWN_PER_SECOND = 4
_LINE_EVERY = 5.0
_BARS = " ▁▂▃▄▅▆▇█"


class View:
    """Shows a pipeline until the block ends: live on a terminal, as lines elsewhere."""

    def __init__(
        self, console: Console, cluster: KindCluster, namespace: str, name: str, output: Path
    ) -> None:
        self._console = console
        self._output = output
        self._lines: deque[str] = deque(maxlen=_SHOWN_LINES)
        self._head = ""
        self._over = threading.Event()
        self._live: Live | None = None
        watch = ["get", "streampipelines", name, "--namespace", namespace, "--watch"]
        self._kubectl = subprocess.Popen(  # noqa: S603 - our own program
            [str(built(KUBECTL)), *watch],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **cluster.env},
            text=True,
        )

    def __enter__(self) -> Self:
        threading.Thread(target=self._read, name="kubectl", daemon=True).start()
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self._draw,
                console=self._console,
                refresh_per_second=_REDRAWN_PER_SECOND,
            )
            self._live.start()
        else:
            threading.Thread(target=self._tell, name="growth", daemon=True).start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._over.set()
        self._kubectl.kill()
        self._kubectl.wait()
        if self._live is not None:
            self._live.stop()

    def _read(self) -> None:
        for line in self._kubectl.stdout or ():
            text = line.rstrip()
            if not self._head:
                self._head = text
            else:
                self._lines.append(text)
            if self._live is None:
                self._console.print(text, soft_wrap=True, markup=False)

    def _tell(self) -> None:
        while not self._over.wait(_LINE_EVERY):
            self._console.print(growth_text(deliveries(self._output), now()), soft_wrap=True)

    def _draw(self) -> Table:
        times = deliveries(self._output)
        picture = Table(box=None, pad_edge=False, header_style="dim", expand=True)
        picture.add_column("kubectl get stp --watch", ratio=3)
        picture.add_column("output", ratio=2)
        left = Text("\n".join([self._head, *self._lines]), no_wrap=True, overflow="ellipsis")
        right = Text.assemble(
            (growth_bars(times, now()), "green"), "\n", growth_text(times, now()), no_wrap=True
        )
        picture.add_row(left, right)
        return picture


def growth_bars(times: Sequence[float], at: float) -> str:
    """Bars of the epochs delivered in each of the last seconds, the newest last."""
    counts = [0] * _SHOWN_SECONDS
    for each in times:
        ago = int(at - each)
        if 0 <= ago < _SHOWN_SECONDS:
            counts[_SHOWN_SECONDS - 1 - ago] += 1
    return "".join(_BARS[min(count * 2, len(_BARS) - 1)] for count in counts)


def growth_text(times: Sequence[float], at: float) -> str:
    """How many epochs are delivered, and how long ago the last one was."""
    if not times:
        return "no epoch delivered yet"
    return f"{len(times):,} epochs delivered, the last one {at - times[-1]:.1f} s ago"
