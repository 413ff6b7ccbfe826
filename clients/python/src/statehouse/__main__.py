"""`python -m statehouse`: see cli."""

from __future__ import annotations

import sys

from statehouse.cli import main

sys.exit(main())
