"""`python -m worldloom.cli`, for where the `worldloom` command is not on the path."""

from __future__ import annotations

import sys

from worldloom.cli._main import main

sys.exit(main())
