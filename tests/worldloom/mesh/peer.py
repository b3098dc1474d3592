"""Run by the tests as two processes, of which number 1 fails in the middle.

`python peer.py kill|term|raise|abort [ADDRESS PROCESS]`
"""

from __future__ import annotations

import os
import signal
import sys

import jax
import jax.numpy as jnp

from worldloom import mesh


def main(way: str, address: str | None = None, process: str | None = None) -> None:
    if address is None or process is None:
        mesh.start(timeout=60)
    else:
        mesh.start(address, processes=2, process=int(process), timeout=60)
    devices = mesh.worlds_mesh()
    total = jax.jit(lambda x: x / jnp.sum(x))
    x = mesh.shard(jnp.ones(4), devices)
    for step in range(10**9):
        x = total(x).block_until_ready()
        if step == 5 and jax.process_index() == 1:
            print("failing", flush=True)
            if way == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif way == "term":
                os.kill(os.getpid(), signal.SIGTERM)
            elif way == "abort":
                mesh.abort(9)
            else:
                raise RuntimeError("this process has a bug")


if __name__ == "__main__":
    main(*sys.argv[1:])
