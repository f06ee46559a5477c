package dashboard_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// hostile are names that could break a page, a sentence or an answer.
var hostile = []string{
	`<script>alert("1")</script>`, "a\nb\r\tc: {\"x\": 1}", `'; DROP TABLE runs; --`, `%_\*?`, "\x00\x1b[31m\x7f",
	"no UTF-8 \xff\xfe", "\u202e\u2028\ufeff", "data: x\n\nevent: state", strings.Repeat("λ", 3000), "operator>(a, b) > c",
}

// hostileRun stores records that have such names everywhere.
func hostileRun(t *testing.T, store provdb.Store) (names []string) {
	t.Helper()
	run := provdb.Run{Name: "hostile", State: provdb.Running, Started: time.Unix(1, 0)}
	id, err := store.CreateRun(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	batch := &provdb.Batch{}
	for i, name := range hostile {
		name = provenance.Text(name) // as stored
		names = append(names, name)
		r, typical := anomaly(1, trace.Rank(i), trace.Ticks(1000*i), 500, 400), anomaly(2, trace.Rank(i), trace.Ticks(1000*i+600), 10, 0)
		for _, r := range []*provenance.Record{r, typical} {
			r.Func, r.FID, r.Hostname, r.Why = name, i, name, name
			caller := provenance.StackEntry{EventID: "0:0:0", Func: name + " caller", FID: 100 + i, Entry: beginOf}
			r.CallStack = append(r.CallStack, caller)
			r.CallStack[0].Func, r.CallStack[0].FID = name, i
			r.CounterEvents = []provenance.CounterEntry{{Name: name, Value: 7, RID: r.RID, TID: r.TID, Timestamp: r.Entry}}
			r.NodeState = &provenance.NodeState{Timestamp: r.Entry, Data: []provenance.StateEntry{{Field: name, Value: 3}}}
			r.EventWindow.Execs = []provenance.WindowEntry{{
				StackEntry: provenance.StackEntry{EventID: r.EventID, Func: name, FID: i, Entry: r.Entry, Exit: r.Exit}, ParentID: "0:0:0",
			}}
		}
		typical.Status, typical.Kind, typical.Why = "", "", ""
		batch.Anomalies, batch.Typical = append(batch.Anomalies, r), append(batch.Typical, typical)
		facts := []provenance.Metadata{
			{RID: r.RID, Descr: name, Value: name},
			{RID: r.RID, Descr: "Hostname", Value: name},
			{RID: r.RID, Descr: "Executable", Value: "/bin/" + name},
		}
		batch.Metadata = append(batch.Metadata, provdb.StepMetadata{Rank: r.RID, Facts: facts})
		batch.Functions = append(batch.Functions, provenance.FuncStats{FID: i, Name: name})
		batch.Counters = append(batch.Counters, provenance.CounterStats{Name: name})
		batch.Models = append(batch.Models, provenance.ADModel{FID: i, Name: name, Model: r.AlgoParams})
	}
	if err := store.Write(t.Context(), id, batch); err != nil {
		t.Fatal(err)
	}
	return names
}

// texts returns all strings of an answer with their paths.
func texts(at string, v any, f func(at, text string)) {
	switch v := v.(type) {
	case string:
		f(at, v)
	case []any:
		for _, part := range v {
			texts(at, part, f)
		}
	case object:
		for key, part := range v {
			texts(at+"."+key, part, f)
		}
	}
}

func TestHostileNamesAreUnchanged(t *testing.T) {
	store := emptyStore(t)
	names := hostileRun(t, store)
	labels := new(memory)
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) {
		c.Labels, p.reader, c.Run = labels, store, "hostile"
		p.status.Run.Name = "hostile"
		p.status.Nodes[0].Name, p.status.Nodes[0].Host, p.status.Nodes[0].Behind = hostile[0], hostile[1], 99
		p.status.Ranks[0].Host = hostile[1]
	})
	at += "/api/v1/runs/hostile/"
	findings := want[api.FindingList](t, do(t, at+"findings", ""), 200).Rows
	paths := []string{
		"overview?findings=100", "heatmap", "findings", "functions?limit=5000", "flame", "flame?metric=lost",
		"search?q=caller&limit=200", "labels/ignore",
	}
	for _, i := range findings {
		note := strings.ToValidUTF8(i.Function, "?")
		body, err := json.Marshal(map[string]string{"state": "muted", "note": note[:min(len(note), 1000)]})
		if err != nil {
			t.Fatal(err)
		}
		want[object](t, do(t, at+"labels/"+i.Key, string(body), "Method: PUT"), 200)
		paths = append(paths, "findings/"+i.Key+"/plot", "events/"+i.Example+"/evidence", "functions/"+i.FunctionID,
			"search?q="+url.QueryEscape(i.Function[:min(len(i.Function), 100)]))
	}
	seen := make(map[string]bool)
	for _, path := range paths {
		a := do(t, at+path, "")
		if path == "labels/ignore" {
			continue // TestLabelsOfFindings reads one
		}
		texts("", want[any](t, a, 200), func(where, text string) {
			seen[text] = true
			if strings.HasSuffix(where, "sentence") && (strings.ContainsAny(text, "\n\r\t\x00\x1b") || len(text) > 1000) {
				t.Errorf("%s%s is %q", path, where, text)
			}
		})
		if a.header.Get("Content-Type") != "application/json" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, a.header)
		}
	}
	for _, name := range names {
		if !seen[name] || !seen[name+" caller"] {
			t.Errorf("%.60q is nowhere unchanged", name)
		}
	}
	if len(findings) != len(names) || len(labels.all) != len(names) {
		t.Errorf("%d findings, %d labels", len(findings), len(labels.all))
	}
}

// Names cannot inject events into a stream.
func TestHostileNamesDoNotBreakAStream(t *testing.T) {
	store := emptyStore(t)
	hostileRun(t, store)
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) { p.reader, c.Run = store, "hostile" })
	s := openStream(t, at+"/api/v1/runs/hostile/stream")
	for {
		e := s.any(t)
		if e.name != "tick" && e.name != "overview" || !json.Valid([]byte(e.data)) {
			t.Fatalf("%+v", e)
		}
		if e.name == "overview" {
			return
		}
	}
}
