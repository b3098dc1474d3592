"""One VTK PolyData file, written piece by piece."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

_NAMES = {
    "i1": "Int8",
    "i4": "Int32",
    "i8": "Int64",
    "f4": "Float32",
    "f8": "Float64",
}


@dataclasses.dataclass(frozen=True)
class Array:
    """An array of a file: its size is known before its values are."""

    name: str
    dtype: np.dtype
    components: int
    rows: int
    pieces: Iterable[np.ndarray]

    @property
    def nbytes(self) -> int:
        """Its size in the file."""
        return self.rows * self.components * self.dtype.itemsize


@dataclasses.dataclass(frozen=True)
class PolyData:
    """Points, and cells of one kind over them: `"Verts"` or `"Lines"`."""

    points: Array
    kind: str
    connectivity: Array
    offsets: Array
    point_data: tuple[Array, ...]
    cell_data: tuple[Array, ...] = ()
    field_data: tuple[Array, ...] = ()

    def write(self, path: Path) -> None:
        """Write the file; each array goes through memory in the pieces that it comes in."""
        arrays = list(self._arrays())
        starts = dict(zip(map(id, arrays), _starts(arrays), strict=True))

        def tags(some: Iterable[Array]) -> str:
            return "".join(
                f'<DataArray type="{_NAMES[a.dtype.str[1:]]}" Name={quoteattr(a.name)} '
                f'NumberOfComponents="{a.components}" NumberOfTuples="{a.rows}" '
                f'format="appended" offset="{starts[id(a)]}"/>'
                for a in some
            )

        counts = " ".join(
            f'NumberOf{kind}="{self.offsets.rows if kind == self.kind else 0}"'
            for kind in ("Verts", "Lines", "Strips", "Polys")
        )
        header = (
            '<?xml version="1.0"?>\n'
            '<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" '
            'header_type="UInt64">'
            f"<PolyData><FieldData>{tags(self.field_data)}</FieldData>"
            f'<Piece NumberOfPoints="{self.points.rows}" {counts}>'
            f"<PointData>{tags(self.point_data)}</PointData>"
            f"<CellData>{tags(self.cell_data)}</CellData>"
            f"<Points>{tags([self.points])}</Points>"
            f"<{self.kind}>{tags([self.connectivity, self.offsets])}</{self.kind}>"
            "</Piece></PolyData>\n"
            '<AppendedData encoding="raw">_'
        )
        with path.open("wb") as file:
            file.write(header.encode())
            for array in arrays:
                file.write(np.uint64(array.nbytes).astype("<u8").tobytes())
                written = 0
                for piece in array.pieces:
                    data = np.ascontiguousarray(piece, array.dtype.newbyteorder("<"))
                    written += data.nbytes
                    file.write(data.tobytes())
                assert written == array.nbytes, f"{array.name}: {written} of {array.nbytes} bytes"
            file.write(b"</AppendedData></VTKFile>\n")

    def _arrays(self) -> Iterator[Array]:
        yield from (*self.field_data, *self.point_data, *self.cell_data)
        yield from (self.points, self.connectivity, self.offsets)


def whole(name: str, values: np.ndarray) -> Array:
    """An array that is in memory."""
    components = 1 if values.ndim == 1 else values.shape[1]
    return Array(name, values.dtype, components, len(values), [values])


def _starts(arrays: list[Array]) -> Iterator[int]:
    at = 0
    for array in arrays:
        yield at
        at += 8 + array.nbytes
