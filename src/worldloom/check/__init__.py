"""Errors inside compiled code: `require` says what must hold, a mode says what happens if not.

| mode | a check that fails |
|---|---|
| `raise` (default) | stops the program with a `CheckError` |
| `nan` | turns the failing worlds to NaN, logs it once, goes on |
| `breakpoint` | opens the debugger with the failing values, then goes on as `nan` |
| `off` | does nothing |

The mode is read on the host when a check fails, so that changing it never recompiles.
"""

from __future__ import annotations

from worldloom.check._errors import CheckError as CheckError
from worldloom.check._errors import CheckUsageError as CheckUsageError
from worldloom.check._errors import failure_in as failure_in
from worldloom.check._errors import reraise as reraise
from worldloom.check._mode import mode as mode
from worldloom.check._mode import set_mode as set_mode
from worldloom.check._mode import using as using
from worldloom.check._require import require as require

__all__ = [
    "CheckError",
    "CheckUsageError",
    "failure_in",
    "mode",
    "require",
    "reraise",
    "set_mode",
    "using",
]
