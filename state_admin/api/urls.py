"""All paths of the API. An id is one percent-encoded segment, a key the rest of the path.

Django tries one pattern after the other. Patterns below a shared prefix cost the others a single
comparison, and the most frequent paths come first.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable
from importlib import import_module

from django.http import HttpResponseBase
from django.urls import URLPattern, URLResolver, include, path, re_path, register_converter
from django.urls.converters import StringConverter

from project.paths import shadowing
from state_admin import api
from state_admin.contract import OPERATIONS
from state_admin.contract.base import Operation
from state_admin.domain.config import Kind

from . import (
    description,
    endpoint,
    plugins,
)
from .endpoint import view_of

app_name = "api"


class KindConverter(StringConverter):
    regex = "|".join(Kind)


register_converter(KindConverter, "kind")


def _below(prefix: str, *patterns: URLPattern) -> URLResolver:
    return path(prefix, include(list(patterns)))


# Importing a module registers its handlers.
for _module in pkgutil.iter_modules(api.__path__):
    import_module(f"{api.__name__}.{_module.name}")

# Converters of path parameters that are not one segment.
_CONVERTERS = {"key": "tail", "kind": "kind", "revision": "int"}


def _route(path_: str) -> str:
    def converted(found: re.Match[str]) -> str:
        name = found[1]
        return f"<{_CONVERTERS.get(name, 'segment')}:{name}>"

    return re.sub(r"\{(\w+)\}", converted, path_)


# The first segments of the most frequent paths, in the order in which they are tried.
_FREQUENT = ("state", "runs", "threads")
# Paths that are also the address of one thing of another path, for the methods they do not have.
_SHADOWING = {"/state/batch": ("/state/{namespace}", {"namespace": "batch"})}


def _contract_patterns() -> list[URLPattern | URLResolver]:
    """A pattern for each path of the contract, named as the path."""
    by_path: dict[str, list[Operation]] = {}
    for operation in OPERATIONS.values():
        by_path.setdefault(operation.path, []).append(operation)
    views = {each: view_of(operations) for each, operations in by_path.items()}
    below: dict[str, list[URLPattern]] = {first: [] for first in _FREQUENT}
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
    return [*(_below(f"v1/{first}/", *patterns) for first, patterns in below.items()), *whole]


def _parameters_last(path_: str) -> list[int]:
    """A word comes before a parameter that would match it, a long path before its beginning."""
    return [*(each.startswith("{") for each in path_.split("/")), 2]


urlpatterns = [
    *_contract_patterns(),
    path("v1/plugins", plugins.PluginList.as_view(), name="plugins"),
    path("v1/plugins/<segment:name>", plugins.PluginDetail.as_view(), name="plugin"),
    path("schema", description.SchemaDocument.as_view(), name="schema"),
    path("docs", description.DocsPage.as_view(), name="docs"),
    re_path(r"^(?P<rest>(?s:.*))\Z", endpoint.UnknownPath.as_view(), name="unknown"),
]
