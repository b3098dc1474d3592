"""The same as `trace_workflow_fast.py`, under the name that the guide to JAXTrace gives it."""

from __future__ import annotations

from trace_workflow_fast import main

if __name__ == "__main__":
    main()
