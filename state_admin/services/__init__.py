"""The verbs. See CONTRIBUTING.md."""

from __future__ import annotations

from project import service_spans

# Before any module of the package is imported.
service_spans.install()
