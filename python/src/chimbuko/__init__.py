"""Runs of Chimbuko as tables.

    import chimbuko

    run = chimbuko.open("run")          # a run directory or postgres://user@server/database
    run.findings()                      # what cost time, the costliest first
    run.anomalies(where="rank = 3")     # a table: to_arrow(), to_pandas() or to_polars()
    run.event("3:19:855")               # one execution, with a timeline of the calls around it

All answers come from the program chimbuko, so they equal those of the command line.
"""

from importlib import metadata

from chimbuko._event import Call, Event, Message
from chimbuko._program import ChimbukoError, ChimbukoWarning, program
from chimbuko._run import Run, open, runs  # noqa: A004 (chimbuko.open, as with gzip.open)
from chimbuko._table import Table

__all__ = ["Call", "ChimbukoError", "ChimbukoWarning", "Event", "Message", "Run", "Table", "open", "program", "runs"]

try:
    __version__ = metadata.version("chimbuko")
except metadata.PackageNotFoundError:  # a source tree
    __version__ = "0.0.0.dev0"
