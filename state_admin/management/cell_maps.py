"""The map files of HAProxy for several cells: `tokens.map` and `hosts.map`.

Each cell writes its routes to files of its own in the folder `cells`, and then the maps from the files
of all cells. So the cells may write in any order.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# The cells of keys. A key is a prefix of tokens, or a host name.
Routes = Mapping[str, str]


class ContradictoryMaps(Exception):
    """Two cells claim the same key."""


def render_routes(routes: Routes) -> str:
    return "".join(f"{key} {cell}\n" for key, cell in routes.items())


def write_maps(folder: Path, cell: str, maps: Mapping[str, Routes]) -> list[str]:
    """Replace the routes of a cell in `folder`, and then the maps. `maps`: routes by the name of the map.
    Returns the names of the maps that have changed.

    Raises ContradictoryMaps, and leaves the maps as they were, if two cells claim the same key.
    """
    parts = folder / "cells"
    parts.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        for name, routes in maps.items():
            _replace(parts / f"{cell}.{name}", render_routes(routes))
        texts = {name: _combine(name, parts) for name in maps}
        return [name for name, text in texts.items() if _replace(folder / f"{name}.map", text)]


def _combine(name: str, parts: Path) -> str:
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for part in sorted(parts.glob(f"*.{name}")):
        for line in part.read_text().splitlines():
            key, cell = line.split()
            found[key][part.stem] = cell
    return render_routes({key: _choose(key, named) for key, named in sorted(found.items())})


def _choose(key: str, named: Mapping[str, str]) -> str:
    """The cell of a key. `named`: the cell that each cell names for the key. A workspace that was moved
    twice has rows in three cells; a cell that names itself takes precedence."""
    cells = {cell for by, cell in named.items() if by == cell} or set(named.values())
    if len(cells) > 1:
        raise ContradictoryMaps(f"{key} belongs to the cells {' and '.join(sorted(cells))}")
    return cells.pop()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Permit one writer at a time. Otherwise a map could lack the routes that another cell has just
    written."""
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _replace(path: Path, text: str) -> bool:
    """Replace a file atomically. Returns whether its content has changed."""
    if path.exists() and path.read_text() == text:
        return False
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as draft:
        try:
            draft.write(text)
            draft.flush()
            os.fsync(draft.fileno())
            # HAProxy runs as another user. The files contain the public parts of tokens only.
            os.fchmod(draft.fileno(), 0o644)
            Path(draft.name).replace(path)
        except BaseException:
            Path(draft.name).unlink()
            raise
    return True
