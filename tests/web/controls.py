"""The controls of a form with an editor, as a browser sees them."""

from __future__ import annotations

from html.parser import HTMLParser

from django.test import Client


class Controls(HTMLParser):
    """What a browser would send of the form with the editor, and the texts of its labels."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sent: dict[str, list[str]] = {}
        self.tags: dict[str, dict[str, str | None]] = {}
        self._area = self._select = ""
        form = page[page.index("<form data-guard") :]
        self.feed(form[: form.index("</form>")].replace("\r\n", "\n"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = given.get("name") or ""
        if name:
            self.tags[name] = {"tag": tag, **given}
        if tag == "textarea":
            self._area = name
            self.sent[name] = [""]
        elif tag == "select":
            self._select = name
            self.sent[name] = [""]
        elif tag == "option" and "selected" in given:
            self.sent[self._select] = [given["value"] or ""]
        elif tag == "input" and given.get("type") in ("radio", "checkbox"):
            if "checked" in given:
                self.sent.setdefault(name, []).append(given["value"] or "")
        elif tag == "input":
            self.sent[name] = [given.get("value") or ""]

    def handle_data(self, data: str) -> None:
        if self._area:
            self.sent[self._area] = [data.removeprefix("\n").replace("\n", "\r\n")]

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = ""


def form_of(client: Client, url: str) -> Controls:
    return Controls(client.get(url).content.decode())
