"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1
) -> None:
    """Print `rows`; the first `left` columns are text, the others numbers."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i < left else "right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def megabytes(count: float | int) -> str:
    """Bytes as MiB, with sign if negative."""
    return f"{count / 2**20:.1f}"
