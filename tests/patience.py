"""How long a test waits for what must happen. Only a hang takes so long: no machine is that slow."""

from __future__ import annotations

PATIENCE = 300.0
