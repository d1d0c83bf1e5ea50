"""A page in a browser that is watched: what its console says, whom it asks, what axe-core finds wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.patience import PATIENCE_S

DESKTOP = (1280, 900)
PHONE = (390, 844)
SERIOUS = {"serious", "critical"}


@contextmanager
def opened(
    browser: Browser, url: str, size: tuple[int, int] = DESKTOP, *, dark: bool = False, no_fault: bool = True
) -> Iterator[Page]:
    """The page; at the end it must have had no error, and asked no other host."""
    faults: list[str] = []
    hosts: set[str] = set()
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        has_touch=size == PHONE,
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_S * 1_000)
    page = context.new_page()
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    try:
        page.goto(url)
        yield page
    finally:
        context.close()
    if no_fault:
        assert faults == []
    assert hosts == {urlsplit(url).netloc}


def serious_faults(page: Page) -> list[str]:
    """What axe-core finds that keeps people from using the page."""
    found = Axe().run(page)
    return [
        f"{fault['id']}: {fault['help']}: {[node['target'] for node in fault['nodes'][:3]]}"
        for fault in found["violations"]
        if fault["impact"] in SERIOUS
    ]
