"""Data of users, and published networks."""

from __future__ import annotations

from acbo.data._dataset import Dataset as Dataset
from acbo.data._networks import Network as Network
from acbo.data._networks import published_network as published_network
from acbo.data._networks import published_networks as published_networks
from acbo.data._read import read_data as read_data
from acbo.data._sachs import sachs_data as sachs_data

__all__ = [
    "Dataset",
    "Network",
    "published_network",
    "published_networks",
    "read_data",
    "sachs_data",
]
