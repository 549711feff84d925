"""Pictures of reports for docs/report.md and docs/tutorial.md: `python tools/report_pictures.py`.

Runs `graphratio demo` and the tutorial, opens their reports in Chromium as a reader would, and
stores what is on the screen. Needs playwright and Chromium.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDER = DOCS / "_static" / "report"

# Colours kept in a picture, so that all of them together stay small.
COLOURS = 200

# What Chromium needs to run as root and without talking to anybody.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def first_screen(page: Page) -> None:
    """What a reader sees for the first ten seconds."""


def map_and_panel(page: Page) -> None:
    """The panel of Austin, opened from the map."""
    page.locator("#map").scroll_into_view_if_needed()
    page.evaluate("document.querySelector('#where-section').scrollIntoView()")
    page.locator('#nodes tbody tr:has-text("AUS") button').first.dispatch_event("click")
    page.evaluate("document.querySelector('#where-section').scrollIntoView()")
    page.mouse.move(1, 1)


def curtain(page: Page) -> None:
    """The section that compares ten flights with all of them."""
    page.evaluate("document.querySelector('#own-section').scrollIntoView()")


SHOTS: dict[str, tuple[tuple[int, int], Any]] = {
    "first-screen": ((1400, 1060), first_screen),
    "panel": ((1100, 760), map_and_panel),
    "curtain": ((1100, 560), curtain),
    "phone": ((390, 844), map_and_panel),
    "tutorial": ((1400, 1060), first_screen),
}


def tutorial(folder: Path) -> None:
    """Run the code of the tutorial in a folder with its data."""
    shutil.copytree(DOCS / "data", folder)
    cells = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(each["source"]) for each in cells if each["cell_type"] == "code")
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, stdout=subprocess.DEVNULL)


def main() -> None:
    """Write all pictures."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if browser is None:
        sys.exit("Chromium is not installed")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        demo = [sys.executable, "-m", "graphratio", "demo", "--quiet", "--output", temporary]
        subprocess.run(demo, check=True)
        tutorial(folder / "tutorial")
        running = playwright.chromium.launch(executable_path=browser, args=FLAGS)
        for name, ((width, height), prepare) in SHOTS.items():
            page = running.new_page(viewport={"width": width, "height": height})
            report = "tutorial/flights-report.html" if name == "tutorial" else "report.html"
            page.goto((folder / report).as_uri())
            page.wait_for_selector("html[data-ready]")
            prepare(page)
            page.wait_for_timeout(1000)
            target = FOLDER / f"{name}.png"
            page.screenshot(path=target)
            Image.open(target).convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(
                target, optimize=True
            )
            page.close()
        running.close()


if __name__ == "__main__":
    main()
