"""A span for each service that a request or a job calls, if traces are on (docs/traces.md).

A service is a public function of state_admin.services whose arguments begin with `*, actor`. It is wrapped when its
module is imported, so no function must be decorated, and while traces are off, none is wrapped.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any, Final

from project import log_context, tracing

_PACKAGE: Final = "state_admin.services."


def install() -> None:
    """Wrap the services of the modules that are imported from now on, if the environment requests
    traces."""
    if tracing.is_configured():
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PACKAGE):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for name, each in list(vars(module).items()):
            if _is_service(module, name, each):
                setattr(module, name, _traced(each))


def _is_service(module: ModuleType, name: str, each: Any) -> bool:
    return (
        isinstance(each, FunctionType)
        and each.__module__ == module.__name__
        and not name.startswith("_")
        and each.__code__.co_argcount == 0
        and each.__code__.co_varnames[:1] == ("actor",)
        and not inspect.isgeneratorfunction(each)  # it works after it has returned
    )


def _traced(service: Callable[..., Any]) -> Callable[..., Any]:
    name = f"{service.__module__.removeprefix(_PACKAGE)}.{service.__qualname__}"
    function = {"code.function.name": f"{service.__module__}.{service.__qualname__}"}

    @functools.wraps(service)
    def traced(**arguments: Any) -> Any:
        ids = log_context.attributes_of(log_context.ids_in(arguments))
        with tracing.child(name, function | ids):
            return service(**arguments)

    return traced
