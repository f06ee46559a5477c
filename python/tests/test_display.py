"""Notebooks show tables and executions."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import run_program

import chimbuko
from chimbuko import _display

HOSTILE = "<script>alert(\"x\")</script> & 'y' operator<<(a&&, b) [{/src/a b.cpp} {31,0}]"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0 us"), (0.0004, "0.00 us"), (0.001, "1.00 ns"), (0.25, "250 ns"), (0.9994, "999 ns"), (1, "1 us"), (1.5, "1.50 us"),
        (999, "999 us"), (999.6, "1.00 ms"), (-536, "-536 us"), (38022, "38.0 ms"), (999499, "999 ms"), (999500, "1.00 s"),
        (1.6e9, "1600 s"),
    ],
)  # fmt: skip
def test_durations(us: float, text: str) -> None:
    assert _display.duration(us) == text


def test_durations_equal_the_command_line(slow: chimbuko.Run, slow_run: Path) -> None:
    lines = run_program("anomalies", slow_run, "--limit", "400").splitlines()[1:]
    rows = slow.anomalies(limit=400).rows()
    assert len(lines) == len(rows) == 400
    for line, row in zip(lines, rows, strict=True):
        assert line.split("  ")[0] == row["event_id"]
        assert f"  {_display.duration(row['exclusive_us'])}  " in line


def test_function_names() -> None:
    assert _display.function_name("f(int) [{/src/heat2d.cpp} {31,0}]") == "f(int) heat2d.cpp:31"
    assert _display.function_name("f(int) [{heat2d.cpp} {31,1}-{40,2}]") == "f(int) heat2d.cpp:31"
    assert _display.function_name("forward [PP rank 3]") == "forward [PP rank 3]"
    assert _display.function_name("MPI_Send()") == "MPI_Send()"


def test_tables_show_units_and_say_what_is_omitted(slow: chimbuko.Run) -> None:
    anomalies = slow.anomalies()
    html = ET.fromstring(anomalies._repr_html_())
    assert len(html.findall(".//tbody/tr")) == 20
    headings = ["".join(th.itertext()) for th in html.findall(".//th")]
    first = dict(zip(headings, (td.text for td in html.findall(".//tbody/tr")[0]), strict=True))
    assert first["exclusive"] == _display.duration(anomalies[0]["exclusive_us"])
    assert first["event id"] == anomalies[0]["event_id"]
    text = "".join(html.itertext())
    assert f"{len(anomalies):,} rows × 16 columns; the first 20 are shown; 5 columns are not shown" in text
    assert text.startswith("anomalies of slow")
    lines = repr(anomalies).splitlines()
    assert len(lines) == 23
    assert lines[1].startswith("EVENT ID")


def test_sql_shows_times_of_its_unit(nanosecond_run: Path) -> None:
    run = chimbuko.open(nanosecond_run)
    assert "1.50 us" in repr(run.sql("SELECT 1500 AS t_us"))  # ticks are nanoseconds


def test_names_are_escaped(gpu: chimbuko.Run) -> None:
    table = chimbuko.Table(pa.table({"function": [HOSTILE], HOSTILE: ["x"]}), HOSTILE)
    html = table._repr_html_()
    assert "<script" not in html
    cells = [td.text for td in ET.fromstring(html).findall(".//td")]
    assert cells[0] == _display.shorten(_display.function_name(HOSTILE), 60)
    event = gpu.event("0:5:445")
    for frame in [*event.record["call_stack"], *event.record["event_window"]["exec_window"]]:
        frame["func"] = HOSTILE
    event.record["func"] = event.record["hostname"] = event.record["why"] = event.record["kind"] = HOSTILE
    assert "<script" not in event._repr_html_()
    assert HOSTILE in "".join(ET.fromstring(event._repr_html_()).itertext())


def bars(svg: ET.Element) -> dict[str, ET.Element]:
    """Return the bars of calls by the ids in their tooltips."""
    return {t.text.rpartition("(event ")[2].rstrip(")"): r for r in svg.iter(f"{SVG}rect") for t in r.iter(f"{SVG}title") if t.text}


def test_timeline_shows_every_call(any_run: Path) -> None:
    run = chimbuko.open(any_run)
    for row in run.anomalies(limit=5):
        event = run.event(row["event_id"])
        svg = ET.fromstring(event.timeline())
        found = bars(svg)
        assert set(found) == {c.event_id for c in [*event.stack, *event.calls]}
        assert [id for id, r in found.items() if r.get("fill") == _display._COLORS["this"]] == [event.id]
        width = float(svg.get("width", 0))
        first, last = min(c.entry_us for c in event.calls), max(c.exit_us or c.entry_us for c in event.calls)
        for call in event.calls:
            bar = found[call.event_id]
            x, w = float(bar.get("x", -1)), float(bar.get("width", -1))
            assert x == pytest.approx((call.entry_us - first) / (last - first) * width, abs=0.1)
            assert w == pytest.approx(max(((call.exit_us or last) - call.entry_us) / (last - first) * width, 1), abs=0.1)
            for caller in event.calls:
                if caller.depth == call.depth - 1 and caller.entry_us <= call.entry_us < (caller.exit_us or last):
                    assert float(found[caller.event_id].get("y", 0)) < float(bar.get("y", 0))
        assert len(list(svg.iter(f"{SVG}polygon"))) == len(event.messages)
        ET.fromstring(event._repr_html_())


def test_display_needs_no_network_and_no_scripts(gpu: chimbuko.Run) -> None:
    shown: list[Any] = [gpu, gpu.findings(), gpu.anomalies(), gpu.event("0:6:4694")]
    for value in shown:
        html = value._repr_html_().replace('xmlns="http://www.w3.org/2000/svg"', "")
        for forbidden in ("<script", "http", "url(", "<img", "onclick"):
            assert forbidden not in html


def test_run_shows_its_findings(gpu: chimbuko.Run) -> None:
    html = gpu._repr_html_()
    for finding in gpu.findings():
        assert finding["summary"] in html
    assert "1 rank," in html
