"""`python -m tests.released VERSION`."""

from __future__ import annotations

import sys

from tests.released import record

record(sys.argv[1])
