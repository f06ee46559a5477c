"""Tables convert to those of other libraries."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import chimbuko

SQL = """SELECT * FROM (VALUES
    (1, 9007199254740993::BIGINT, 0.5::DOUBLE PRECISION, 'a', TRUE, 18446744073709551615::UBIGINT),
    (2, NULL, NULL, NULL, NULL, NULL)) AS t(whole, large, number, word, truth, huge)"""


@pytest.fixture
def table(gpu: chimbuko.Run) -> chimbuko.Table:
    return gpu.sql(SQL)


def test_types_survive(table: chimbuko.Table) -> None:
    types = dict(zip(table.columns, table.to_arrow().schema.types, strict=True))
    want = [pa.int64(), pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.uint64()]
    assert types == dict(zip(("whole", "large", "number", "word", "truth", "huge"), want, strict=True))
    frame = table.to_pandas()
    assert [str(t) for t in frame.dtypes][:3] == ["int64", "Int64", "float64"]
    assert [str(t) for t in frame.dtypes][4:] == ["boolean", "UInt64"]
    assert frame["large"][0] == 9007199254740993  # not a float
    assert frame["large"][1] is pd.NA
    assert list(table.to_polars().dtypes) == [pl.Int64, pl.Int64, pl.Float64, pl.String, pl.Boolean, pl.UInt64]


def test_libraries_agree(any_run: Path) -> None:
    run = chimbuko.open(any_run)
    for table in (run.findings(), run.anomalies(), run.functions(), run.ranks()):
        rows = table.rows()
        assert table.to_polars().rows(named=True) == rows
        frame = table.to_pandas()
        assert list(frame.columns) == table.columns
        assert frame.astype(object).where(frame.notna(), None).to_dict("records") == rows
        assert list(table) == rows


def test_empty_table_keeps_its_columns(gpu: chimbuko.Run) -> None:
    table = gpu.anomalies("FALSE")
    assert len(table) == 0
    assert table.columns == gpu.anomalies().columns
    assert table.to_arrow().schema.types == gpu.anomalies().to_arrow().schema.types
    assert len(table.to_pandas()) == len(table.to_polars()) == len(table.rows()) == 0
    assert "0 rows" in repr(table)
    assert "0 rows" in table._repr_html_()


def test_rows_and_columns(table: chimbuko.Table) -> None:
    assert len(table) == 2
    assert table["whole"] == [1, 2]
    assert table[-1] == table[1] == {"whole": 2, "large": None, "number": None, "word": None, "truth": None, "huge": None}
    assert table.head(1).rows() == table.rows()[:1]
    with pytest.raises(IndexError, match="row 2 of 2"):
        table[2]
    with pytest.raises(KeyError):
        table["nosuch"]


def test_other_libraries_read_arrow_data(table: chimbuko.Table) -> None:
    answer = table  # DuckDB reads variables of Python
    assert duckdb.sql("SELECT sum(whole) FROM answer").fetchall() == [(3,)]
    assert pa.table(table) == table.to_arrow()
    assert pl.DataFrame(table).equals(table.to_polars())
