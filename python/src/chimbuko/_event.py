"""Executions and the calls around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from chimbuko import _display


@dataclass(frozen=True)
class Call:
    """A call in the context of an execution. Times are in microseconds, relative to the entry of the execution."""

    event_id: str
    function: str
    entry_us: float
    exit_us: float | None
    """End of the call; None if it had not ended when the trace did."""
    depth: int
    """Number of calls around it, 0 for the outermost."""
    is_anomaly: bool


@dataclass(frozen=True)
class Message:
    """A message that a call around an execution sent or received."""

    kind: str
    """SEND or RECV."""
    at_us: float
    source: int
    target: int
    bytes: int | None
    """Size; None if unknown."""
    tag: int


class Event:
    """A stored execution with its context, as Run.event returns it.

    Notebooks show a timeline of the calls around it. str(event) is the explanation that chimbuko event prints.
    """

    def __init__(self, record: dict[str, Any], explain: Callable[[], str]) -> None:
        self.record = record
        """The complete document of the record; times are in ticks of tick_ns nanoseconds, by default 1000."""
        self._us = (record.get("tick_ns") or 1000) / 1e3
        self._explain = explain

    @property
    def id(self) -> str:
        """Id of the execution."""
        return str(self.record["event_id"])

    @property
    def function(self) -> str:
        """Name of its function."""
        return str(self.record["func"])

    @property
    def program(self) -> int:
        """Program of a workflow, from 0."""
        return int(self.record["pid"])

    @property
    def rank(self) -> int:
        """Rank on which it ran."""
        return int(self.record["rid"])

    @property
    def thread(self) -> int:
        """Thread of the rank; GPU streams have their own numbers."""
        return int(self.record["tid"])

    @property
    def host(self) -> str:
        """Host of the rank; empty if unknown."""
        host = str(self.record["hostname"])
        return "" if host == "Unknown" else host

    @property
    def kind(self) -> str | None:
        """Kind of the anomaly, such as "slow"; None for a typical execution."""
        return self.record.get("kind") or None

    @property
    def why(self) -> str | None:
        """Why it is an anomaly, in words; None for a typical execution."""
        return self.record.get("why") or None

    @property
    def exclusive_us(self) -> float:
        """Time in the function itself, in microseconds."""
        return float(self.record["runtime_exclusive"]) * self._us

    @property
    def inclusive_us(self) -> float:
        """Time including the calls that it made, in microseconds."""
        return float(self.record["runtime_total"]) * self._us

    @property
    def lost_us(self) -> float:
        """How much longer than typical of its function it took, in microseconds."""
        return float(self.record.get("lost_time") or 0) * self._us

    @cached_property
    def stack(self) -> list[Call]:
        """The calls around the execution, from the outermost to itself."""
        frames = self.record["call_stack"][::-1]
        return [self._call(f, depth) for depth, f in enumerate(frames)]

    @cached_property
    def calls(self) -> list[Call]:
        """The calls before, in and after the execution on its thread, by entry, including itself."""
        stack = self.stack
        known = {c.event_id: c for c in stack}
        calls = []
        for frame in sorted(self.record["event_window"]["exec_window"], key=lambda f: f["entry"]):
            call = known.get(frame["event_id"])
            if call is None:
                call = self._call(frame, self._depth(frame, known))
                known[call.event_id] = call
            calls.append(call)
        return calls

    @property
    def messages(self) -> list[Message]:
        """The messages of these calls, by time."""
        return [
            Message(m["type"], self._since_entry(m["timestamp"]), m["src"], m["tar"], m["bytes"], m["tag"])
            for m in sorted(self.record["event_window"]["comm_window"], key=lambda m: m["timestamp"])
        ]

    def explanation(self) -> str:
        """Return what chimbuko event prints."""
        return self._explain()

    def __str__(self) -> str:
        return self.explanation()

    def __repr__(self) -> str:
        return f"<chimbuko.Event {self.id}: {self.function} on rank {self.rank}, {_display.duration(self.exclusive_us)}>"

    def _repr_html_(self) -> str:
        return _display.html_event(self)

    def timeline(self) -> str:
        """Return the timeline of the calls around the execution as SVG."""
        return _display.timeline(self)

    def _since_entry(self, ticks: int) -> float:
        return (ticks - int(self.record["entry"])) * self._us

    def _call(self, frame: dict[str, Any], depth: int) -> Call:
        end = self._since_entry(frame["exit"]) if frame["exit"] else None
        return Call(frame["event_id"], frame["func"], self._since_entry(frame["entry"]), end, depth, frame["is_anomaly"])

    def _depth(self, frame: dict[str, Any], known: dict[str, Call]) -> int:
        """Return the depth of a call: below its caller, or if the record does not contain that, below the calls
        that enclose it in time, and the missing caller."""
        if caller := known.get(frame["parent_event_id"]):
            return caller.depth + 1
        entry = self._since_entry(frame["entry"])
        enclosing = [c.depth for c in known.values() if c.entry_us <= entry and (c.exit_us is None or entry < c.exit_us)]
        return max(enclosing, default=-1) + (1 if frame["parent_event_id"] == "root" else 2)
