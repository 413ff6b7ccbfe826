"""What the server does. A public function is one operation, and owns its transaction."""

from __future__ import annotations

from project import service_spans

# Before any module of the package is imported.
service_spans.install()
