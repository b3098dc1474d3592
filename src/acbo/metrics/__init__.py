"""How good an answer is: edges found, graphs apart, probabilities honest, and how sure that is."""

from __future__ import annotations

from acbo.metrics._bootstrap import Interval as Interval
from acbo.metrics._bootstrap import bootstrap as bootstrap
from acbo.metrics._calibration import Reliability as Reliability
from acbo.metrics._calibration import expected_calibration_error as expected_calibration_error
from acbo.metrics._calibration import reliability as reliability
from acbo.metrics._graph import EdgeMetrics as EdgeMetrics
from acbo.metrics._graph import edge_auroc as edge_auroc
from acbo.metrics._graph import edge_mask as edge_mask
from acbo.metrics._graph import edge_metrics as edge_metrics
from acbo.metrics._graph import shd as shd
from acbo.metrics._ranking import auroc as auroc
from acbo.metrics._ranking import average_precision as average_precision
from acbo.metrics._ranking import f1 as f1

__all__ = [
    "EdgeMetrics",
    "Interval",
    "Reliability",
    "auroc",
    "average_precision",
    "bootstrap",
    "edge_auroc",
    "edge_mask",
    "edge_metrics",
    "expected_calibration_error",
    "f1",
    "reliability",
    "shd",
]
