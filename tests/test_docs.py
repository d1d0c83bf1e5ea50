"""The documentation as a site: it builds without a warning, and loads nothing from another host."""

import os
import re
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

BUILDS_THE_SITE = pytest.mark.slow(5)
ROOT = Path(__file__).parents[1]
LOADED = re.compile(
    r'<(?:script|img|iframe|source)[^>]*\ssrc="([^"]+)"|<link[^>]*\srel="(?:stylesheet|icon|preload)"[^>]*>'
)
ELSEWHERE = re.compile(r"(?:https?:)?//[^/]")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    return folder


@BUILDS_THE_SITE
def test_the_site_loads_nothing_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        for match in LOADED.finditer(page.read_text()):
            assert not ELSEWHERE.match(match[1] or ""), f"{page.name} loads {match[0]}"
            assert not re.search(r'href="(?:https?:)?//', match[0]), f"{page.name} loads {match[0]}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", style.read_text()), style


@BUILDS_THE_SITE
def test_the_reference_pages_are_in_the_site(site: Path) -> None:
    assert "consumer_capacity" in (site / "settings.html").read_text()
    assert "kcga doctor" in (site / "commands.html").read_text()


def test_the_walks_through_the_code_are_true() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    walks = page.split("\n## ")[1:]
    assert len(walks) == 3
    for walk in walks:
        assert re.findall(r"^(\d+)\. `[\w.]+:", walk, re.MULTILINE) == [str(number) for number in range(1, 13)]
    for station in re.findall(r"`([\w.]+:[\w.]+)`", "".join(walks)):
        assert callable(resolve_name(station)), station


def test_pages_of_the_repository_lead_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert target.startswith("https://") or (ROOT / target).exists(), f"{page.name} leads to {target}"
