"""Options as fields of dataclasses, which several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

# Where a field keeps its description for typer.
_DESCRIBED = "typer"


def option(panel: str | None, help: str, *names: str, default: Any = None, **limits: Any) -> Any:
    """Describe an option as a field of a dataclass; `default=MISSING` makes it required."""
    described = typer.Option(
        *names,
        help=help,
        rich_help_panel=panel,
        show_default=default is not None and default is not MISSING,
        **limits,
    )
    return field(default=default, metadata={_DESCRIBED: described})


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Replace every dataclass among the parameters of a command by its fields.

    typer builds options from the signature of a function. The returned function has one
    parameter per field; it builds the dataclasses and calls the command.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type[Any], tuple[str, ...]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if isinstance(kind, type) and is_dataclass(kind):
            own = inspect.signature(kind).parameters
            types = get_type_hints(kind, include_extras=True)
            groups[name] = (kind, tuple(own))
            for part in fields(kind):
                hint = types[part.name]
                if _DESCRIBED in part.metadata:
                    hint = Annotated[hint, part.metadata[_DESCRIBED]]
                parameters.append(_keyword(own[part.name], hint))
        else:
            parameters.append(_keyword(parameter, kind))
    signature = inspect.Signature(parameters)

    def expanded(**given: Any) -> None:
        bound = signature.bind(**given)
        bound.apply_defaults()
        values = dict(bound.arguments)
        for name, (kind, parts) in groups.items():
            values[name] = kind(**{part: values.pop(part) for part in parts})
        command(**values)

    expanded.__doc__ = command.__doc__
    expanded.__name__ = command.__name__
    expanded.__annotations__ = {part.name: part.annotation for part in parameters}
    expanded.__signature__ = signature  # type: ignore[attr-defined]
    return expanded


def _keyword(parameter: inspect.Parameter, annotation: Any) -> inspect.Parameter:
    # By keyword, so that a required option may follow one with a default.
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
