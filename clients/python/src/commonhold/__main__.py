"""`python -m commonhold`: see cli."""

from __future__ import annotations

import sys

from commonhold.cli import main

sys.exit(main())
