"""A program that opens files with readers in C, so that a crash or a hang of theirs ends only it.

Started by `_look`, in a process of its own: a line `[kind, path, seconds]` in, a line with an error
or with what was found out.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import sys
from typing import Any

_ROOM = 4 * 2**30
_ROOM_PER_BYTE = 16


def main() -> None:
    """Answer until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)  # what the readers print is no answer
    for line in sys.stdin:
        kind, path, seconds = json.loads(line)
        try:
            _limit(os.path.getsize(path), seconds)
            answer: dict[str, Any] = {"found": _LOOKS[kind](path)}
        except MemoryError:
            answer = {"error": "it asks for more memory than a file of its size can need"}
        except Exception as error:
            answer = {"error": str(error) or type(error).__name__}
        print(json.dumps(answer), file=answers, flush=True)


def _limit(size: int, seconds: float) -> None:
    """A file must not take the machine's memory, nor its processor for ever.

    Seconds of the processor are counted: a slow disk or a busy machine says nothing about a file.
    """
    memory = _ROOM + _ROOM_PER_BYTE * size
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for limit, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, math.ceil(used + seconds)),
    ):
        with contextlib.suppress(OSError, ValueError):  # a stricter limit is in force
            resource.setrlimit(limit, (value, resource.getrlimit(limit)[1]))


def _netcdf(path: str) -> None:
    import netCDF4

    with netCDF4.Dataset(path) as file:
        for variable in file.variables.values():
            variable.ncattrs()


def _vtk(path: str) -> float | None:
    """The time in a file of VTK's old format, which tells it with its data only."""
    from vtkmodules.vtkCommonCore import vtkLogger, vtkObject
    from vtkmodules.vtkIOLegacy import vtkGenericDataObjectReader

    vtkObject.GlobalWarningDisplayOff()
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)
    reader = vtkGenericDataObjectReader()
    reader.SetFileName(path)
    reader.Update()
    found = reader.GetOutputDataObject(0)
    return None if found is None else time_of(found)


def time_of(data: Any) -> float | None:
    """The time that a data set of VTK carries."""
    fields = data.GetFieldData()
    for i in range(fields.GetNumberOfArrays()):
        array = fields.GetArray(i)
        if array is None or array.GetNumberOfValues() != 1:  # text, or many numbers
            continue
        if (array.GetName() or "").lower() in ("timevalue", "time"):
            return float(array.GetComponent(0, 0))
    return None


_LOOKS = {"netcdf": _netcdf, "vtk": _vtk}

if __name__ == "__main__":
    main()
