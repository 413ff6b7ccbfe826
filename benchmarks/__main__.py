"""`make bench`: every benchmark, one after the other; `python -m benchmarks NAME` runs one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_NOT_BENCHMARKS = {
    "__init__",
    "__main__",
    "databases",
    "seeded_rows",
    "seeding",
    "settings",
    "urls",
}


def main() -> None:
    here = Path(__file__).parent
    names = sorted(p.stem for p in here.glob("*.py") if p.stem not in _NOT_BENCHMARKS)
    wanted = sys.argv[1:] or names
    if unknown := [name for name in wanted if name not in names]:
        sys.exit(f"no such benchmark: {unknown[0]}; there are {', '.join(names)}")
    for name in wanted:
        print(f"== {name}", flush=True)
        # A process each: a benchmark owns its settings, its database and its server.
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)


if __name__ == "__main__":
    main()
