"""How Sphinx builds the documentation. `make docs` writes it to site/ (ADR 16 says why this generator)."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

project = "Commonhold"
author = "The Commonhold authors"

extensions = ["myst_parser"]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]

# Links to headings have the anchors that GitHub gives them.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
# Examples contain `…` where any text may stand, which is not valid in their language.
suppress_warnings = ["misc.highlighting_failure"]

# Options such as `--write` and JSON are printed as they are typed.
smartquotes = False

html_theme = "furo"
html_title = "Commonhold"
html_favicon = "../static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False


class English(SearchEnglish):
    """With numbers of three digits: readers look up status codes, such as 410."""

    def word_filter(self, word: str) -> bool:
        return (len(word) == 3 and word.isdigit()) or super().word_filter(word)


def setup(app: Sphinx) -> None:
    app.add_search_language(English)
