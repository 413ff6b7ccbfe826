"""Writes the generated pages of docs/: the OpenAPI document."""

from __future__ import annotations

from typing import Any

import orjson
from django.core.management.base import BaseCommand
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from project.env import BASE_DIR

OPENAPI = BASE_DIR / "docs" / "openapi.json"


def openapi() -> bytes:
    """The document of the API as it is now, the same bytes every time."""
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    validate_schema(document)  # type: ignore[no-untyped-call]
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(document, option=options)


class Command(BaseCommand):
    help = "Write docs/openapi.json again. make docs calls it; a test fails when it is due."

    def handle(self, *args: Any, **options: Any) -> None:
        OPENAPI.write_bytes(openapi())
        self.stdout.write(f"wrote {OPENAPI.relative_to(BASE_DIR)}")
