"""A worker with an additional job for tests: `python -m tests.project.sample_worker [ring …]`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import django

django.setup()

from project import broker, job_notifications
from project.celery import app, run


@app.task(name="tests.note")
def note(line: str, until: str = "") -> None:
    """Write that it started and, once the file `until` exists, that it ended."""
    notes = Path(os.environ["NOTES"])
    with notes.open("a") as file:
        file.write(f"{line} started by {os.getpid()}\n")
    while until and not Path(until).exists():
        time.sleep(0.01)
    with notes.open("a") as file:
        file.write(f"{line} ended by {os.getpid()}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["ring"]:
        broker.prepare()
        job_notifications.notify_worker("tests.note", *sys.argv[2:])
    else:
        run("worker", needs_tables=False)
