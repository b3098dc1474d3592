"""How the tests start processes that belong together."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import jax
import pytest
from jax.sharding import Mesh

from worldloom import mesh

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-m", "worldloom.cli"]


def launch(*words: str, processes: int = 2) -> int:
    """Run a program of this folder, or `worldloom WORDS`, as processes that work together."""
    program = [sys.executable, str(HERE / words[0])] if words[0].endswith(".py") else COMMAND
    path = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(path))
        rest = words[1:] if words[0].endswith(".py") else words
        return mesh.launch([*program, *rest], processes=processes, timeout=600)


def one_device() -> Mesh:
    """A row of one device, whatever this process has."""
    return mesh.worlds_mesh(jax.devices()[:1])
