"""Grids of ten colours as bits: the arithmetic under the ARC environment.

A *bit mask* is `uint32[rows, *lanes]`: bit `c` of word `r` is the cell in row `r` and column `c`.
A *bit grid* is `uint32[4, rows, *lanes]`: four masks, the binary digits of each cell's colour.
`rows` is the longer side of the canvas, at most 32, so that a grid can be transposed in place.

`lanes` are the worlds of a batch. They come last, so that one instruction works on the same row
of many worlds. Every function here takes any lanes, none too, and per-world numbers of shape
`[*lanes]`. At the border, where a batch comes first, `to_lanes` and `from_lanes` convert.

A cell outside the canvas is always 0. Rectangles are half open, as Python's ranges are.
"""

from __future__ import annotations

from jaxarc.bitgrid._colours import equal as equal
from jaxarc.bitgrid._colours import is_colour as is_colour
from jaxarc.bitgrid._colours import paint as paint
from jaxarc.bitgrid._colours import recolour as recolour
from jaxarc.bitgrid._colours import same_colour as same_colour
from jaxarc.bitgrid._colours import select as select
from jaxarc.bitgrid._compact import on_active_lanes as on_active_lanes
from jaxarc.bitgrid._flood import flood as flood
from jaxarc.bitgrid._geometry import map_columns as map_columns
from jaxarc.bitgrid._geometry import map_rows as map_rows
from jaxarc.bitgrid._geometry import reverse_bits as reverse_bits
from jaxarc.bitgrid._geometry import shift_columns as shift_columns
from jaxarc.bitgrid._geometry import transpose as transpose
from jaxarc.bitgrid._layout import PLANES as PLANES
from jaxarc.bitgrid._layout import WORD as WORD
from jaxarc.bitgrid._layout import from_lanes as from_lanes
from jaxarc.bitgrid._layout import lanes_for as lanes_for
from jaxarc.bitgrid._layout import pack as pack
from jaxarc.bitgrid._layout import pack_host as pack_host
from jaxarc.bitgrid._layout import pack_mask as pack_mask
from jaxarc.bitgrid._layout import to_lanes as to_lanes
from jaxarc.bitgrid._layout import unpack as unpack
from jaxarc.bitgrid._layout import unpack_mask as unpack_mask
from jaxarc.bitgrid._masks import Box as Box
from jaxarc.bitgrid._masks import bounding_box as bounding_box
from jaxarc.bitgrid._masks import cell as cell
from jaxarc.bitgrid._masks import count as count
from jaxarc.bitgrid._masks import first_cell as first_cell
from jaxarc.bitgrid._masks import rectangle as rectangle

__all__ = [
    "PLANES",
    "WORD",
    "Box",
    "bounding_box",
    "cell",
    "count",
    "equal",
    "first_cell",
    "flood",
    "from_lanes",
    "is_colour",
    "lanes_for",
    "map_columns",
    "map_rows",
    "on_active_lanes",
    "pack",
    "pack_host",
    "pack_mask",
    "paint",
    "recolour",
    "rectangle",
    "reverse_bits",
    "same_colour",
    "select",
    "shift_columns",
    "to_lanes",
    "transpose",
    "unpack",
    "unpack_mask",
]
