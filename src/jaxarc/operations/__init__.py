"""The operations of the ARC environment: a table, and one function that follows it."""

from __future__ import annotations

from jaxarc.operations._apply import Board as Board
from jaxarc.operations._apply import apply_operation as apply_operation
from jaxarc.operations._table import NUM_EDITS as NUM_EDITS
from jaxarc.operations._table import NUM_OPERATIONS as NUM_OPERATIONS
from jaxarc.operations._table import OPERATIONS as OPERATIONS
from jaxarc.operations._table import Operation as Operation
from jaxarc.operations._table import operation_id as operation_id

__all__ = [
    "NUM_EDITS",
    "NUM_OPERATIONS",
    "OPERATIONS",
    "Board",
    "Operation",
    "apply_operation",
    "operation_id",
]
