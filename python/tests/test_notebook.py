"""docs/notebook.ipynb runs, and shows what it shows in the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def shown(cell: Any) -> list[Any]:
    """Return what a cell shows: output, or results in all their forms."""
    return [o["text"] if o["output_type"] == "stream" else dict(o["data"]) for o in cell.get("outputs", [])]


@pytest.mark.notebook
def test_notebook_shows_current_answers(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}, record_timing=False).execute()
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    if request.config.getoption("--update"):
        notebook.metadata = stored.metadata
        nbformat.write(notebook, NOTEBOOK)  # type: ignore[no-untyped-call]
        return
    results = [cell for cell in notebook.cells if shown(cell)]
    assert len(results) >= 8
    for cell, before in zip(notebook.cells, stored.cells, strict=True):
        assert shown(cell) == shown(before), f"out of date, run make docs: {cell['source']}"
