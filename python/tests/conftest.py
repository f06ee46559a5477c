"""Runs for the tests: the program in $CHIMBUKO analyzes traces of the repository, and of a simulated program."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import chimbuko

ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the outputs of docs/notebook.ipynb")


def run_program(*arguments: str | Path) -> str:
    """Run the program as in a shell, without the package."""
    done = subprocess.run([chimbuko.program(), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer(*arguments: str | Path) -> Any:
    """Return an answer of the program in JSON: what the package has to equal."""
    return json.loads(run_program(*arguments, "--format", "json"))


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def gpu_run(directory: Path) -> Path:
    """A recorded program with a GPU on one rank, with two findings and two notes; times in microseconds."""
    run_program("analyze", ROOT / "testdata" / "traces" / "gpu-BP5", "--out", directory / "gpu")
    return directory / "gpu"


@pytest.fixture(scope="session")
def slow_run(directory: Path) -> Path:
    """A simulated program on eight ranks, of which one is slow for a while."""
    run_program("simulate", "--scenario", "slow-rank", "--ranks", "8", "--out", directory / "slow-traces")
    run_program("analyze", directory / "slow-traces", "--out", directory / "slow")
    return directory / "slow"


@pytest.fixture(scope="session")
def nanosecond_run(directory: Path) -> Path:
    """A trace as PyTorch's profiler writes it, in which two of 400 calls are slow; times in nanoseconds."""
    events, at = [], 1000.001
    for i in range(400):
        took = 5000.875 if i in (150, 301) else 100.125 + i % 7
        events.append({"ph": "X", "name": "work", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": at, "dur": took})
        events.append({"ph": "X", "name": "part", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": at + 1.5, "dur": 20.25})
        at = round(at + took + 3.25, 3)
    (directory / "nano").mkdir()
    (directory / "nano" / "rank0.json").write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 0}}))
    run_program("analyze", directory / "nano", "--out", directory / "nanoseconds")
    return directory / "nanoseconds"


@pytest.fixture(params=["gpu_run", "slow_run", "nanosecond_run"])
def any_run(request: pytest.FixtureRequest) -> Path:
    """Each of the runs."""
    run = request.getfixturevalue(request.param)
    assert isinstance(run, Path)
    return run


@pytest.fixture
def gpu(gpu_run: Path) -> chimbuko.Run:
    return chimbuko.open(gpu_run)


@pytest.fixture
def slow(slow_run: Path) -> chimbuko.Run:
    return chimbuko.open(slow_run)


@pytest.fixture(scope="session")
def postgres_url(gpu_run: Path, slow_run: Path) -> str:
    """A PostgreSQL store with two runs, first and second."""
    url = os.environ["TEST_POSTGRES"]
    for name, traces in (("first", ROOT / "testdata" / "traces" / "gpu-BP5"), ("second", slow_run.parent / "slow-traces")):
        run_program("analyze", traces, "--out", slow_run.parent / name, "--store", url, "--name", name)
    return url
