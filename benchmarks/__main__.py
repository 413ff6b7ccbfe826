"""`make bench`: runs every benchmark, one after the other. `python -m benchmarks NAME` runs one.

`--peer PYTHON` is for the benchmarks that compare with other libraries (checkpoints.py,
comparison.py, steps.py). The benchmark of recorded conversations runs only if it is named or
TRANSCRIPTS=FILE is set; those of a large database (capacity.py, plans.py, year.py) only if they are named.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

_NOT_BENCHMARKS = {
    "__init__",
    "__main__",
    "database_floors",
    "databases",
    "empty_view",
    "load",
    "own_server",
    "peer_servers",
    "seeded_rows",
    "seeding",
    "settings",
    "tables",
    "urls",
}
# They fill a large database, which takes a quarter of an hour, and run only if they are named.
_LARGE = {"capacity", "plans", "year"}
# They compare with libraries that are installed in another environment.
_WITH_PEERS = {"checkpoints", "comparison", "steps"}


def main() -> None:
    here = Path(__file__).parent
    names = sorted(p.stem for p in here.glob("*.py") if p.stem not in _NOT_BENCHMARKS)
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--peer", metavar="PYTHON")
    arguments = options.parse_args()
    if unknown := [name for name in arguments.names if name not in names]:
        sys.exit(f"no such benchmark: {unknown[0]}; available: {', '.join(names)}")
    chosen = arguments.names or [name for name in names if name not in _LARGE]
    transcripts = os.environ.get("TRANSCRIPTS", "")
    if transcripts and not Path(transcripts).is_file():
        # Before the other benchmarks, which take minutes.
        sys.exit(f"TRANSCRIPTS is not a file: {transcripts}")
    for name in chosen:
        if name == "compaction" and not (transcripts or arguments.names):
            print("== compaction: skipped; set TRANSCRIPTS=FILE to recorded conversations")
            continue
        print(f"== {name}", flush=True)
        more = ["--peer", arguments.peer] if name in _WITH_PEERS and arguments.peer else []
        # One process each, because a benchmark has its own settings, database and server.
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *more], check=False)
        if done.returncode:
            sys.exit(f"{name} failed")


if __name__ == "__main__":
    main()
