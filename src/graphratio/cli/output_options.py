"""The options of output: where results go, how they are printed, and words on the page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from graphratio.cli.expand import option

# The panel of the help that lists them.
OUTPUT = "Output"
FOLDER_HELP = "Folder for the results; it must not exist yet, unless --overwrite is given."

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object instead of text.", rich_help_panel=OUTPUT),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Print nothing but errors.", rich_help_panel=OUTPUT)
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace earlier output.", rich_help_panel=OUTPUT)
]


@dataclass(frozen=True)
class PageOptions:
    """Title and words of the page."""

    title: str | None = option(OUTPUT, "Title of the page. Default: the name of the table.")
    unit: str | None = option(
        OUTPUT, "Units of features, separated by commas, e.g. speed=mph,delay=min."
    )
    noun: str | None = option(OUTPUT, "Words for one node and for several, e.g. airport,airports.")

    def words(self) -> dict[str, Any]:
        """Options of the page."""
        page: dict[str, Any] = {}
        if self.title is not None:
            page["title"] = self.title
        if self.noun is not None:
            parts = [part.strip() for part in self.noun.split(",")]
            if len(parts) != 2 or not all(parts):
                raise typer.BadParameter(
                    f"--noun {self.noun} is not two words with a comma, e.g. airport,airports"
                )
            page["noun"] = (parts[0], parts[1])
        if self.unit is not None:
            pairs = [text.partition("=") for text in self.unit.split(",")]
            if not all(feature.strip() and unit.strip() for feature, _, unit in pairs):
                raise typer.BadParameter(f"--unit {self.unit} is not FEATURE=UNIT, e.g. speed=mph")
            page["units"] = {feature.strip(): unit.strip() for feature, _, unit in pairs}
        return page


@dataclass(frozen=True)
class OutputOptions:
    """Where results go."""

    output: Path = option(OUTPUT, FOLDER_HELP, default=Path("graphratio-report"))
    overwrite: Overwrite = False
    json: Json = False
    quiet: Quiet = False
