"""The package finds and runs the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import chimbuko
from chimbuko import _program


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A program chimbuko in a directory of its own."""
    path = tmp_path / "bin" / "chimbuko"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\nprintf 'chimbuko: first line\\nsecond\\n' >&2\necho '[]'\nexit ${FAKE_EXIT:-0}\n")
    path.chmod(0o755)
    return path


def test_environment_names_the_program(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIMBUKO", str(fake))
    assert chimbuko.program() == str(fake)
    monkeypatch.setenv("CHIMBUKO", str(fake) + "-not")
    with pytest.raises(chimbuko.ChimbukoError, match="is not a program"):
        chimbuko.program()


def test_program_is_searched_in_path(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHIMBUKO")
    monkeypatch.setattr(_program, "_installed", list)
    monkeypatch.setenv("PATH", str(fake.parent))
    assert chimbuko.program() == str(fake)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(chimbuko.ChimbukoError, match="cannot find the program chimbuko"):
        chimbuko.open("run")


def test_messages_become_warnings_or_errors(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIMBUKO", str(fake))
    with pytest.warns(chimbuko.ChimbukoWarning) as warned:
        assert _program.document(["runs"]) == []
    assert [str(w.message) for w in warned] == ["first line", "second"]
    monkeypatch.setenv("FAKE_EXIT", "3")
    with pytest.raises(chimbuko.ChimbukoError) as raised:
        _program.document(["runs"])
    assert (str(raised.value), raised.value.exit_code) == ("first line\nsecond", 3)


def test_damaged_program_is_an_error(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.write_bytes(b"\x7fELF damaged")
    monkeypatch.setenv("CHIMBUKO", str(fake))
    with pytest.raises(chimbuko.ChimbukoError, match="cannot run .*chimbuko: Exec format error"):
        chimbuko.open("run")


def test_module_runs_the_program() -> None:
    module = subprocess.run([sys.executable, "-m", "chimbuko", "version"], capture_output=True, text=True, check=True)
    program = subprocess.run([chimbuko.program(), "version"], capture_output=True, text=True, check=True)
    assert module.stdout == program.stdout != ""
    failed = subprocess.run([sys.executable, "-m", "chimbuko", "nosuch"], capture_output=True, text=True, check=False)
    assert failed.returncode == 2


def test_module_reports_a_missing_program() -> None:
    environ = {**os.environ, "CHIMBUKO": "/nowhere"}
    done = subprocess.run([sys.executable, "-m", "chimbuko"], capture_output=True, text=True, check=False, env=environ)
    assert (done.returncode, done.stderr) == (1, "chimbuko: $CHIMBUKO: /nowhere is not a program\n")


def test_large_libraries_are_not_imported_early(gpu_run: Path) -> None:
    code = """import sys, chimbuko
assert not {"pyarrow", "pandas", "polars"} & sys.modules.keys()
chimbuko.open(sys.argv[1]).anomalies()._repr_html_()
assert "polars" not in sys.modules"""  # pyarrow may import pandas
    subprocess.run([sys.executable, "-c", code, str(gpu_run)], check=True)


def test_no_files_are_left(gpu_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    run = chimbuko.open(gpu_run)
    run.findings()
    with pytest.raises(chimbuko.ChimbukoError):
        run.sql("SELECT nosuch")
    assert list(tmp_path.iterdir()) == []
