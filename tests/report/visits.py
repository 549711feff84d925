"""What the browser tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ARTEFACTS = Path(__file__).parent / "artefacts"


class Visit:
    """A page, and everything it complained about or asked for until it was left."""

    def __init__(self, page: Any, file: Path) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._listeners = {
            "console": lambda message: self.complaints.append(f"{message.type} {message.text}"),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "dialog": lambda dialog: self.complaints.append(f"dialog {dialog.message}"),
            "request": lambda request: self.requests.append(request.url),
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]")

    def leave(self) -> None:
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

    def heading(self) -> str:
        return str(self.page.text_content("#panel-heading"))

    def names(self) -> list[str]:
        return list(self.page.locator("#nodes tbody tr td:first-child button").all_text_contents())
