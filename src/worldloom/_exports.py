"""Names of a package that are fetched when they are first used.

`worldloom trace --help` must not wait for JAX, and importing a package runs its `__init__`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any


def lazy_exports(
    package: str, names: Sequence[str], *, found_in: Sequence[str], rooms: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    **Arguments:**

    - `names`: its public names.
    - `found_in`: the modules of the package that have them.
    - `rooms`: modules of the package that can be used as its attributes.
    """

    def fetch(name: str) -> Any:
        if name in rooms:
            return importlib.import_module(f"{package}.{name}")
        for place in found_in if name in names else ():
            module = importlib.import_module(f"{package}.{place}")
            if hasattr(module, name):
                value = getattr(module, name)
                setattr(sys.modules[package], name, value)
                return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listing() -> list[str]:
        return sorted({*names, *rooms})

    return fetch, listing
