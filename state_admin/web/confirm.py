"""The question before anything destructive: what, how many, why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.http import HttpRequest, HttpResponse

from .htmx import render

PREVIEW = 20


@dataclass(frozen=True)
class Choice:
    value: str
    label: str
    checked: bool = False


@dataclass(frozen=True)
class Input:
    """Something to type before the deed."""

    name: str
    label: str
    help: str = ""
    kind: str = "text"


@dataclass(frozen=True)
class Confirm:
    """What components/_confirm.html shows. Posting goes to `url` with `fields`, the choice, what is
    typed and `reason`; `back` is where Cancel leads without JavaScript. A `download` is answered
    by a file, so the page stays. Without a `verb` there is nothing to do, and no button."""

    title: str
    verb: str
    url: str
    back: str
    lines: Sequence[str] = ()
    # The first names of what goes, and how many there are beyond them.
    preview: Sequence[str] = ()
    more: int = 0
    fields: Sequence[tuple[str, str | int]] = ()
    choices_name: str = ""
    choices_label: str = ""
    choices: Sequence[Choice] = field(default_factory=tuple)
    inputs: Sequence[Input] = ()
    kind: str = "danger"
    download: bool = False


def ask(
    request: HttpRequest, confirm: Confirm, *, part: str = "", status: int = 200
) -> HttpResponse:
    """Show the question: as a dialog for htmx, else as a page. `part` is the id of the element
    that the answer to the post replaces."""
    return render(
        request, "confirm.html", {"confirm": confirm, "part": part}, part="confirm", status=status
    )
