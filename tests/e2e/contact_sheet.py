"""The contact sheet of all screenshots: an HTML page, and pictures of it by theme and width."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from pathlib import Path

from playwright.sync_api import Browser

# How many screenshots a picture shows: a browser holds them all at full size.
EACH = 16
STYLE = """
body { margin: 24px; font: 13px system-ui; background: #888; color: #000 }
section { display: grid; gap: 16px; inline-size: 1640px; grid-template-columns: repeat(4, 1fr) }
section.narrow { grid-template-columns: repeat(8, 1fr) }
figure { margin: 0 } figcaption { padding-block-end: 4px; font-weight: 600 }
img { display: block; inline-size: 100%; object-fit: cover; object-position: top; background: #fff }
"""


def write_contact_sheet(browser: Browser, folder: Path) -> None:
    """Write `index.html`, which shows the top of each screenshot `<page>-<theme>-<width>.png` of the
    folder and links to it, and pictures of it, `sheet/<theme>-<width>-<number>.png`."""
    looks: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.glob("*.png")):
        looks["-".join(path.stem.rsplit("-", 2)[1:])].append(path)
    sheet = folder / "sheet"
    sheet.mkdir(exist_ok=True)
    for path in sheet.glob("*.png"):
        path.unlink()
    page = browser.new_page(viewport={"width": 1700, "height": 900})
    # A file, because only files may show files.
    index = folder / "index.html"
    for look, paths in looks.items():
        for start in range(0, len(paths), EACH):
            index.write_text(_document(_section(look, paths[start : start + EACH], "eager")))
            page.goto(index.as_uri())
            picture = sheet / f"{look}-{start // EACH + 1}.png"
            page.locator("section").screenshot(path=picture)
    page.close()
    sections = [f"<h2>{look}</h2>{_section(look, looks[look], 'lazy')}" for look in looks]
    index.write_text(_document("".join(sections)))


def _section(look: str, paths: Sequence[Path], loading: str) -> str:
    width = int(look.rpartition("-")[2])
    figures = (
        f"<figure><figcaption>{escape(path.stem.removesuffix(f'-{look}'))}</figcaption>"
        f'<a href="{path.name}"><img src="{path.name}" alt="" loading="{loading}"'
        f' style="aspect-ratio: {width} / 860"></a></figure>'
        for path in paths
    )
    return f'<section class="{"narrow" if width < 600 else "wide"}">{"".join(figures)}</section>'


def _document(body: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>All pages</title>'
        f"<style>{STYLE}</style>{body}</html>"
    )
