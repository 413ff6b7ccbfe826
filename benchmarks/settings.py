"""The product's settings, with one more path: the empty view of the baseline."""

from __future__ import annotations

from project.settings import *

ROOT_URLCONF = "benchmarks.urls"
