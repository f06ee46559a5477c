package executions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Event is a stored execution.
type Event struct {
	Collection string // anomalies or normalexecs
	Document   json.RawMessage
	Record     *provenance.Record
}

// Event returns the execution with an ID. If several programs have the ID, p must not be nil.
func (a *Reader) Event(ctx context.Context, id string, p *trace.Program) (*Event, error) {
	rows, err := a.event(ctx, id, p)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("event %s of run %s: %w; chimbuko anomalies lists the ids", id, a.Run.Name, provdb.ErrNotFound)
	}
	if len(rows) > 1 {
		var programs []string
		for _, row := range rows {
			programs = append(programs, fmt.Sprint(row.Program))
		}
		return nil, fmt.Errorf("event %s is of programs %s: choose one with --program", id, strings.Join(programs, ", "))
	}
	return a.eventOf(id, rows[0])
}

// storedEvent is an execution as it is stored.
type storedEvent struct {
	Program   trace.Program   `sql:"pid"`
	Anomalous bool            `sql:"anomalous"`
	Document  json.RawMessage `sql:"doc"`
}

func (a *Reader) eventOf(id string, row storedEvent) (*Event, error) {
	e := &Event{Collection: "normalexecs", Document: row.Document, Record: new(provenance.Record)}
	if row.Anomalous {
		e.Collection = "anomalies"
	}
	if err := json.Unmarshal(e.Document, e.Record); err != nil {
		return nil, fmt.Errorf("event %s: %w", id, err)
	}
	if e.Record.Unit = a.Unit.Canonical(); e.Record.Unit != 0 {
		e.Document = fmt.Appendf(nil, `{"tick_ns":%d,%s`, e.Record.Unit, bytes.TrimPrefix(bytes.TrimSpace(e.Document), []byte("{")))
	}
	return e, nil
}

// FunctionOf returns the name of the function of an execution of a program.
func (a *Reader) FunctionOf(ctx context.Context, id string, p trace.Program) (string, error) {
	e, err := a.find(ctx, p, id)
	if err != nil {
		return "", err
	}
	if e == nil {
		return "", fmt.Errorf("event %s of run %s: %w", id, a.Run.Name, provdb.ErrNotFound)
	}
	return e.Function, nil
}

func (a *Reader) event(ctx context.Context, id string, p *trace.Program) ([]storedEvent, error) {
	if n, ok := trace.EventNumbers(id); ok {
		rows, err := ReadAll[storedEvent](ctx, a, text("event"), n[0], n[1], n[2], OptionalProgram(p))
		if err != nil || len(rows) > 0 {
			return rows, err
		}
	}
	return ReadAll[storedEvent](ctx, a, text("event_text"), id, OptionalProgram(p))
}
