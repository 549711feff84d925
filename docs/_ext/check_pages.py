"""Open every built page on the screen of a telephone, and look up every public name in the search.

python docs/_ext/check_pages.py docs/_build/html

A page that scrolls sideways is named with the elements that stick out, and one whose scripts fail
with what the browser says. Without Chromium or playwright only the search is checked.
"""

import json
import shutil
import sys
from importlib import import_module
from pathlib import Path

from snowballstemmer import stemmer

WIDTH = 390
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
MODULES = ("graphratio", "graphratio.datasets", "graphratio.testing", "graphratio.evaluation",
           "graphratio.changepoints", "graphratio.report", "graphratio.theory")  # fmt: skip

# Elements wider than the page, unless something around them scrolls by itself.
STICKING_OUT = """() => {
  const page = document.documentElement;
  if (page.scrollWidth <= page.clientWidth) return [];
  const out = [...document.querySelectorAll('main *')].filter((each) => {
    if (each.getBoundingClientRect().right <= page.clientWidth + 1) return false;
    for (let up = each.parentElement; up; up = up.parentElement)
      if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(up).overflowX)) return false;
    return true;
  });
  const named = (each) => each.tagName.toLowerCase() + '.' + each.className + ' ' +
    each.textContent.trim().slice(0, 40);
  return ['scrolls to ' + page.scrollWidth, ...out.slice(0, 3).map(named)];
}"""


def unknown_to_the_search(root):
    """Public names that the search of the site does not list."""
    text = (root / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))
    listed = {entry[4] for entries in index["objects"].values() for entry in entries}
    # Modules and constants are found as words, which the index holds by their stems.
    listed |= set(index["terms"]) | set(index["titleterms"])
    stem = stemmer("english").stemWord
    names = {name for module in MODULES for name in import_module(module).__all__}
    return sorted(name for name in names if not {name, stem(name.lower())} & listed)


def faulty(root):
    """Pages that scroll sideways or whose scripts fail; None where there is no browser."""
    found = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    browser = next(filter(None, found), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser = None
    if browser is None:
        return None
    problems = []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=FLAGS)
        page = running.new_page(viewport={"width": WIDTH, "height": 844})
        # The theme complains if it has not stored a mode yet.
        page.add_init_script("localStorage.setItem('mode', 'auto')")
        said = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda line: said.append(line.text) if line.type == "error" else None)
        for path in sorted(root.rglob("*.html")):
            if "_static" in path.parts or "_downloads" in path.parts:
                continue
            said.clear()
            page.goto(path.as_uri(), wait_until="load")
            if found := [*said, *page.evaluate(STICKING_OUT)]:
                problems.append(f"{path.relative_to(root)}: {'; '.join(found)}")
        running.close()
    return problems


def main():
    """Report on the site in the given folder."""
    root = Path(sys.argv[1]).resolve()
    unknown = [f"the search does not know {name}" for name in unknown_to_the_search(root)]
    wide = faulty(root)
    if wide is None:
        print("   no Chromium: pages were not opened on a narrow screen")
    problems = unknown + (wide or [])
    print("\n".join(problems) if problems else "   search and narrow screens in order")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
