package executions

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// answer is a reader with one answer.
type answer struct {
	columns []string
	rows    [][]any
}

func (a *answer) Query(context.Context, string, ...any) (*provdb.Rows, error) {
	rows := &provdb.Rows{Close: func() error { return nil }}
	for _, name := range a.columns {
		rows.Columns = append(rows.Columns, provdb.Column{Name: name})
	}
	rows.All = func(yield func([]any, error) bool) {
		for _, row := range a.rows {
			if !yield(row, nil) {
				return
			}
		}
	}
	return rows, nil
}

func TestScan(t *testing.T) {
	type row struct {
		PathID
		Name    string          `sql:"name"`
		Entry   *trace.Ticks    `sql:"entry"`
		Share   float64         `sql:"share"`
		OnGPU   bool            `sql:"on_gpu"`
		Info    json.RawMessage `sql:"info"`
		Started time.Time       `sql:"started"`
		Any     any             `sql:"any"`
		Ignored int
	}
	columns := []string{"info", "unused", "name", "path", "pid", "entry", "share", "on_gpu", "started", "any"}
	now, entry := time.Now(), trace.Ticks(7)
	a := &Reader{Store: &answer{columns, [][]any{
		{`{"a":1}`, "x", "f", int64(3), int64(1), int64(7), int64(2), true, now, "k"},
		{nil, nil, nil, nil, nil, nil, nil, nil, nil, nil},
	}}}
	got, err := ReadAll[row](t.Context(), a, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []row{{
		PathID: PathID{1, 3}, Name: "f", Entry: &entry, Share: 2, OnGPU: true, Info: json.RawMessage(`{"a":1}`), Started: now,
		Any: "k",
	}, {}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestScanUsesJSONNamesAndLists(t *testing.T) {
	type document struct {
		Rank    trace.Rank `json:"rank"`
		Ranks   []int64    `json:"ranks,omitempty"`
		Ignored int        `json:"-"`
	}
	type row struct {
		document
		Total int64 `sql:"total"`
	}
	columns := []string{"total", "ranks", "rank"}
	a := &Reader{Store: &answer{columns, [][]any{{int64(9), "[1,2]", int64(3)}, {int64(9), "[4]", nil}, {nil, nil, nil}}}}
	got, err := ReadAll[row](t.Context(), a, "")
	want := []row{{document{3, []int64{1, 2}, 0}, 9}, {document{0, []int64{4}, 0}, 9}, {}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func TestReadValue(t *testing.T) {
	for want, rows := range map[trace.Ticks][][]any{7: {{int64(7)}}, 0: nil} {
		got, err := ReadValue[trace.Ticks](t.Context(), &Reader{Store: &answer{[]string{"value"}, rows}}, "")
		if err != nil || got != want {
			t.Errorf("got %d, %v; want %d", got, err, want)
		}
	}
}

func TestScanNamesMismatchedColumn(t *testing.T) {
	type row struct {
		Name string `sql:"name"`
	}
	type list struct {
		Ranks []int64 `sql:"ranks"`
	}
	wrong := &answer{columns: []string{"ranks"}, rows: [][]any{{"[1,"}}}
	if _, err := ReadFirst[list](t.Context(), &Reader{Store: wrong}, ""); err == nil || !strings.Contains(err.Error(), `column "ranks"`) {
		t.Errorf("invalid JSON: got %v", err)
	}
	for want, reader := range map[string]*answer{
		`no column "name"`:            {columns: []string{"title"}},
		`column "name" has a float64`: {columns: []string{"name"}, rows: [][]any{{1.5}}},
	} {
		_, err := ReadFirst[row](t.Context(), &Reader{Store: reader}, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
