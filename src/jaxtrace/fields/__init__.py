"""Where the flow is known: on a grid, on a mesh, at scattered points, by a formula."""

from __future__ import annotations

from jaxtrace._errors import FieldError as FieldError
from jaxtrace.fields._analytic import AnalyticField as AnalyticField
from jaxtrace.fields._compose import MaskedField as MaskedField
from jaxtrace.fields._compose import ScaledField as ScaledField
from jaxtrace.fields._compose import SumField as SumField
from jaxtrace.fields._field import Field as Field
from jaxtrace.fields._field import Sample as Sample
from jaxtrace.fields._frame import Frame as Frame
from jaxtrace.fields._scattered import TimeSeriesField as TimeSeriesField
from jaxtrace.fields._stream import Stream as Stream
from jaxtrace.fields._structured import StructuredField as StructuredField
from jaxtrace.fields._tet import TetField as TetField

__all__ = [
    "AnalyticField",
    "Field",
    "FieldError",
    "Frame",
    "MaskedField",
    "Sample",
    "ScaledField",
    "Stream",
    "StructuredField",
    "SumField",
    "TetField",
    "TimeSeriesField",
]
