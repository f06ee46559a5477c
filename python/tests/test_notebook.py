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
    """Return what a cell shows: the text of a stream, which may arrive in several parts, and results in all their forms."""
    outputs = cell.get("outputs", [])
    texts: dict[str, str] = {}
    for o in outputs:
        if o["output_type"] == "stream":
            texts[o["name"]] = texts.get(o["name"], "") + o["text"]
    return [*sorted(texts.items()), *(dict(o["data"]) for o in outputs if o["output_type"] != "stream")]


@pytest.mark.notebook
def test_notebook_shows_current_answers(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, resources=resources, record_timing=False, coalesce_streams=True).execute()
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
