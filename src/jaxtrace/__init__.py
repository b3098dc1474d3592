"""Particles carried by measured flow fields."""

from __future__ import annotations

from jaxtrace._config import configure as configure
from jaxtrace._status import Status as Status
from jaxtrace.fields import AnalyticField as AnalyticField
from jaxtrace.fields import StructuredField as StructuredField
from jaxtrace.fields import TetField as TetField
from jaxtrace.fields import TimeSeriesField as TimeSeriesField
