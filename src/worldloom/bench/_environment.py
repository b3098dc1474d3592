"""An environment for a rival: made once, kept in the user's cache folder, found again."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from worldloom._errors import WorldloomError
from worldloom.compile import default_cache_folder


class InstallError(WorldloomError, RuntimeError):
    """The environment of a rival could not be made."""


def environment(
    requirements: Sequence[str], *, python: str | None = None, timeout: float | int = 1800
) -> Path:
    """The interpreter of an environment with these packages, which is made if it is not there.

    An environment never moves: it is built in a folder of its own, and a small file that names the
    folder is renamed into place when it is complete. Two processes that build the same one at the
    same time both succeed.

    **Arguments:**

    - `requirements`: what to install, as pip understands it. Nothing: an empty environment.
    - `python`: a version such as `"3.12"` or the path of an interpreter; this one by default.
    - `timeout`: seconds for all of it.
    """
    key = json.dumps([sorted(requirements), python or sys.executable, sys.version_info[:2]])
    home = _cache_folder() / "rivals" / hashlib.sha256(key.encode()).hexdigest()[:16]
    pointer = home / "ready"
    if pointer.exists():
        interpreter = _interpreter(home / pointer.read_text(encoding="utf-8"))
        if interpreter.exists():
            return interpreter
    home.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="env-", dir=home))
    try:
        _build(folder, requirements, python, timeout)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    partial = home / f".ready-{folder.name}"
    partial.write_text(folder.name, encoding="utf-8")
    os.replace(partial, pointer)
    return _interpreter(folder)


def _build(
    folder: Path, requirements: Sequence[str], python: str | None, timeout: float | int
) -> None:
    if uv := _find_uv():
        make = [
            uv,
            "venv",
            "--no-project",
            "--allow-existing",
            "--python",
            python or sys.executable,
        ]
        _call([*make, str(folder)], requirements, timeout)
        install = [uv, "pip", "install", "--python", str(_interpreter(folder))]
    else:
        bare = [] if requirements else ["--without-pip"]
        _call([_find_python(python), "-m", "venv", *bare, str(folder)], requirements, timeout)
        install = [str(_interpreter(folder)), "-m", "pip", "install", "--disable-pip-version-check"]
    if requirements:
        _call([*install, *requirements], requirements, timeout)


def _call(command: list[str], requirements: Sequence[str], timeout: float | int) -> None:
    wanted = " ".join(requirements) or "nothing"
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=clean_environ(),
        )
    except subprocess.TimeoutExpired as error:
        raise InstallError(
            f"making an environment with {wanted} took more than {timeout:g} s; "
            "give it more with timeout=..., or install it by hand and point python= at it"
        ) from error
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise InstallError(
            f"cannot make an environment with {wanted}: {Path(command[0]).name} ended with "
            f"{done.returncode}. Is this machine offline, or does a requirement not exist for this "
            f"Python? It said:\n{tail}"
        )


def clean_environ() -> dict[str, str]:
    """The environment variables without those that would lead a rival to our packages."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")
    return {name: value for name, value in os.environ.items() if name not in ours}


def _interpreter(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _find_uv() -> str | None:
    beside = Path(sys.executable).with_name("uv.exe" if sys.platform == "win32" else "uv")
    return str(beside) if beside.exists() else shutil.which("uv")


def _find_python(wanted: str | None) -> str:
    if wanted is None:
        return sys.executable
    found = shutil.which(wanted) or shutil.which(f"python{wanted}")
    if found is None:
        raise InstallError(
            f"python={wanted!r} is neither an interpreter nor a version found on PATH; "
            "install it, or install uv, which can fetch it"
        )
    return found


def _cache_folder() -> Path:
    given = os.environ.get("WORLDLOOM_CACHE_DIR")
    return Path(given) if given and given != "off" else default_cache_folder().parent
