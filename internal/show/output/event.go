package output

import (
	"io"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/explain"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

var windowColumns = columns("event_id at_us:int inclusive_us:int is_anomaly:bool parent_event_id fid:int function")

// Event returns an execution: in words, as the document of the schema, or the calls around
// it as rows.
func Event(e *executions.Event, o explain.Options) *Answer {
	return &Answer{
		JSON: e.Document,
		Text: func(w io.Writer) error { return explain.Write(w, e.Record, o) },
		Rows: executions.InMicros(e.Record.Unit, rowsOf(windowColumns, e.Record.EventWindow.Execs, func(c *provenance.WindowEntry) []any {
			var took any
			if c.Exit != 0 {
				took = c.Exit - c.Entry
			}
			return []any{c.EventID, c.Entry - e.Record.Entry, took, c.IsAnomaly, c.ParentID, c.FID, c.Func}
		})),
	}
}
