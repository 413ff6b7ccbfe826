"""What programs may rely on: one module per noun, and the operations of all of them."""

from __future__ import annotations

from typing import Final

from . import tickets
from .base import Operation

NOUNS: Final = (tickets,)

OPERATIONS: Final[dict[str, Operation]] = {
    each.id: each for noun in NOUNS for each in vars(noun).values() if isinstance(each, Operation)
}
