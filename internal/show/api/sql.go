package api

import "encoding/json"

// SQLQuestion is a read-only SQL statement.
type SQLQuestion struct {
	SQL   string `json:"sql"`
	Args  []any  `json:"args,omitempty"`  // values of $1, $2 …: null, booleans, numbers and texts
	Limit *int64 `json:"limit,omitempty"` // rows
	// Format is that of an export: csv or parquet.
	Format string `json:"format,omitempty"`
}

// SQLAnswer is the answer to a statement.
type SQLAnswer struct {
	Columns []SQLColumn         `json:"columns"`
	Rows    [][]json.RawMessage `json:"rows"`
	Cut     bool                `json:"cut"` // more rows exist
	Seconds float64             `json:"seconds"`
}

// SQLColumn is a column of an answer.
type SQLColumn struct {
	Name string `json:"name"`
	Type string `json:"type"` // bool, int, float, string, json or time
}

// SQLProblem is a problem with a statement.
type SQLProblem struct {
	Message string `json:"error"`
	Hint    string `json:"hint,omitempty"`
	Line    int    `json:"line,omitempty"`   // of the statement, starting at 1
	Column  int    `json:"column,omitempty"` // of that line, in characters starting at 1
}
