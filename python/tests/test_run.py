"""Answers of runs equal those of the command line."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from conftest import answer, run_program

import chimbuko


def test_findings_equal_the_command_line(any_run: Path) -> None:
    run = chimbuko.open(any_run)
    want = answer("findings", any_run)
    alarms = [f for f in want if f["severity"] == "alarm"]
    for rows, listed in ((run.findings(), alarms), (run.findings(notes=True), want)):
        assert [(r["finding"], r["kind"], r["summary"]) for r in rows] == [(f["finding"], f["kind"], f["summary"]) for f in listed]
        assert [r["lost_us"] for r in rows] == [f["lost_us"] for f in listed]
    assert len(run.findings(limit=1)) == min(1, len(alarms))
    assert run.findings(all=True)["finding"] == [f["finding"] for f in answer("findings", any_run, "--all")]


def test_findings_are_selected(gpu: chimbuko.Run, gpu_run: Path) -> None:
    assert set(gpu.findings(kind="recurring")["kind"]) == {"recurring"}
    assert set(gpu.findings(kind=["outlier", "recurring"])["kind"]) == {"outlier", "recurring"}
    assert set(gpu.findings(function="assemble*")["function"]) == {"assemble(int) [{gpuapp.cu} {71,0}]"}
    assert gpu.findings(withdrawn=True)["finding"] == [f["finding"] for f in answer("findings", gpu_run, "--withdrawn")] != []


@pytest.mark.parametrize("flag", ["", "--withdrawn", "--normal"])
def test_anomalies_equal_the_command_line(any_run: Path, flag: str) -> None:
    rows = chimbuko.open(any_run).anomalies(withdrawn=flag == "--withdrawn", normal=flag == "--normal").rows()
    want = answer("anomalies", any_run, "--limit", "100000", *([flag] if flag else []))
    assert len(rows) > 0
    for r in rows:
        assert (r.pop("why") is None) == (flag == "--normal")
    assert_equal_rows(rows, want)


def test_anomalies_are_selected(slow: chimbuko.Run) -> None:
    rows = slow.anomalies("rank = $1 AND function LIKE $2 -- a comment", 3, "update_b%", order_by="at_s", limit=5).rows()
    assert len(rows) == 5
    assert {(r["rank"], r["function"]) for r in rows} == {(3, "update_block")}
    times = [r["at_s"] for r in rows]
    assert times == sorted(times)
    assert len(slow.anomalies("rank = 3 OR rank = 4 AND lost_us < 0")) == len(slow.anomalies(where="rank = 3")) > 0
    assert len(slow.anomalies("function = 'no such function'")) == 0


def test_functions_cover_all_calls(any_run: Path) -> None:
    run = chimbuko.open(any_run)
    functions = run.functions()
    totals = run.info["totals"]
    assert len(functions) == len({(f["program"], f["function"]) for f in functions})
    assert sum(functions["calls"]) == totals["calls"]
    assert sum(functions["anomalies"]) == len(run.anomalies())
    assert math.isclose(sum(functions["lost_us"]), sum(run.anomalies()["lost_us"]))
    own = functions["exclusive_us"]
    assert own == sorted(own, reverse=True)


def test_functions_equal_the_command_line(any_run: Path) -> None:
    for f in chimbuko.open(any_run).functions("anomalies > 0", limit=3):
        profile = answer("func", any_run, f["function"])["profile"][0]
        for column in ("calls", "anomalies", "exclusive_us", "inclusive_us", "lost_us"):
            assert math.isclose(profile[column], f[column]), (f["function"], column)


def test_ranks_equal_the_command_line(any_run: Path) -> None:
    rows = chimbuko.open(any_run).ranks().rows()
    want = answer("ranks", any_run, "--limit", "1000")["rows"]
    for row, expected in zip(rows, want, strict=True):
        assert row["ranks"] == str(expected["ranks"][0])
        assert {k: v for k, v in row.items() if k not in ("ranks", "pattern", "host")} == pytest.approx(
            {k: expected[k] for k in row if k not in ("ranks", "pattern", "host")}
        )


def test_ranks_find_the_slow_one(slow: chimbuko.Run) -> None:
    worst = slow.ranks()[0]
    assert (worst["ranks"], worst["pattern"]) == ("3", "phase")
    assert worst["ratio"] > 1.1
    assert len(slow.ranks(limit=2)) == 2
    assert set(slow.ranks(rank="2-4")["ranks"]) == {"2", "3", "4"}
    assert set(slow.ranks(by="host")["host"]) == {"node00", "node01"}


def test_event_equals_the_command_line(any_run: Path) -> None:
    run = chimbuko.open(any_run)
    row = run.anomalies(limit=1)[0]
    event = run.event(row["event_id"])
    assert event.record == json.loads(run_program("event", any_run, row["event_id"], "--json"))
    assert str(event) == run_program("event", any_run, row["event_id"], "--width", "110")
    got = (event.id, event.function, event.program, event.rank, event.thread, event.host, event.kind, event.why)
    assert got == tuple(row[c] for c in ("event_id", "function", "program", "rank", "thread", "host", "kind", "why"))
    for value, column in ((event.exclusive_us, "exclusive_us"), (event.inclusive_us, "inclusive_us"), (event.lost_us, "lost_us")):
        assert math.isclose(value, row[column])
    lines = run_program("event", any_run, row["event_id"], "--format", "csv").splitlines()  # the calls around it
    for call, line in zip(event.calls, csv.DictReader(lines), strict=True):
        assert (call.event_id, call.function, str(call.is_anomaly).lower()) == (line["event_id"], line["function"], line["is_anomaly"])
        assert call.entry_us == pytest.approx(float(line["at_us"]))


def test_event_has_nested_calls(gpu: chimbuko.Run) -> None:
    event = gpu.event("0:5:445")
    assert [c.function.split("(")[0] for c in event.stack] == [".TAU application", "taupreload_main", "int main", "run_step", "assemble"]
    this = next(c for c in event.calls if c.event_id == event.id)
    assert (this.depth, this.entry_us, this.exit_us, this.is_anomaly) == (4, 0, 38564, True)
    before = [(c.depth, c.function.split("(")[0], c.entry_us) for c in event.calls][:5]
    assert before == [
        (5, "cudaMemcpyAsync", -536),  # its caller is not in the record
        (5, "cudaEventRecord", -123),
        (5, "cudaStreamWaitEvent", -106),
        (4, "compute_forces", -54),
        (5, "launch_stencil", -52),
    ]
    assert {c.depth for c in event.calls[11:]} == {5}


def test_event_has_messages(slow: chimbuko.Run) -> None:
    id = slow.sql("SELECT event_id FROM messages WHERE anomalous GROUP BY event_id ORDER BY count(*) DESC, event_id LIMIT 1")[0]["event_id"]
    event = slow.event(id)
    assert len(event.messages) == len(slow.sql("SELECT 1 AS x FROM messages WHERE event_id = $1 AND anomalous", id))
    for m in event.messages:
        assert event.rank == (m.source if m.kind == "SEND" else m.target)


def test_sql_has_types_and_params(gpu: chimbuko.Run) -> None:
    params: list[Any] = ["12", "it's", "null", "'quoted'", "", 7, -2.5, True, None]
    types = ["VARCHAR"] * 5 + ["BIGINT", "DOUBLE PRECISION", "BOOLEAN", "BIGINT"]
    sql = "SELECT " + ", ".join(f"${i}::{t} AS c{i}" for i, t in enumerate(types, 1))
    assert list(gpu.sql(sql, *params)[0].values()) == params


def test_sql_warns_about_omitted_rows(gpu: chimbuko.Run) -> None:
    with pytest.warns(chimbuko.ChimbukoWarning, match="more than 3 rows"):
        assert len(gpu.sql("SELECT event_id FROM anomalies", max_rows=3)) == 3


def test_errors_have_the_message_of_the_program(gpu: chimbuko.Run, tmp_path: Path) -> None:
    with pytest.raises(chimbuko.ChimbukoError, match="no such file or directory .want a run directory"):
        chimbuko.open(tmp_path / "nothing")
    with pytest.raises(chimbuko.ChimbukoError, match='Referenced column "nosuch"') as raised:
        gpu.sql("SELECT nosuch FROM anomalies")
    assert raised.value.exit_code == 1
    with pytest.raises(chimbuko.ChimbukoError, match="event 9:9:9 of run gpu: not found"):
        gpu.event("9:9:9")
    with pytest.raises(chimbuko.ChimbukoError, match=r"^unknown kind \"odd\" \(want [a-z, -]+\)$") as raised:
        gpu.findings(kind="odd")  # type: ignore[arg-type]
    assert raised.value.exit_code == 2
    with pytest.raises(chimbuko.ChimbukoError, match="no run 'other'"):
        chimbuko.open(gpu._place, name="other")
    with pytest.raises(chimbuko.ChimbukoError, match="no answer within"):
        chimbuko.open(gpu._place, timeout=1e-6)


def test_run_describes_itself(gpu: chimbuko.Run, gpu_run: Path, nanosecond_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = json.loads((gpu_run / "run.json").read_text())
    assert (gpu.name, gpu.number, gpu.state, gpu.tick_ns) == ("gpu", 1, "finished", 1000)
    assert gpu.info["totals"] == info["totals"]
    assert gpu.started.isoformat()[:19] == info["started"][:19]
    assert chimbuko.open(nanosecond_run).tick_ns == 1
    monkeypatch.chdir(gpu_run.parent)
    run = chimbuko.open("gpu")
    monkeypatch.chdir("/")
    assert run.state == "finished"  # also in another directory
    assert chimbuko.runs(gpu_run)["name"] == ["gpu"]


def assert_equal_rows(rows: list[dict[str, Any]], want: list[dict[str, Any]]) -> None:
    """Compare rows, numbers to the last digits that a conversion of units may change."""
    assert [list(r) for r in rows] == [list(w) for w in want]
    for row, expected in zip(rows, want, strict=True):
        for column, value in row.items():
            if isinstance(value, float):
                assert math.isclose(value, expected[column], rel_tol=1e-14), column
            else:
                assert value == expected[column], column


@pytest.mark.postgres
class TestPostgreSQL:
    def test_runs_of_a_server(self, postgres_url: str, gpu_run: Path, slow_run: Path) -> None:
        assert chimbuko.runs(postgres_url)["name"] == ["first", "second"]
        assert chimbuko.open(postgres_url).name == "second"
        for name, same in (("first", gpu_run), ("second", slow_run)):
            run, local = chimbuko.open(postgres_url, name=name), chimbuko.open(same)
            assert (run.name, run.state) == (name, "finished")
            assert_equal_rows(run.anomalies().rows(), local.anomalies().rows())
            assert_equal_rows(run.functions().rows(), local.functions().rows())
            assert_equal_rows(run.ranks().rows(), local.ranks().rows())
            assert_equal_rows(run.findings(notes=True).rows(), local.findings(notes=True).rows())
            assert run.anomalies("rank = $1", 0).columns == local.anomalies().columns
            id = local.anomalies(limit=1)[0]["event_id"]
            assert run.event(id).calls == local.event(id).calls
            assert run.sql("SELECT count(*) AS n FROM anomalies WHERE run = $1", run.number)["n"] == [
                len(local.anomalies(withdrawn=True))
            ]

    def test_address_is_shown_without_password(self, postgres_url: str) -> None:
        run = chimbuko.open(postgres_url + ("&" if "?" in postgres_url else "?") + "application_name=secret")
        assert "secret" not in repr(run) + run._repr_html_()
        assert "@" not in repr(run)
