"""The confirmation of a destructive action: what it does, to how many, and the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse
from django.utils.encoding import escape_uri_path

from .htmx import render, wants_part

PREVIEW = 20
_DETAILS = "confirm-details"


@dataclass(frozen=True)
class Choice:
    value: str
    label: str
    checked: bool = False


# What happens to the entries of namespaces that are unregistered.
ENTRY_CHOICES = (
    Choice(
        "retain", "Keep them; they become available when their namespace is registered again", True
    ),
    Choice("delete", "Delete them; their history is kept"),
)


@dataclass(frozen=True)
class Input:
    """An input of a confirmation."""

    name: str
    label: str
    help: str = ""
    kind: str = "text"
    value: str = ""
    longest: int = 64
    required: bool = True


@dataclass(frozen=True)
class Count:
    """The context of components/_count.html: what was counted, the address that counts further, and
    that of the page which counts all, for browsers without JavaScript."""

    text: str
    next_url: str = ""
    whole_url: str = ""


@dataclass(frozen=True)
class Confirm:
    """The context of components/_confirm.html. The form posts `fields`, the choice, the checks, the
    inputs and `reason` to `url`, by default that of the confirmation; Cancel goes to `back` if JavaScript is off.
    With `download` the response is a file and the page stays open. Without a `verb` there is no button.
    `details_url`: the address from which `names_title` and `names` are loaded after the page, if they take
    long to compute. `names_title`: the sentence above the names."""

    title: str
    verb: str
    back: str
    url: str = ""
    count: Count | None = None
    lines: Sequence[str] = ()
    details_url: str = ""
    names_title: str = ""
    # The names of what is affected. `total`: their number, if these are only the first ones.
    names: Sequence[str] = ()
    total: int | None = None
    fields: Sequence[tuple[str, str | int]] = ()
    choices_name: str = ""
    choices_label: str = ""
    choices: Sequence[Choice] = ()
    # Names and labels of check boxes, which are not checked at first.
    checks: Sequence[tuple[str, str]] = ()
    inputs: Sequence[Input] = ()
    kind: str = "danger"
    download: bool = False

    @property
    def preview(self) -> Sequence[str]:
        return self.names[:PREVIEW]

    @property
    def more(self) -> int:
        """How many names the preview lacks."""
        total = len(self.names) if self.total is None else self.total
        return total - len(self.preview)

    @property
    def dismissal(self) -> str:
        """The label of the link that does nothing. Beside "Cancel run", "Cancel" would be ambiguous."""
        return "Close" if not self.verb or self.verb.startswith("Cancel") else "Cancel"


def reason_of(request: HttpRequest) -> str:
    """The reason that the form of a confirmation or of an editor has, "" without one."""
    return request.POST.get("reason", "").strip()[:500]


def ask(request: HttpRequest, confirm: Confirm, *, part: str = "") -> HttpResponse:
    """Show a confirmation: a dialog for htmx, else a page. `part` is the id of the element that the
    response to the POST replaces."""
    confirm = replace(confirm, url=confirm.url or escape_uri_path(request.path))
    context = {"confirm": confirm, "part": part}
    return render(request, "confirm.html", context, part="confirm")


def show_details(request: HttpRequest, confirm: Confirm) -> HttpResponse:
    """The names of a confirmation, for its `details_url`; the confirmation without htmx."""
    if wants_part(request):
        return render(request, "components/_confirm.html", {"confirm": confirm}, part=_DETAILS)
    return ask(request, confirm)
