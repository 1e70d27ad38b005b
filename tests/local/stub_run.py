"""`tandem run` with stub members: stub_run.py MANIFEST DIR [SECONDS]."""

import sys
from pathlib import Path

from tandem.local.run import Programs
from tandem.local.store.directory import Directory
from tandem.local.store.paths import with_absolute_paths
from tandem.policy.snapshot import MemberPlace
from tandem.policy.timeouts import Timeouts
from tandem_cli.run import execute, load, rows_delivered

MEMBER = Path(__file__).with_name("stub_member.py")
CHECK = Path(__file__).with_name("stub_check.py")
LIMITS = Timeouts(unheard=0.8, hung=2.5, leaving=2.0, first_delay=0.2, most_delay=1.0)


def command(directory: Path, place: MemberPlace, volume: str) -> list[str]:
    arguments = [str(directory), place.name, place.kind, place.pair or "", volume]
    return [sys.executable, str(MEMBER), *arguments]


def assign(directory: Directory, volume: str, pair: str) -> None:
    given = directory.path / "stub" / f"{volume}.pair"
    # Renamed into place: the spare looks for the name and must not find it empty.
    draft = given.with_suffix(".draft")
    draft.write_text(pair)
    draft.replace(given)


def check(directory: Path) -> list[str]:
    return [sys.executable, "-S", str(CHECK), str(directory)]


PROGRAMS = Programs(command, assign, check, rows_delivered)


def main(manifest: Path, directory: Path, seconds: float | None) -> int:
    pipeline = load(manifest)
    if isinstance(pipeline, int):
        return pipeline
    base = manifest.parent
    pipeline = with_absolute_paths(pipeline, base, base)
    return execute(pipeline, base, Directory(directory), PROGRAMS, seconds, LIMITS)


if __name__ == "__main__":
    time_given = float(sys.argv[3]) if len(sys.argv) > 3 else None
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), time_given))
