"""The URL patterns of the contract. An id is one percent-encoded segment, a key the rest of the
path.

Django tries one pattern after the other. Patterns below a shared prefix cost the others a single
comparison, and the most frequent paths come first.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from django.http import HttpResponseBase
from django.urls import URLPattern, URLResolver, include, path, register_converter
from django.urls.converters import StringConverter

from project.paths import shadowing
from state_admin.contract import OPERATIONS
from state_admin.contract.base import Operation
from state_admin.domain.config import Kind

from .endpoint import HANDLERS, view_of


class KindConverter(StringConverter):
    regex = "|".join(Kind)


register_converter(KindConverter, "kind")

# Converters of path parameters that are not one segment.
_CONVERTERS = {"key": "tail", "kind": "kind", "revision": "int"}
# The first segments of the most frequent paths, in the order in which they are tried.
_FREQUENT = ("state", "runs", "threads")
_AGENT_THREAD = "/agent-protocol/threads/{thread_id}"
# Paths that are also the URL of one resource of another path: methods that they lack are passed to
# it.
_SHADOWING = {
    "/threads/delete": ("/threads/{thread_id}", {"thread_id": "delete"}),
    "/runs/cancel": ("/runs/{run_id}", {"run_id": "cancel"}),
    "/state/batch": ("/state/{namespace}", {"namespace": "batch"}),
    "/agent-protocol/threads/search": (_AGENT_THREAD, {"thread_id": "search"}),
    "/agent-protocol/threads/count": (_AGENT_THREAD, {"thread_id": "count"}),
}


def routes(package: ModuleType) -> list[URLPattern | URLResolver]:
    """A pattern for each path whose handlers are in `package`, named as the path."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(".urls"):
            import_module(module.name)  # registers its handlers
    by_path: dict[str, list[Operation]] = {}
    for operation in OPERATIONS.values():
        if _module_of(operation).startswith(f"{package.__name__}."):
            by_path.setdefault(operation.path, []).append(operation)
    views = {each: view_of(operations) for each, operations in by_path.items()}
    below: dict[str, list[URLPattern]] = {}
    whole: list[URLPattern | URLResolver] = []
    for each in sorted(views, key=_parameters_last):
        view: Callable[..., HttpResponseBase] = views[each].as_view()
        if each in _SHADOWING:
            shadowed, ids = _SHADOWING[each]
            view = shadowing(views[each], views[shadowed], **ids)
        first, _, rest = each[1:].partition("/")
        if rest:
            below.setdefault(first, []).append(path(_route(rest), view, name=each))
        else:
            whole.append(path(f"v1/{first}", view, name=each))
    ordered = sorted(below, key=lambda first: first not in _FREQUENT)
    return [*(path(f"v1/{first}/", include(below[first])) for first in ordered), *whole]


def _module_of(operation: Operation) -> str:
    """Where the handler of an operation is; "" without one."""
    handler = HANDLERS.get(operation.id)
    return str(getattr(handler, "func", handler).__module__) if handler else ""


def _route(template: str) -> str:
    def converted(match: re.Match[str]) -> str:
        name = match[1]
        return f"<{_CONVERTERS.get(name, 'segment')}:{name}>"

    return re.sub(r"\{(\w+)\}", converted, template)


def _parameters_last(template: str) -> list[int]:
    """Sort key: a literal segment precedes a parameter that would match it, a longer path its own
    prefix."""
    return [*(each.startswith("{") for each in template.split("/")), 2]
