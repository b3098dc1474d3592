"""Run by the tests as two processes, of which number 1 gives up while the other waits for it.

`python quarrel.py ours|bug|exit`
"""

from __future__ import annotations

import sys

import jax
import numpy as np

from worldloom import mesh
from worldloom._errors import WorldloomError

with mesh.joined(timeout=60) as first:
    both = mesh.join(np.array([jax.process_index() + 0.1]))
    assert both.dtype == np.float64
    print("joined", both.tolist(), first, flush=True)
    if not first:
        if sys.argv[1] == "ours":
            raise WorldloomError("--worlds is too large for process 1")
        if sys.argv[1] == "exit":
            sys.exit(7)
        raise ZeroDivisionError("a bug in process 1")
    mesh.join(np.zeros(1))
