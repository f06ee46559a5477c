"""Runs and their answers."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from chimbuko import _display, _program
from chimbuko._event import Event
from chimbuko._program import ChimbukoError
from chimbuko._table import Table

if TYPE_CHECKING:
    import pyarrow as pa

Param: TypeAlias = str | int | float | bool | None
"""A value of $1, $2 … in SQL."""

FindingKind: TypeAlias = Literal["outlier", "recurring", "change", "excess-work", "interference", "slow-peer", "wait"]

_FINDINGS = ("finding", "kind", "lost_us", "share", "calls", "expected_us", "actual_us", "ranks", "hosts", "from_s", "to_s", "summary")
_ANOMALIES = ("event_id", "at_s", "exclusive_us", "inclusive_us", "lost_us", "score", "kind", "rank", "thread", "host", "function")
_ANOMALY = """event_id, at_s, exclusive_us, inclusive_us, lost_us, severity, score, kind, status, io_step, program, "rank", thread, host,
    "function", why"""
_RANKS = ("ranks", "tid", "host", "role", "useful_us", "wait_us", "lost_us", "ratio", "pattern", "from_s", "to_s", "saved_us")
_ALL = 2**31 - 1  # rows


def open(run: str | os.PathLike[str], *, name: str | None = None, timeout: float | None = None) -> Run:  # noqa: A001
    """Open a run: a run directory, a provenance.duckdb file, or postgres://user@server/database.

    name chooses one of several runs of a store; the latest by default. timeout is the limit of each query in seconds;
    by default there is none. The run may still be running: each call reads its current data.
    """
    return Run(run, name=name, timeout=timeout)


def runs(store: str | os.PathLike[str]) -> Table:
    """Return the runs of a store, the latest last."""
    return Table(_program.table(["runs", "--", _place(store)]), "runs")


class Run:
    """A run, as open returns it."""

    def __init__(self, run: str | os.PathLike[str], *, name: str | None = None, timeout: float | None = None) -> None:
        self._place = _place(run)
        self._timeout = f"{timeout or 0:f}s"
        self._chosen: str | None = None
        self._tick_ns = 1000
        row = self._row("TRUE") if name is None else self._row("name = $1", name)
        self._number, self._name, self._tick_ns = int(row["run"]), str(row["name"]), int(row["tick_ns"])
        self._chosen = self._name  # so that a newer run of the store does not replace it

    @property
    def name(self) -> str:
        """Name of the run."""
        return self._name

    @property
    def number(self) -> int:
        """Number of the run in its store: the column run of all tables in SQL."""
        return self._number

    @property
    def tick_ns(self) -> int:
        """Nanoseconds of a tick, the unit of times in SQL: 1000 for traces of TAU, 1 for profiles of GPUs."""
        return self._tick_ns

    @property
    def state(self) -> str:
        """State of the run, such as "finished"; read now."""
        return str(self._row()["state"])

    @property
    def started(self) -> datetime.datetime:
        """Time at which the analysis started, in UTC."""
        started = self._row()["started"]
        assert isinstance(started, datetime.datetime)
        return started.replace(tzinfo=datetime.timezone.utc)

    @property
    def info(self) -> dict[str, Any]:
        """Settings and totals of the run, as in run.json of its directory; read now."""
        info: dict[str, Any] = json.loads(self._row()["info"])
        return info

    def findings(
        self,
        *,
        kind: FindingKind | Iterable[FindingKind] = (),
        function: str | None = None,
        notes: bool = False,
        all: bool = False,  # noqa: A002 (as the flag)
        withdrawn: bool = False,
        limit: int | None = None,
    ) -> Table:
        """Return the findings, the costliest first: groups of anomalies, lasting changes, slow ranks.

        function is a pattern with * and ?. notes includes notes about normal behavior, all also minor findings and
        waits with a known cause. withdrawn returns only findings that the review at the end of the run withdrew.
        """
        arguments = ["--limit", str(_ALL)]
        if kinds := [kind] if isinstance(kind, str) else list(kind):
            arguments += ["--kind", ",".join(kinds)]
        if function is not None:
            arguments += ["--func", function]
        if all:
            arguments.append("--all")
        if withdrawn:
            arguments.append("--withdrawn")
        data = self._table("findings", arguments)
        if not (notes or all or withdrawn or kinds):
            data = data.filter(_not_equal(data.column("severity"), "info"))
        return Table(_first(data, limit), f"findings of {self.name}", _FINDINGS)

    def anomalies(
        self,
        where: str | None = None,
        *params: Param,
        order_by: str = "severity DESC",
        withdrawn: bool = False,
        normal: bool = False,
        limit: int | None = None,
    ) -> Table:
        """Return the anomalies, those with the longest own time first.

        where is a condition in SQL on the columns of the result, with $1, $2 … for params:

            run.anomalies("rank BETWEEN 0 AND 3 AND function LIKE $1", "MPI%")

        withdrawn includes anomalies withdrawn at the end of the run. normal returns the typical executions that
        are stored for comparison instead. Columns are those of chimbuko anomalies; times are in microseconds.
        """
        status = "" if withdrawn or normal else "AND status IS DISTINCT FROM 'withdrawn'"
        micros = self._micros
        sql = f"""SELECT event_id, (entry - {self._begin()}) / {1e9 / self.tick_ns!r}::DOUBLE PRECISION AS at_s,
       {micros("runtime_exclusive")} AS exclusive_us, {micros("runtime_total")} AS inclusive_us,
       {micros("lost_time")} AS lost_us, {micros("outlier_severity")} AS severity,
       outlier_score AS score, kind, status, io_step, pid AS program, rid AS "rank", tid AS thread,
       CASE WHEN hostname = 'Unknown' THEN '' ELSE hostname END AS host, func AS "function", why, ev_step, ev_row
FROM {"normalexecs" if normal else "anomalies"}
WHERE run = {self.number} {status}"""
        order = f'{order_by}, program, "rank", ev_step, ev_row, event_id'
        data = self._select(_ANOMALY, sql, where, params, order, limit)
        return Table(data, f"{'typical executions' if normal else 'anomalies'} of {self.name}", _ANOMALIES)

    def functions(self, where: str | None = None, *params: Param, order_by: str = "exclusive_us DESC", limit: int | None = None) -> Table:
        """Return all functions, those with the longest own time first: number and times of all their calls over all
        ranks, and their anomalies with the time that these lost, waits included. Times are in microseconds.

        where is a condition in SQL on the columns of the result, with $1, $2 … for params.
        """
        micros = self._micros
        sql = f"""SELECT s.app AS program, s.fname AS "function", s.exclusive_count::BIGINT AS calls,
       {micros("s.exclusive_accumulate")} AS exclusive_us, {micros("s.exclusive_mean")} AS mean_us,
       {micros("s.exclusive_stddev")} AS stddev_us, {micros("s.exclusive_minimum")} AS min_us,
       {micros("s.exclusive_maximum")} AS max_us, {micros("s.inclusive_accumulate")} AS inclusive_us,
       coalesce(a.anomalies, 0)::BIGINT AS anomalies, {micros("coalesce(a.lost, 0)::BIGINT")} AS lost_us
FROM func_stats s
LEFT JOIN (
    SELECT pid, fn, sum(anomalies) AS anomalies, sum(lost_us) AS lost
    FROM live_rollups
    WHERE run = {self.number}
    GROUP BY pid, fn
) a ON a.pid = s.app AND a.fn = s.fn
WHERE s.run = {self.number}"""
        data = self._select("*", sql, where, params, f'{order_by}, program, "function"', limit)
        return Table(data, f"functions of {self.name}")

    def ranks(
        self, *, by: Literal["rank", "host", "thread", "device", "role"] = "rank", rank: str | int | None = None, limit: int | None = None
    ) -> Table:
        """Return ranks compared with peers that do equal work, the costliest first; by chooses other rows than ranks.

        rank selects some, as in "0,4-7".
        """
        arguments = ["--by", by, "--limit", str(_ALL)]
        if rank is not None:
            arguments += ["--rank", str(rank)]
        return Table(_first(self._table("ranks", arguments), limit), f"{by}s of {self.name}", _RANKS)

    def event(self, id: str, *, program: int | None = None) -> Event:  # noqa: A002 (the word of the command line)
        """Return a stored execution by its id, as anomalies lists it, with its context.

        program is required if several programs of a workflow have the id.
        """
        chosen = [] if program is None else ["--program", str(program)]
        arguments = [*self._flags(), *chosen, "--", self._place, id]
        record = _program.document(["event", *arguments])
        return Event(record, lambda: _program.run(["event", "--width", "110", *arguments]))

    def sql(self, sql: str, *params: Param, max_rows: int | None = None) -> Table:
        """Return the result of one read-only SQL statement on the tables and views of docs/sql.md.

        $1, $2 … stand for params. Times are in ticks, see tick_ns. A PostgreSQL store may have several runs: select
        with run = number.
        """
        return Table(self._query(sql, params, max_rows or 0), us_ns=self.tick_ns)

    def __repr__(self) -> str:
        return f"<chimbuko.Run {self.name!r} in {_public(self._place)}>"

    def _repr_html_(self) -> str:
        return _display.html_run(self.name, self.state, _public(self._place), self.info)

    def _row(self, condition: str = "", *params: Param) -> dict[str, Any]:
        """Return the row of the run, or of the latest run that meets a condition."""
        sql = f"""SELECT run, name, state, started, info, coalesce((info ->> 'tick_ns')::BIGINT, 1000) AS tick_ns
FROM runs
WHERE {condition or f"run = {self.number}"}
ORDER BY started DESC, run DESC
LIMIT 1"""
        rows = self.sql(sql, *params).rows()
        if not rows:
            raise ChimbukoError(f"{_public(self._place)}: no run {' '.join(map(repr, params))}".strip())
        return rows[0]

    def _flags(self) -> list[str]:
        """Return the flags that all queries share."""
        name = [] if self._chosen is None else ["--run", self._chosen]
        return ["--timeout", self._timeout, *name]

    def _table(self, command: str, flags: Sequence[str], *arguments: str) -> pa.Table:
        return _program.table([command, *self._flags(), *flags, "--", self._place, *arguments])

    def _query(self, sql: str, params: Sequence[Param], max_rows: int = 0) -> pa.Table:
        flags = ["--max-rows", str(max_rows)]
        for p in params:
            flags += ["--param", _param(p)]
        return self._table("query", flags, sql)

    def _select(self, columns: str, sql: str, where: str | None, params: Sequence[Param], order: str, limit: int | None) -> pa.Table:
        """Return the rows of a query that meet a condition on its columns."""
        condition = "" if where is None else f"\nWHERE (\n{where}\n)"
        first = "" if limit is None else f"\nLIMIT {int(limit)}"
        return self._query(f"SELECT {columns}\nFROM (\n{sql}\n) t{condition}\nORDER BY {order}{first}", params)

    def _micros(self, ticks: str) -> str:
        """Return SQL for a number of ticks in microseconds."""
        return ticks if self.tick_ns == 1000 else f"{ticks} / {1e3 / self.tick_ns!r}::DOUBLE PRECISION"

    def _begin(self) -> str:
        """Return SQL for the start of the run, which running and imported runs may not have."""
        return f"""coalesce((SELECT nullif((info -> 'totals' ->> 'begin_us')::BIGINT, 0) FROM runs WHERE run = {self.number}),
           (SELECT min(entry) FROM all_executions WHERE run = {self.number}))"""


def _place(run: str | os.PathLike[str]) -> str:
    """Return a run for the program. Directories are absolute, because notebooks change their own."""
    place = os.fspath(run)
    return place if "://" in place else os.path.abspath(os.path.expanduser(place))


def _public(place: str) -> str:
    """Return a run without user, password and other settings of its address."""
    if "://" not in place:
        return place
    url = urlsplit(place)
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def _param(value: Param) -> str:
    """Return a parameter for the program. Quoted text is text, also if it looks like a number."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def _first(data: pa.Table, limit: int | None) -> pa.Table:
    return data if limit is None else data.slice(0, limit)


def _not_equal(column: pa.ChunkedArray, value: str) -> pa.ChunkedArray:
    from pyarrow import compute

    return compute.not_equal(column, value)
