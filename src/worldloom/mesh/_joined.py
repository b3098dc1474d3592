"""A part of a program that the processes of a run do together."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import jax

from worldloom._errors import WorldloomError
from worldloom._signals import exit_code
from worldloom.mesh._start import abort, end_with_message, start


@contextlib.contextmanager
def joined(*, timeout: int = 300) -> Iterator[bool]:
    """`start()`, for the length of a `with` block; gives whether this process is to speak.

    One process of a run, the first, prints figures and writes files. An exception that leaves the
    block ends this process at once, by `abort`, so that the others are not left waiting: an error
    of ours as one message, another with its traceback. Alone, a process speaks, and exceptions go
    their usual way.

    **Arguments:**

    - `timeout`: seconds to wait for the others.

    ```python
    import numpy as np
    from worldloom import mesh

    with mesh.joined() as first:
        total = mesh.join(np.arange(3)).sum()
        if first:
            print(total)
    ```
    """
    start(timeout=timeout)
    if not jax.distributed.is_initialized():
        yield True
        return
    try:
        yield jax.process_index() == 0
    except SystemExit as exit:
        abort(exit.code if isinstance(exit.code, int) else int(exit.code is not None))
    except KeyboardInterrupt as stop:
        _say(str(stop) or "interrupted")
        abort(exit_code(stop))
    except WorldloomError as error:
        _say(f"error: {error}")
        abort(1)
    except BaseException as error:
        end_with_message(type(error), error, error.__traceback__)


def _say(message: str) -> None:
    print(f"worldloom: {message}", file=sys.stderr, flush=True)
