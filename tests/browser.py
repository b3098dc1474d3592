"""Pages as a reader meets them: Chromium, and a watch on what a page asks for or complains of."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# WebGL without a graphics card, computed by the processor.
SOFTWARE_WEBGL = [
    *(word for word in ARGUMENTS if word != "--disable-gpu"),
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]


@contextlib.contextmanager
def launched(chromium: str, arguments: list[str] = ARGUMENTS) -> Iterator[Any]:
    """A browser that is closed again."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        browser.close()


@contextlib.contextmanager
def reading(
    browser: Any,
    path: Path,
    *,
    width: int,
    height: int,
    ready: str | None = None,
    allowed: str = "",
) -> Iterator[Callable]:
    """A function that opens a page, by default that at `path`, and waits for `ready`.

    In the end nothing may have been asked for or complained about, but for messages that hold the
    words `allowed`.
    """
    complaints: list[str] = []
    default, wide = path, width

    with contextlib.ExitStack() as stack:

        def open_it(path=default, width=wide, height=height, fragment="", **options):
            size = {"width": width, "height": height}
            context = browser.new_context(viewport=size, **options)
            stack.callback(context.close)
            page = context.new_page()
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on(
                "request",
                lambda asked: (
                    None
                    if asked.url.startswith(("data:", "blob:", path.as_uri()))
                    else complaints.append(asked.url)
                ),
            )
            page.goto(path.as_uri() + fragment)
            if ready is not None:
                page.wait_for_selector(ready, timeout=20_000)
            return page

        yield open_it
    assert [c for c in complaints if not (allowed and allowed in c)] == []
