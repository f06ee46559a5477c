"""Answers for people: text, HTML and SVG without scripts. All names are escaped."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chimbuko._event import Call, Event, Message

MAX_ROWS = 20
"""Rows of a table that are shown."""

_MAX_CELL = 60  # characters
_MAX_SENTENCE = 280
_SENTENCES = ("summary", "why", "reason", "doc")


def duration(us: float) -> str:
    """Format microseconds with three significant digits, in ns, us, ms or s, as the command line does."""
    size = abs(us)
    if size < 0.9995 and round(size * 1e3) != 0:
        return _three_digits(us * 1e3) + " ns"
    if size < 999.5:
        return (f"{us:.0f}" if us == math.trunc(us) else _three_digits(us)) + " us"
    if size < 999.5e3:
        return _three_digits(us / 1e3) + " ms"
    return _three_digits(us / 1e6) + " s"


def _three_digits(value: float) -> str:
    size = abs(value)
    return f"{value:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"


def _offset(us: float) -> str:
    return "0" if us == 0 else f"{'+' if us > 0 else ''}{duration(us)}"


_SOURCE = re.compile(r" \[\{([^}\]]*)\}(?: ?\{(\d+)[-{},0-9 ]*)?\]")


def function_name(name: str) -> str:
    """Write the source location of TAU in the name of a function as people do: f(int) heat2d.cpp:31."""

    def place(m: re.Match[str]) -> str:
        file = m[1].rpartition("/")[2]
        return f" {file}:{m[2]}" if m[2] else f" {file}"

    return _SOURCE.sub(place, name)


def shorten(text: str, n: int) -> str:
    """Cut a text to n characters by replacing its middle with an ellipsis."""
    return text if len(text) <= n else text[: n // 2] + "…" + text[len(text) - (n - 1 - n // 2) :]


def _cell(column: str, value: Any, us_ns: int) -> str:
    """Format a value by the unit in the name of its column."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if column.endswith("_us") or column == "severity":
            return duration(value * us_ns / 1000)
        if column.endswith("_s"):
            return f"{value:.3f} s"
        if column.endswith("_percent"):
            return f"{value:.3g} %"
        if column.endswith("share"):
            return f"{100 * value:.3g} %"
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ", "seconds")
    text = " ".join(str(value).split())
    return function_name(text) if column in ("function", "func", "fname", "call_path") else text


def _heading(column: str) -> str:
    for unit in ("_us", "_s", "_percent"):
        column = column.removesuffix(unit)
    return column.replace("_", " ")


def _footer(shown: int, rows: int, visible: int, columns: int) -> str:
    what = f"{rows:,} row{'' if rows == 1 else 's'} × {columns} columns"
    if shown < rows:
        what += f"; the first {shown} are shown"
    if visible < columns:
        what += f"; {columns - visible} columns are not shown"
    return what


def text_table(rows: Sequence[dict[str, Any]], shown: Sequence[str], count: int, columns: int, title: str, us_ns: int) -> str:
    """Return rows as text."""
    lines = [[_heading(c).upper() for c in shown]]
    lines += [[shorten(_cell(c, r[c], us_ns), _MAX_CELL) for c in shown] for r in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*([title] if title else []), *text, f"({_footer(len(rows), count, len(shown), columns)})"])


_PAD = "padding:.2em .7em;"
_QUIET = "opacity:.7;font-size:90%"


def html_table(rows: Sequence[dict[str, Any]], shown: Sequence[str], count: int, columns: int, title: str, us_ns: int) -> str:
    """Return rows as an HTML table."""
    right = {c for c in shown if all(isinstance(r[c], (int, float, type(None))) and not isinstance(r[c], bool) for r in rows)}
    align = {c: "text-align:right;" if c in right and rows else "text-align:left;" for c in shown}
    html = ['<div style="overflow-x:auto">']
    if title:
        html.append(f"<div><b>{escape(title)}</b></div>")
    html.append('<table style="border-collapse:collapse"><thead><tr>')
    html += [f'<th style="{_PAD}{align[c]}" title="{escape(c)}">{escape(_heading(c))}</th>' for c in shown]
    html.append("</tr></thead><tbody>")
    for r in rows:
        html.append("<tr>")
        html += [_html_cell(c, r[c], align[c], us_ns) for c in shown]
        html.append("</tr>")
    html.append(f'</tbody></table><div style="{_QUIET}">{_footer(len(rows), count, len(shown), columns)}</div></div>')
    return "".join(html)


def _html_cell(column: str, value: Any, align: str, us_ns: int) -> str:
    text = _cell(column, value, us_ns)
    if column in _SENTENCES:
        style = f"{_PAD}{align}min-width:24em;white-space:normal"
        short = shorten(text, _MAX_SENTENCE)
    else:
        style = f"{_PAD}{align}white-space:nowrap"
        short = shorten(text, _MAX_CELL)
    full = f' title="{escape(text)}"' if short != text else ""
    return f'<td style="{style}"{full}>{escape(short)}</td>'


def html_run(name: str, state: str, place: str, info: dict[str, Any]) -> str:
    """Return a run as HTML."""
    totals = info.get("totals") or {}
    counts = {k: totals.get(k) or 0 for k in ("events", "calls", "functions", "ranks", "anomalies")}
    facts = [f"{n:,} {'anomaly' if n == 1 and k == 'anomalies' else k[:-1] if n == 1 else k}" for k, n in counts.items() if n]
    lines = [f"<b>{escape(name)}</b> ({escape(state)}), {escape(place)}"]
    lines += [escape(", ".join(facts))] if facts else []
    lines += [escape(str(info["efficiency"]))] if info.get("efficiency") else []
    found = info.get("findings") or {}
    lines += [f"{i}. {escape(str(f['summary']))}" for i, f in enumerate(found.get("worst") or [], 1)]
    return "".join(f"<div>{line}</div>" for line in lines)


def html_event(event: Event) -> str:
    """Return an execution as HTML: facts, timeline, and a list of the calls around it."""
    where = [f"rank {event.rank}", f"thread {event.thread}", *([f"host {event.host}"] if event.host else [])]
    if gpu := event.record.get("gpu_location"):
        where.append(f"GPU device {gpu['device']}, stream {gpu['stream']}")
    facts = [f"event {event.id}", ", ".join(where), f"own time {duration(event.exclusive_us)}"]
    if event.inclusive_us != event.exclusive_us:
        facts.append(f"{duration(event.inclusive_us)} with callees")
    if event.lost_us:
        facts.append(f"lost {duration(event.lost_us)}")
    if event.kind:
        facts.append(f"kind {event.kind}")
    if launch := event.record.get("gpu_parent"):
        if isinstance(launch, dict) and "event_id" in launch:
            facts.append(f"launched by event {launch['event_id']} on thread {launch['tid']}")
    html = [f"<div><b>{escape(function_name(event.function))}</b></div>"]
    if event.why:
        html.append(f"<div>It {escape(event.why)}.</div>")
    html.append(f'<div style="{_QUIET}">{escape(" · ".join(facts))}</div>{timeline(event)}')
    rows = "".join(_html_call(event, c) for c in event.calls)
    html.append(f"<details><summary>{len(event.calls)} calls</summary><table>{rows}</table></details>")
    return f"<div>{''.join(html)}</div>"


def _html_call(event: Event, call: Call) -> str:
    """Return a row of the list of calls."""
    indent = "\u00a0\u00a0" * (call.depth - min(c.depth for c in event.calls))
    took = "still open" if call.exit_us is None else duration(call.exit_us - call.entry_us)
    mark = "this one" if call.event_id == event.id else "anomaly" if call.is_anomaly else ""
    cells = [_offset(call.entry_us), took, indent + shorten(function_name(call.function), _MAX_CELL), mark]
    aligned = zip(("right", "right", "left", "left"), cells, strict=True)
    return "<tr>" + "".join(f'<td style="{_PAD}text-align:{align}">{escape(cell)}</td>' for align, cell in aligned) + "</tr>"


_WIDTH, _ROW, _AXIS = 960, 20, 22
_COLORS = {"this": "#e4572e", "anomaly": "#f5b39c", "caller": "#d5dae1", "call": "#a9c6e8"}
_LEGEND = {"this": "this execution", "anomaly": "other anomaly", "caller": "around it", "call": "other call"}


def timeline(event: Event) -> str:
    """Return the calls around an execution as SVG: time from left to right, callees below callers."""
    calls, messages = event.calls, event.messages
    callers = [c for c in event.stack if c.event_id not in {x.event_id for x in calls}]
    ends = [c.exit_us for c in calls if c.exit_us is not None]
    first = min([c.entry_us for c in calls] + [0.0])
    last = max([*ends, *[c.entry_us for c in calls], event.inclusive_us])
    scale = _WIDTH / ((last - first) or 1)
    depths = sorted({c.depth for c in [*callers, *calls]})
    row = {d: i for i, d in enumerate(depths)}
    bottom = _AXIS + len(depths) * _ROW + (14 if messages else 0)
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 20}" width="{_WIDTH}" height="{bottom + 20}" '
        f'font-family="sans-serif" font-size="11" style="max-width:100%;height:auto" role="img" '
        f'aria-label="{escape(f"Timeline of the calls around event {event.id}")}">'
    ]
    for at in _ticks(first, last):
        x = (at - first) * scale
        anchor = "start" if x < 30 else "end" if x > _WIDTH - 40 else "middle"
        svg.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_AXIS - 4}" y2="{bottom}" stroke="currentColor" stroke-opacity=".15"/>')
        svg.append(f'<text x="{x:.1f}" y="12" text-anchor="{anchor}" fill="currentColor">{escape(_offset(at))}</text>')
    for call in [*callers, *calls]:
        left, right = max(call.entry_us, first), last if call.exit_us is None else min(call.exit_us, last)
        svg.append(_box(event, call, call in callers, (left - first) * scale, (right - left) * scale, _AXIS + row[call.depth] * _ROW))
    for m in messages:
        svg.append(_marker(m, (min(max(m.at_us, first), last) - first) * scale, bottom - 12))
    svg.append(_legend(bottom + 14, {_role(event, c, c in callers) for c in [*callers, *calls]}, bool(messages)))
    return "".join([*svg, "</svg>"])


def _role(event: Event, call: Call, is_caller: bool) -> str:
    if call.event_id == event.id:
        return "this"
    return "anomaly" if call.is_anomaly else "caller" if is_caller else "call"


def _box(event: Event, call: Call, is_caller: bool, x: float, width: float, y: int) -> str:
    """Return the bar of a call, with its name if there is space for a part of it."""
    name = function_name(call.function)
    took = "still open" if call.exit_us is None else duration(call.exit_us - call.entry_us)
    title = f"{name}\n{took}, at {_offset(call.entry_us)} (event {call.event_id})"
    edge = ' stroke="#fff" stroke-width=".7"' if width > 4 else ""  # between calls without a gap
    box = (
        f'<rect x="{x:.1f}" y="{y}" width="{max(width, 1):.1f}" height="{_ROW - 3}" fill="{_COLORS[_role(event, call, is_caller)]}"{edge}>'
        f"<title>{escape(title)}</title></rect>"
    )
    letters = int((width - 8) / 6)
    if letters >= 4:
        label = shorten(f"{name} {took}" if letters > len(name) + len(took) else name, letters)
        box += f'<text x="{x + 4:.1f}" y="{y + 12.5}" fill="#1a1a1a" pointer-events="none">{escape(label)}</text>'
    return box


def _marker(m: Message, x: float, y: int) -> str:
    """Return a triangle for a message: up for one that was sent, down for one that was received."""
    sent = m.kind == "SEND"
    x = min(max(x, 4), _WIDTH - 4)
    points = f"{x - 4:.1f},{y + 8} {x + 4:.1f},{y + 8} {x:.1f},{y}" if sent else f"{x - 4:.1f},{y} {x + 4:.1f},{y} {x:.1f},{y + 8}"
    size = "of unknown size" if m.bytes is None else f"{m.bytes:,} bytes"
    partner = f"sent to rank {m.target}" if sent else f"received from rank {m.source}"
    title = f"{partner}, {size}, tag {m.tag}, at {_offset(m.at_us)}"
    return f'<polygon points="{points}" fill="currentColor" fill-opacity=".7"><title>{escape(title)}</title></polygon>'


def _legend(y: int, roles: set[str], messages: bool) -> str:
    svg, x = [], 0
    for role, text in _LEGEND.items():
        if role in roles:
            svg.append(f'<rect x="{x}" y="{y - 9}" width="11" height="11" fill="{_COLORS[role]}"/>')
            svg.append(f'<text x="{x + 15}" y="{y}" fill="currentColor" fill-opacity=".8">{text}</text>')
            x += 30 + 6 * len(text)
    if messages:
        svg.append(f'<text x="{x}" y="{y}" fill="currentColor" fill-opacity=".8">▲ message sent  ▼ received</text>')
    return "".join(svg)


def _ticks(first: float, last: float) -> list[float]:
    """Return four to ten round numbers between first and last."""
    span = last - first
    if span <= 0:
        return [0.0]
    step = 10.0 ** math.floor(math.log10(span / 4))
    step *= next(f for f in (5, 2, 1) if span / (step * f) >= 4)
    return [n * step for n in range(math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9) + 1)]
