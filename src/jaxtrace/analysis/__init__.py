"""What tracks tell: stretching, and how long particles stay."""

from __future__ import annotations

from jaxtrace.analysis._flow_map import FlowMap as FlowMap
from jaxtrace.analysis._flow_map import flow_map as flow_map
from jaxtrace.analysis._flow_map import flow_map_jacobian as flow_map_jacobian
from jaxtrace.analysis._flow_map import ftle as ftle
from jaxtrace.analysis._flow_map import with_field as with_field
from jaxtrace.analysis._residence import residence_time as residence_time

__all__ = [
    "FlowMap",
    "flow_map",
    "flow_map_jacobian",
    "ftle",
    "residence_time",
    "with_field",
]
