"""Simulated schedules up to the first violation: `simulate.py SCHEDULES SEED`, exit 1 if any."""

import gc
import sys

from tandem_simulator.engine.schedule import run_schedule


def main(schedules: int, seed: int) -> int:
    gc.disable()
    for number in range(schedules):
        if run_schedule(seed, number).violation is not None:
            return 1
        if number % 20 == 0:
            gc.collect()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
