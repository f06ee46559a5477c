"""Tables of answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from chimbuko import _display

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


class Table:
    """An answer of the program: rows with typed columns.

    Notebooks show the first rows, with units. to_arrow, to_pandas and to_polars return all of them. Libraries that
    accept Arrow data, such as DuckDB, read a Table without conversion.
    """

    def __init__(self, data: pa.Table, title: str = "", shown: Sequence[str] = (), us_ns: int = 1000) -> None:
        """Wrap an Arrow table. shown are the columns that notebooks show, by default all. us_ns is the number of
        nanoseconds of 1 in a column whose name ends in _us."""
        self._data = data
        self._title = title
        self._shown = [c for c in shown if c in data.column_names] or list(data.column_names)
        self._us_ns = us_ns

    def to_arrow(self) -> pa.Table:
        """Return the table as a pyarrow.Table, without a copy."""
        return self._data

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas.DataFrame. Integers with missing values keep their type (Int64)."""
        import pandas as pd
        import pyarrow as pa

        nullable = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype(), pa.bool_(): pd.BooleanDtype()}
        missing = {self._data.schema.field(i).type for i, c in enumerate(self._data.columns) if c.null_count}
        # Columns without missing values have the types of NumPy, which are faster and more common.
        if not missing & nullable.keys():
            return self._frame(self._data)
        frame = self._frame(self._data, types_mapper=nullable.get)
        for field, column in zip(self._data.schema, self._data.columns, strict=True):
            if field.type in nullable and column.null_count == 0:
                frame[field.name] = column.to_pandas()
        return frame

    @staticmethod
    def _frame(data: pa.Table, **options: Any) -> pandas.DataFrame:
        frame: pandas.DataFrame = data.to_pandas(**options)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return the table as a polars.DataFrame."""
        import polars as pl

        frame = pl.from_arrow(self._data)
        assert isinstance(frame, pl.DataFrame)  # a Series is the result for an array
        return frame

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._data.column_names)

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows, each by the names of its columns."""
        rows: list[dict[str, Any]] = self._data.to_pylist()
        return rows

    def head(self, n: int = 5) -> Table:
        """Return the first n rows."""
        return Table(self._data.slice(0, max(n, 0)), self._title, self._shown, self._us_ns)

    def __len__(self) -> int:
        return int(self._data.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._data.to_batches():
            yield from batch.to_pylist()

    def __getitem__(self, key: int | str) -> Any:
        """Return a row by its number, or a column by its name, as values of Python."""
        if isinstance(key, str):
            return self._data.column(key).to_pylist()
        if not -len(self) <= key < len(self):
            raise IndexError(f"row {key} of {len(self)}")
        return self._data.slice(key % len(self), 1).to_pylist()[0]

    def __arrow_c_schema__(self) -> object:
        return self._data.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return _display.text_table(self._head(), self._shown, len(self), len(self.columns), self._title, self._us_ns)

    def _repr_html_(self) -> str:
        return _display.html_table(self._head(), self._shown, len(self), len(self.columns), self._title, self._us_ns)

    def _head(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._data.slice(0, _display.MAX_ROWS).select(self._shown).to_pylist()
        return rows
