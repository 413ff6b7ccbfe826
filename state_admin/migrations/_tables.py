"""The operation that creates the tables of the first migration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps.registry import Apps
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class CreateTables(Operation):
    """All models first, then their tables. One after the other, Django would build the classes of all
    related models again for each: 1,000 classes for 43 tables, which takes longer than the rest of the
    migration. Operations other than CreateModel may only add foreign keys."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.clear_delayed_apps_cache()
        state.__dict__.pop("apps", None)  # a cached property, built again when it is needed
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        _: Any,
        to_state: ProjectState,
    ) -> None:
        for model in self._models(app_label, to_state.apps):
            schema_editor.create_model(model)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        _: Any,
    ) -> None:
        for model in reversed(self._models(app_label, from_state.apps)):
            schema_editor.delete_model(model)

    def describe(self) -> str:
        return "Create all tables"

    def _models(self, app_label: str, apps: Apps) -> list[Any]:
        created = [each.name for each in self.operations if isinstance(each, CreateModel)]
        return [apps.get_model(app_label, name) for name in created]
