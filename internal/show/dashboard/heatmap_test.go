package dashboard_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

// beginOf is the start of the runs of these tests.
const beginOf = trace.Ticks(1_700_000_000_000_000)

// someRun stores long and short anomalies from the start of the run, and returns that time.
func someRun(t testing.TB, store provdb.Store, name string, anomalies []*provenance.Record) {
	t.Helper()
	run := provdb.Run{
		Name: name, State: provdb.Running, Started: time.Unix(1, 0),
		Info: fmt.Appendf(nil, `{"totals":{"begin_us":%d}}`, beginOf),
	}
	id, err := store.CreateRun(t.Context(), run)
	if err == nil {
		err = store.Write(t.Context(), id, &provdb.Batch{Anomalies: anomalies})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// anomaly returns an anomaly of a rank at a time.
func anomaly(i int, rank trace.Rank, entry, length, lost trace.Ticks) *provenance.Record {
	r := storetest.Records(1, 1)[0]
	r.RID, r.EventID, r.Status = rank, fmt.Sprintf("%d:0:%d", rank, i), provenance.Confirmed
	r.Entry, r.Exit, r.RuntimeTotal, r.LostTime = beginOf+entry, beginOf+entry+length, length, lost
	r.Hostname = fmt.Sprintf("node%d", rank/2)
	r.CallStack, r.CounterEvents, r.EventWindow, r.NodeState = r.CallStack[:1], nil, provenance.EventWindow{}, nil
	r.CallStack[0].EventID, r.CallStack[0].Entry, r.CallStack[0].Exit = r.EventID, r.Entry, r.Exit
	return r
}

// spread returns the expected heatmap, computed from every microsecond.
func spread(all []*provenance.Record, rank trace.Rank, from, width trace.Ticks, columns int) (lost []float64, n []int64) {
	lost, n = make([]float64, columns), make([]int64, columns)
	for _, r := range all {
		if r.RID != rank || r.Status == provenance.Withdrawn {
			continue
		}
		last := max(r.Exit, r.Entry+1)
		for us := r.Entry; us < last; us++ {
			if at := us - beginOf - from; at >= 0 && int(at/width) < columns {
				lost[at/width] += float64(r.LostTime) / float64(last-r.Entry)
				if us == r.Entry {
					n[at/width]++
				}
			}
		}
	}
	return lost, n
}

func TestHeatmapOfOwnTimeExcludesWaits(t *testing.T) {
	at, store := scene(t, nil)+"burst/", openScenes(t)
	total := func(metric string) (lost float64) {
		for _, r := range want[api.Heatmap](t, do(t, at+"heatmap?metric="+metric, ""), 200).Rows {
			lost += r.Lost
		}
		return lost
	}
	const ofWaits = `SELECT sum(lost_time)::BIGINT FROM anomalies a JOIN runs r ON r.run = a.run
		WHERE r.name = $1 AND kind = 'comm-wait' AND status IS DISTINCT FROM 'withdrawn'`
	waits := float64(count(t, store, ofWaits, "burst"))
	if all, own := total("lost"), total("own"); waits == 0 || own == 0 || own != all-waits {
		t.Errorf("%v us in all, %v of waits, %v without", all, waits, own)
	}
}

func TestLostTimeIsSpreadOverItsColumns(t *testing.T) {
	store := emptyStore(t)
	rng := rand.New(rand.NewPCG(1, 2))
	var all []*provenance.Record
	for i := range 120 {
		length := trace.Ticks(rng.IntN(1 << rng.IntN(12)))
		r := anomaly(i, trace.Rank(rng.IntN(4)), trace.Ticks(rng.IntN(5000)), length, length*trace.Ticks(rng.IntN(3)))
		if i%10 == 9 {
			r.Status = provenance.Withdrawn
		}
		all = append(all, r)
	}
	someRun(t, store, "spread", all)
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
	f := func(query string, from trace.Ticks, columns int) {
		t.Helper()
		h := want[api.Heatmap](t, do(t, at+"/api/v1/runs/spread/heatmap?"+query, ""), 200)
		width := trace.Ticks((h.To-h.From)*1e6/float64(columns) + 0.5)
		if len(h.Rows) != 4 || h.Columns != columns || trace.Ticks(h.From*1e6+0.5) != from {
			t.Fatalf("%s: %d rows, %d columns from %v", query, len(h.Rows), h.Columns, h.From)
		}
		cells := make(map[[2]int]float64)
		for _, c := range h.Cells {
			if cells[[2]int{c.Row, c.Column}] = c.Value; c.Value <= 0 || c.Value > h.Max {
				t.Errorf("%s: %+v", query, c)
			}
		}
		for row := range h.Rows {
			lost, n := spread(all, trace.Rank(h.Rows[row].FirstRank), from, width, columns)
			sum, anomalies := 0.0, int64(0)
			for c := range columns {
				sum, anomalies = sum+lost[c], anomalies+n[c]
				got, wanted := cells[[2]int{row, c}], lost[c]
				if h.Metric == "anomalies" {
					wanted = float64(n[c])
				}
				// Each anomaly may be rounded by a microsecond in each column.
				if d := got - wanted; d > 120 || d < -120 || h.Metric == "anomalies" && d != 0 {
					t.Errorf("%s: row %d column %d is %v, want %v", query, row, c, got, wanted)
				}
			}
			if h.Rows[row].Anomalies != anomalies || float64(h.Rows[row].Lost) > sum+120 || float64(h.Rows[row].Lost) < sum-120 {
				t.Errorf("%s: row %v lost %v by %v, want %v by %v", query, row, h.Rows[row].Lost, h.Rows[row].Anomalies, sum, anomalies)
			}
		}
	}
	f("columns=7", 0, 7)
	f("columns=1", 0, 1)
	f("columns=2000", 0, 2000)
	f("columns=13&metric=anomalies", 0, 13)
	f("columns=9&from=0.001&to=0.0025", 1000, 9)
	f("columns=50&from=0.002&to=0.0021", 2000, 50)
	f("columns=3&from=2ms&to=9s&metric=anomalies", 2000, 3)
	total := 0.0
	for _, r := range want[api.Heatmap](t, do(t, at+"/api/v1/runs/spread/heatmap?columns=11", ""), 200).Rows {
		total += r.Lost
	}
	if lost := float64(count(t, store, countLost, "spread")); total != lost {
		t.Errorf("all rows lost %v, want exactly %v", total, lost)
	}
}

func TestHeatmapGroupsNeighboringRanks(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Run = "another" }) // so that only the store has ranks
	f := func(query string, rows int, first api.HeatRow) {
		t.Helper()
		h := want[api.Heatmap](t, do(t, at+monday+"/heatmap?"+query, ""), 200)
		ranks := int64(0)
		for i, r := range h.Rows {
			ranks += r.Ranks
			if i > 0 && r.FirstRank != h.Rows[i-1].LastRank+1 {
				t.Errorf("%s: %+v after %+v", query, r, h.Rows[i-1])
			}
		}
		h.Rows[0].Lost, h.Rows[0].Anomalies = 0, 0
		if len(h.Rows) != rows || !reflect.DeepEqual(h.Rows[0], first) {
			t.Errorf("%s: %d rows, the first is %+v; want %d, %+v", query, len(h.Rows), h.Rows[0], rows, first)
		}
		for _, c := range h.Cells {
			if c.Row < 0 || c.Row >= rows || c.Column < 0 || c.Column >= h.Columns {
				t.Errorf("%s: %+v", query, c)
			}
		}
	}
	// There are 1000 ranks, 8 on each host.
	f("rows=300", 250, api.HeatRow{FirstRank: 0, LastRank: 3, Ranks: 4, Host: "node0000"})
	f("rows=125", 125, api.HeatRow{FirstRank: 0, LastRank: 7, Ranks: 8, Host: "node0000"})
	f("", 63, api.HeatRow{FirstRank: 0, LastRank: 15, Ranks: 16, Host: "node0000"})
	f("rows=1&columns=2000", 1, api.HeatRow{FirstRank: 0, LastRank: 999, Ranks: 1000, Host: "node0000"})
	f("host=node012?", 40, api.HeatRow{FirstRank: 960, LastRank: 960, Ranks: 1, Host: "node0120"})
	if h := want[api.Heatmap](t, do(t, at+monday+"/heatmap?program=7", ""), 200); len(h.Rows) != 0 || len(h.Cells) != 0 {
		t.Errorf("an unknown program: %+v", h)
	}
	for query, part := range map[string]string{
		"rows=301": "from 1 to 300", "columns=2001": "from 1 to 2000", "metric=color": "want anomalies, lost", "from=3&to=3": "must be after from",
		"from=NaN": "out of range", "to=1e300": "out of range",
	} {
		fails(t, do(t, at+monday+"/heatmap?"+query, ""), 400, part)
	}
}

// Ranks of the pipeline are shown before their first record, and those of silent analyzers are
// marked.
func TestHeatmapShowsRanksWithoutAnomalies(t *testing.T) {
	store := emptyStore(t)
	someRun(t, store, "monday", []*provenance.Record{anomaly(1, 5, 10, 10, 5)})
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) {
		p.reader = store
		p.status.Nodes = append(p.status.Nodes, api.Node{Name: "quiet", State: api.NodeSilent})
		p.status.Ranks = []api.Rank{
			{Rank: 5, Host: "a"},
			{Rank: 3, Host: "b", Node: "quiet"},
			{Program: 1, Rank: 0, Host: "a"},
			{Rank: 1, Host: "node9"},
		}
	})
	h := want[api.Heatmap](t, do(t, at+monday+"/heatmap", ""), 200)
	want1 := []api.HeatRow{
		{FirstRank: 3, LastRank: 3, Ranks: 1, Host: "b", Silent: true},
		{FirstRank: 5, LastRank: 5, Ranks: 1, Host: "node2", Lost: 5, Anomalies: 1},
		{FirstRank: 1, LastRank: 1, Ranks: 1, Host: "node9"},
		{Program: 1, Ranks: 1, Host: "a"},
	}
	if !reflect.DeepEqual(h.Rows, want1) {
		t.Errorf("got  %+v\nwant %+v", h.Rows, want1)
	}
}

// A long call colors many cells. Each of them leads to the call, its finding and its explanation.
func TestEveryCellLeadsToItsCallsAndFindings(t *testing.T) {
	store := emptyStore(t)
	var all []*provenance.Record
	for i := range 6 {
		all = append(all, anomaly(i, trace.Rank(i), trace.Ticks(1000+100*i), 500_000, 490_000))
	}
	all = append(all, anomaly(6, 0, 2_000_000, 1000, 900))
	someRun(t, store, "long", all)
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) { c.Run, p.reader = "another", store })
	base := at + "/api/v1/runs/long/"
	h := want[api.Heatmap](t, do(t, base+"heatmap?columns=40", ""), 200)
	findings := want[api.FindingList](t, do(t, base+"findings", ""), 200).Rows
	if len(h.Cells) < 50 || len(findings) == 0 {
		t.Fatalf("%d cells, %d findings", len(h.Cells), len(findings))
	}
	width := (h.To - h.From) / float64(h.Columns)
	for _, c := range h.Cells {
		from := h.From + float64(c.Column)*width
		rank, until := h.Rows[c.Row].FirstRank, from+width
		where := fmt.Sprintf("rank=%d&%%s=%f&%%s=%f", rank, from, until)
		if l := want[api.List](t, do(t, base+"events?"+fmt.Sprintf(where, "since", "until"), ""), 200); len(l.Rows) != 1 {
			t.Errorf("rank %d from %.3f s: %d calls, want 1", rank, from, len(l.Rows))
		}
		if e := want[api.Explained](t, do(t, base+"explain?"+fmt.Sprintf(where, "from", "to"), ""), 200); e.Selected != 1 {
			t.Errorf("rank %d from %.3f s: %d calls explained, want 1", rank, from, e.Selected)
		}
		if !slices.ContainsFunc(findings, func(x api.Finding) bool {
			part := x.OverTo / float64(len(x.OverTime))
			first, last := int(from/part), min(len(x.OverTime)-1, int(until/part))
			return slices.Contains(x.Ranks, rank) && slices.Max(x.OverTime[first:last+1]) > 0
		}) {
			t.Errorf("rank %d from %.3f s: no finding", rank, from)
		}
	}
}

// Ranks 2 and 3 have no trace. A run of few of its ranks lacks none.
func TestMissingRanksAreShown(t *testing.T) {
	store := emptyStore(t)
	create := func(name string, ranks ...trace.Rank) {
		var all []*provenance.Record
		for i, r := range ranks {
			all = append(all, anomaly(i, r, trace.Ticks(1000*i), 500, 400))
		}
		someRun(t, store, name, all)
		a, err := query.New(t.Context(), store, name)
		if err != nil {
			t.Fatal(err)
		}
		a.Run.State, a.Run.Finished = provdb.Finished, time.Unix(2, 0)
		if err := store.UpdateRun(t.Context(), a.Run); err != nil {
			t.Fatal(err)
		}
	}
	create("gaps", 0, 1, 4, 5)
	create("few", 3, 900)
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) { c.Run, p.reader = "another", store })
	o := want[api.Overview](t, do(t, at+"/api/v1/runs/gaps/overview", ""), 200)
	notice := slices.IndexFunc(o.Notices, func(n api.Notice) bool {
		return n.Topic == "missing-ranks" && strings.Contains(n.Sentence, "Ranks 2, 3 are missing")
	})
	if !o.Incomplete || notice < 0 || o.Figures.RanksExpected == nil || *o.Figures.RanksExpected != 6 {
		t.Errorf("incomplete: %v, %+v, %v ranks expected", o.Incomplete, o.Notices, o.Figures.RanksExpected)
	}
	silent := make(map[int64]bool)
	for _, r := range want[api.Heatmap](t, do(t, at+"/api/v1/runs/gaps/heatmap", ""), 200).Rows {
		silent[r.FirstRank] = r.Silent
	}
	if want := map[int64]bool{0: false, 1: false, 2: true, 3: true, 4: false, 5: false}; !maps.Equal(silent, want) {
		t.Errorf("silent rows: %v, want %v", silent, want)
	}
	if o := want[api.Overview](t, do(t, at+"/api/v1/runs/few/overview", ""), 200); o.Incomplete || o.Figures.RanksExpected != nil {
		t.Errorf("a run of few ranks is incomplete: %+v", o.Notices)
	}
}

// A rank of which the store has no data, but which was analyzed, is a row also when the run has ended.
func TestHeatmapKeepsAnalyzedRanksAfterTheEnd(t *testing.T) {
	store := emptyStore(t)
	someRun(t, store, "ended", []*provenance.Record{anomaly(0, 0, 1000, 500, 400), anomaly(1, 2, 1000, 500, 400)})
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) {
		c.Run, p.reader = "ended", store
		p.status = api.Status{Run: api.RunStatus{Name: "ended", State: api.Finished}}
		for rank := range int64(4) {
			p.status.Ranks = append(p.status.Ranks, api.Rank{Rank: rank, Host: "node0", Ended: true})
		}
	})
	h := want[api.Heatmap](t, do(t, at+"/api/v1/runs/ended/heatmap", ""), 200)
	if len(h.Rows) != 4 || slices.ContainsFunc(h.Rows, func(r api.HeatRow) bool { return r.Silent }) {
		t.Errorf("%+v", h.Rows)
	}
}
