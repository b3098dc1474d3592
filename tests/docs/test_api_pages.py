"""Every public name has its place in the API pages, and every page its place in the menu."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))


def entry(page: Path) -> tuple[str, list[str]]:
    """The module that a page documents, and the names it lists, in order."""
    match = re.fullmatch(r"# (\S+)\n\n::: (\S+)\n(.*)", page.read_text(), re.DOTALL)
    assert match is not None, f"{page.name}: expected a heading and one `:::` block"
    assert match[1] == match[2]
    return match[2], yaml.safe_load(match[3])["options"]["members"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_lists_what_its_module_makes_public(page: Path):
    name, listed = entry(page)
    public = importlib.import_module(name).__all__
    assert len(listed) == len(set(listed))
    assert set(public) - set(listed) == set(), f"add these to docs/api/{page.name}"
    assert set(listed) - set(public) == set(), f"take these out of docs/api/{page.name}"
    module = importlib.import_module(name)
    bare = [
        one for one in listed if callable(getattr(module, one)) and not getattr(module, one).__doc__
    ]
    assert bare == [], "these have no docstring, so the page does not show them"


def test_every_page_is_in_the_menu():
    config = ROOT / "mkdocs.yml"
    if not config.exists():
        pytest.skip("mkdocs.yml is not beside these tests: they run against an installed wheel")
    text = config.read_text()
    missing = [page.name for page in PAGES if f"api/{page.name}" not in text]
    guides = [page.name for page in (ROOT / "docs" / "guide").glob("*.md")]
    missing += [name for name in guides if f"guide/{name}" not in text]
    assert missing == []
