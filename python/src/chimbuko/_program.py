"""The program chimbuko: where it is, and its answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


class ChimbukoError(Exception):
    """The program failed. The text is its message, and exit_code its exit code, or None if it did not start."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ChimbukoWarning(UserWarning):
    """The program answered with a warning, such as that a run is incomplete."""


def program() -> str:
    """Return the path of the program: $CHIMBUKO, else the one in the wheel, else the one in PATH."""
    if chosen := os.environ.get("CHIMBUKO"):
        if path := shutil.which(chosen):
            return path
        raise ChimbukoError(f"$CHIMBUKO: {chosen} is not a program")
    for candidate in _installed():
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return str(candidate)
    if path := shutil.which("chimbuko"):
        return path
    raise ChimbukoError("cannot find the program chimbuko (install the wheel, or add the program to PATH)")


def _installed() -> list[Path]:
    """Return where pip may have installed the program of the wheel."""
    candidates = []
    try:
        files = metadata.distribution("chimbuko").files or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "chimbuko" and file.parent.name == "bin":
            candidates.append(Path(str(file.locate())).resolve())
    candidates.append(Path(__file__).resolve().parents[1] / "bin" / "chimbuko")  # pip install --target
    return candidates


def run(arguments: Sequence[str]) -> str:
    """Run the program and return its output. Its warnings become Python's."""
    command = [program(), *arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False)
    except OSError as e:
        raise ChimbukoError(f"cannot run {command[0]}: {e.strerror}") from e
    message = done.stderr.strip()
    if done.returncode != 0:
        message = message.removesuffix("Run the command with --help to see how it is used.").strip()
        raise ChimbukoError(message.removeprefix("chimbuko: ") or f"{command[0]} ended with {done.returncode}", done.returncode)
    for line in filter(None, message.splitlines()):
        warnings.warn(line.removeprefix("chimbuko: "), ChimbukoWarning, stacklevel=4)
    return done.stdout


def document(arguments: Sequence[str]) -> Any:
    """Return an answer of the program as the value of its JSON."""
    return json.loads(run([*arguments[:1], "--format", "json", *arguments[1:]]))


def table(arguments: Sequence[str]) -> pa.Table:
    """Return an answer of the program as an Arrow table, with its types."""
    try:
        from pyarrow import parquet
    except ImportError as e:
        raise ChimbukoError("tables need the package pyarrow (pip install pyarrow)") from e
    with tempfile.TemporaryDirectory(prefix="chimbuko-") as directory:
        file = os.path.join(directory, "answer.parquet")
        run([*arguments[:1], "--format", "parquet", "--output", file, *arguments[1:]])
        return parquet.read_table(file, memory_map=False)
