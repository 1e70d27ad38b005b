"""New pairs build their state from that of their parents, in real processes with real Spark."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.laptop.output import Output
from tests.local.harness import wait_for
from tests.services.test_on_laptop import TOKEN, Member

from tandem_core.contract.exit_codes import RETIRED
from tandem_core.contract.intent import Generation, Intent, IntentStream, Pair
from tandem_core.contract.intent_text import function_key, intent_text
from tandem_core.model.states import SeatState
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import digest_of, to_bytes

USERS = 40
ONE = RoutingFunction.plain(["all"])
HALVES = RoutingFunction.plain(["left", "right"])
G1 = Generation(1, digest_of(ONE), (Pair("pair-0", "all"),))
G2 = Generation(
    2,
    digest_of(HALVES),
    (Pair("pair-1", "left", ("pair-0",)), Pair("pair-2", "right", ("pair-0",))),
)
G3 = Generation(3, digest_of(ONE), (Pair("pair-3", "all", ("pair-1", "pair-2")),))


class Pipeline:
    """A split, a merge and replicas over one directory of input."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.input, self.output = home / "input", Output(home / "output")
        self.input.mkdir()
        (home / "peers").mkdir()
        (home / "uid").write_text("u-1")
        (home / "token").write_text(TOKEN)
        for function in (ONE, HALVES):
            (home / function_key(digest_of(function))).write_bytes(to_bytes(function))
        self.files = 0
        self.version = 0
        self.members: dict[str, Member] = {}

    def describe(self, cores: int) -> None:
        """Write the manifest that processes read when they start."""
        stream = {
            "name": "payments",
            "schema": "user STRING, amount BIGINT",
            "key": ["user"],
            "source": {"files": {"path": str(self.input), "format": "json"}},
        }
        sql = "SELECT user, count(*) AS n, sum(amount) AS total FROM payments GROUP BY user"
        spec = {
            "epoch": {"interval": "200ms"},
            "streams": [stream],
            "query": {"sql": sql, "outputMode": "update"},
            "sinks": [
                {"name": "out", "files": {"path": str(self.home / "output"), "format": "json"}}
            ],
            "spark": {"cores": cores, "memory": "1Gi"},
        }
        kinds = {"apiVersion": "tandem.dev/v1alpha1", "kind": "StreamPipeline"}
        manifest = {**kinds, "metadata": {"name": "moved"}, "spec": spec}
        (self.home / "pipeline.json").write_text(json.dumps({"manifest": manifest}))

    def intend(self, *generations: Generation, target: int) -> None:
        self.version += 1
        streams = (IntentStream("payments", ("payments/0",)),)
        draft = self.home / ".intent"
        draft.write_text(intent_text(Intent(self.version, generations, target, streams)))
        draft.replace(self.home / "intent")

    def start(self, name: str, *arguments: str) -> Member:
        member = self.members[name] = Member(self.home, name, *arguments)
        return member

    def feed(self) -> None:
        """Give every user one more payment, and wait until that is delivered."""
        rows = [{"user": f"user-{n}", "amount": n + self.files} for n in range(USERS)]
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        draft = self.input / ".draft"
        draft.write_text(text)
        draft.replace(self.input / f"{self.files:04}.json")
        self.files += 1
        wait_for(lambda: len(self.rows()) == self.files * USERS)

    def rows(self) -> list[tuple[str, int, int]]:
        """What was delivered, in the order of epochs."""
        files = self.output.files()
        lines = [line for file in files for line in file.read_text().splitlines()]
        found = [json.loads(line) for line in lines]
        return [(row["user"], row["n"], row["total"]) for row in found]

    def synced(self, pair: str) -> int:
        """How many replicas of a pair have their state and keep up."""
        lead = self.members["split-0"].lead()
        pairs = {each.name: each for each in lead.pairs} if lead is not None else {}
        seats = pairs[pair].seats if pair in pairs else ()
        return sum(seat.state is SeatState.VERIFIED and seat.synced for seat in seats)

    def generation(self) -> int:
        lead = self.members["split-0"].lead()
        return lead.generation if lead is not None else 0

    def log(self, name: str) -> str:
        return self.members[name].log.read_text()


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    made = Pipeline(tmp_path)
    yield made
    for member in made.members.values():
        member.end()


def expected(payments: int) -> set[tuple[str, int, int]]:
    """The rows of every epoch, each of which brings one payment of each user."""
    rows: set[tuple[str, int, int]] = set()
    for n in range(USERS):
        rows |= {
            (f"user-{n}", count, sum(n + number for number in range(count)))
            for count in range(1, payments + 1)
        }
    return rows


def test_pairs_are_split_and_united_with_their_state(pipeline: Pipeline) -> None:
    pipeline.describe(cores=1)
    pipeline.intend(G1, target=1)
    pipeline.start("split-0")
    pipeline.start("merge-0", "--slot", "0")
    pipeline.start("replica-0a", "--pair", "pair-0")
    for _ in range(3):
        pipeline.feed()
    # New drivers have another number of state partitions.
    pipeline.describe(cores=2)
    pipeline.intend(G1, G2, target=1)
    for pair in ("pair-1", "pair-2"):
        for half in "ab":
            pipeline.start(f"replica-{pair[-1]}{half}", "--pair", pair)
    wait_for(lambda: pipeline.synced("pair-1") == pipeline.synced("pair-2") == 2)
    pipeline.intend(G1, G2, target=2)
    pipeline.feed()
    assert pipeline.generation() == 2
    assert pipeline.members["replica-0a"].process.wait(60) == RETIRED
    pipeline.describe(cores=1)
    pipeline.intend(G2, G3, target=2)
    pipeline.start("replica-3a", "--pair", "pair-3")
    wait_for(lambda: pipeline.synced("pair-3") == 1)
    pipeline.intend(G2, G3, target=3)
    pipeline.feed()
    assert pipeline.generation() == 3
    assert sorted(pipeline.rows()) == sorted(expected(pipeline.files))
