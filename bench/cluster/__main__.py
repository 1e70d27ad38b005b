"""`python -m bench.cluster`: failures of pods and nodes on this machine's Kubernetes cluster.

Compares a pipeline of one pair with plain Structured Streaming in one driver pod, in the same
cluster and with the same rows: how long the output pauses, and how soon all replicas are back. The
memory of two pairs is measured as well.
"""

import sys
from collections.abc import Iterator, Sequence
from functools import partial

from bench.cluster.plain_pods import PlainPods
from bench.cluster.runs import Outcome, Plan, carry_out
from bench.cluster.sides import FROZEN_SECONDS, Fault, Load
from bench.cluster.tandem_pods import TandemPods
from bench.cluster.told import TANDEM, TWO_PAIRS, data, describe
from bench.streaming.pictures import draw_failover
from bench.streaming.plain_run import Launch
from bench.streaming.report import Attempts, arguments_parser, conditions, report

from cluster.trial.stage import stage
from cluster.versions import KUBERNETES


def plans(faults: Sequence[Fault], tries: int) -> Iterator[Plan]:
    """All measurements; faults of nodes are tried less often."""
    for fault in faults:
        times = max(1, tries // 2) if fault.leaves_one_node else tries
        yield Plan(TANDEM, partial(TandemPods, pairs=1), fault, times)
        if fault is fault.without_lead:
            stock = partial(PlainPods, launch=Launch.STOCK)
            yield Plan(Launch.STOCK.value, stock, fault, times, with_memory=fault is faults[0])
        if fault is Fault.KILL:
            tuned = partial(PlainPods, launch=Launch.TUNED)
            yield Plan(Launch.TUNED.value, tuned, fault, times)
            twice = partial(TandemPods, pairs=2)
            yield Plan(TWO_PAIRS, twice, fault, times, with_memory=True)


def main(arguments: Sequence[str]) -> int:
    """Measure, print the results and write them to files."""
    parser = arguments_parser("cluster", __doc__)
    parser.prog = "python -m bench.cluster"
    parser.add_argument("--tries", type=int, default=5, help="failures of each kind (5)")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=1_000, help="rows per second (1000)")
    parser.add_argument("--interval-ms", type=int, default=500, help="of an epoch (500)")
    parser.add_argument("--memory-mib", type=int, default=1024, help="of a whole driver (1024)")
    parser.add_argument(
        "--faults", nargs="+", choices=[each.name for each in Fault], metavar="FAULT"
    )
    parser.add_argument("--keep", action="store_true", help="leave cluster and operator there")
    chosen = parser.parse_args(arguments)
    faults = [Fault[name] for name in chosen.faults] if chosen.faults else list(Fault)
    load = Load(chosen.keys, chosen.rate, chosen.interval_ms, chosen.memory_mib)
    found = conditions(
        {
            "Kubernetes": KUBERNETES,
            "workers": 2,
            "frozen seconds": FROZEN_SECONDS,
            **{name: getattr(chosen, name) for name in ("keys", "rate", "interval_ms")},
            "memory_mib": chosen.memory_mib,
        }
    )
    attempts = Attempts()
    with stage(leave=chosen.keep) as ready:
        outcomes: list[Outcome] = [
            outcome
            for plan in plans(faults, chosen.tries)
            for outcome in attempts.run(plan.name, partial(carry_out, plan, ready, load))
        ]
    cases, sides = [each.case for each in outcomes], [each.side for each in outcomes]
    draw = partial(draw_failover, cases, sides, load.interval)
    body = describe(outcomes, load.interval) + attempts.told()
    report(chosen, "cluster", found, body, data(outcomes), draw)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
