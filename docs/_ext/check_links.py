"""Follow every link inside the built site: pages, places on them, pictures, scripts, styles."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Where a page points to, and what on it can be pointed to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.fetched = [], {""}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Collect targets and anchors."""
        given = dict(attrs)
        if given.get("id"):
            self.anchors.add(given["id"])
        if tag == "a" and given.get("name"):
            self.anchors.add(given["name"])
        for key in ("href", "src"):
            if given.get(key) and given.get("rel") != "canonical":
                self.links.append(given[key])
                if tag != "a" and urlsplit(given[key]).netloc:
                    self.fetched.append(given[key])


def broken(folder):
    """Links that lead nowhere and things that a page would fetch from elsewhere."""
    root = Path(folder).resolve()
    # What the theme ships beside its styles are templates, not pages.
    found = [path for path in root.rglob("*.html") if "_static" not in path.parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in found}
    problems = []
    for path, page in pages.items():
        where = path.relative_to(root)
        problems += [f"{where}: fetches {url}" for url in page.fetched]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_relative_to(root):  # another version of the site, beside this one
                continue
            if not target.exists():
                problems.append(f"{where}: no {link}")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                problems.append(f"{where}: no place {link}")
    return len(pages), sorted(set(problems))


def main():
    """Report on the site in the given folder."""
    count, problems = broken(sys.argv[1])
    print("\n".join(problems) if problems else f"   {count} pages, no broken link")
    return bool(problems) or not count


if __name__ == "__main__":
    sys.exit(main())
