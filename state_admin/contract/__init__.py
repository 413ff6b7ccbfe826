"""What programs may rely on: one module per noun, and the operations of all of them."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Final

from .base import Operation

_MODULES: Final = [
    import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)
]

OPERATIONS: Final[dict[str, Operation]] = {
    each.id: each
    for module in _MODULES
    for each in vars(module).values()
    if isinstance(each, Operation)
}
