"""Optional dependencies: imported where they are used, missing with a helpful message."""

from __future__ import annotations

import importlib
from types import ModuleType

from worldloom._errors import WorldloomError


class MissingExtraError(WorldloomError, ImportError):
    """An optional dependency is needed and not installed."""


def import_extra(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or say which extra of Worldloom brings it.

    **Arguments:**

    - `module`: dotted name of the module, as in `import module`.
    - `extra`: the extra of the `worldloom` distribution that installs it.
    - `purpose`: what it is needed for, as a phrase: `"writing records to Zarr"`.

    ```python
    from worldloom._extras import import_extra

    pyplot = import_extra("matplotlib.pyplot", extra="plot", purpose="drawing a plot")
    ```
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f"Install it with: pip install 'worldloom[{extra}]'"
        ) from error
