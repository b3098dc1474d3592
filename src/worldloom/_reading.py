"""The door of every decoder: whatever it raises about a file becomes one named error."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from worldloom._errors import WorldloomError


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], what: str, error: type[WorldloomError]) -> Iterator[None]:
    """Turn any exception of the block into an `error` that names the file.

    For decoders of others (Arrow, Zarr, VTK, netCDF-C), which raise whatever they like on a file
    that is damaged. Errors of ours pass through as they are.

    **Arguments:**

    - `path`: the file, as the user called it.
    - `what`: what it was read as: `"a Parquet file"`.
    - `error`: the class to raise. It is called with one message.

    ```python
    import json
    from worldloom import WorldloomError
    from worldloom._reading import reading

    try:
        with reading("odd.json", "JSON", WorldloomError):
            json.loads("{")
    except WorldloomError as error:
        assert str(error).startswith("odd.json: the file is damaged or not JSON, ")
    ```
    """
    damaged = f"{path}: the file is damaged or not {what}"
    try:
        yield
    except WorldloomError:
        raise
    except MemoryError as cause:
        raise error(f"{path}: needs more memory than there is to be read as {what}") from cause
    except RecursionError as cause:
        raise error(f"{damaged}: it is nested too deeply") from cause
    except Exception as cause:
        why = " ".join(str(cause).split())[:300] or type(cause).__name__
        if isinstance(cause, LookupError | TypeError | AttributeError):
            why = f"{type(cause).__name__}: {why}"
        raise error(f"{damaged}, and cannot be read: {why}") from cause
