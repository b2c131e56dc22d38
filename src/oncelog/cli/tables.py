"""Rows for people: a table under headings, or names with their values."""

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as they need to be; numbers stand to the right."""
    lines = [[heading.upper() for heading in headings], *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    to_the_right = [
        len(lines) > 1 and all(line[column].lstrip("-").isdigit() for line in lines[1:])
        for column in range(len(headings))
    ]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, to_the_right, strict=True)
        ).rstrip()
        for line in lines
    )


def named_values(pairs: Iterable[tuple[str, object]], indent: str = "") -> str:
    """One line each; a value of several lines goes on under its first."""
    listed = [*pairs]
    width = max(len(name) for name, _ in listed)
    under = "\n" + indent + " " * (width + 2)
    return "\n".join(f"{indent}{name.ljust(width)}  {_text(value).replace(chr(10), under)}" for name, value in listed)


def _text(value: object) -> str:
    return "-" if value is None else str(value)
