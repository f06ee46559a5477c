package dashboard_test

import (
	"errors"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
)

// Keys are the same before and after the end of a run, although function numbers may differ.
func TestFindingsKeepTheirKeys(t *testing.T) {
	at := scene(t, nil)
	ended := want[api.FindingList](t, do(t, at+"burst/findings", ""), 200)
	live := want[api.FindingList](t, do(t, at+"burst-live/findings", ""), 200)
	keys := make(map[string]string)
	for _, i := range ended.Rows {
		if keys[i.Key] != "" {
			t.Errorf("two findings have the key %s", i.Key)
		}
		keys[i.Key] = i.Function + i.Path + i.Kind
	}
	for _, i := range live.Rows {
		if keys[i.Key] != i.Function+i.Path+i.Kind {
			t.Errorf("%s is %q, and %q in the run that ended", i.Key, i.Function+i.Path+i.Kind, keys[i.Key])
		}
	}
	if len(keys) != len(live.Rows) || len(keys) < 3 || ended.Writable {
		t.Errorf("%d and %d findings", len(keys), len(live.Rows))
	}
}

func TestPlotOfFindingShowsNormalTimes(t *testing.T) {
	at := scene(t, nil)
	for _, run := range []string{"burst", "burst-live"} {
		for _, i := range want[api.FindingList](t, do(t, at+run+"/findings", ""), 200).Rows {
			p := want[api.Plot](t, do(t, at+run+"/findings/"+i.Key+"/plot", ""), 200)
			anomalies, typical, lost, last := int64(0), 0, 0.0, 0.0
			for _, x := range p.Points {
				if x.At < last {
					t.Errorf("%s: points are not in order", i.Function)
				}
				if last = x.At; x.Anomaly {
					anomalies, lost = anomalies+1, lost+x.Lost
				} else {
					typical++
				}
			}
			if anomalies != i.Calls || p.Total != i.Calls || lost != i.LostOwn || typical == 0 || p.TypicalUS == nil || p.Threshold == nil ||
				*p.Threshold.High < *p.TypicalUS.High {
				t.Errorf("%s, %s: %v of %v anomalies lost %v of %v; %v typical, %+v, %+v", run, i.Function, anomalies, i.Calls, lost, i.Lost,
					typical, p.TypicalUS, p.Threshold)
			}
			few := want[api.Plot](t, do(t, at+run+"/findings/"+i.Key+"/plot?limit=2", ""), 200)
			worst := 0.0
			for _, x := range few.Points {
				worst = max(worst, x.Lost)
			}
			if len(few.Points) > 3 || few.Total != i.Calls || worst == 0 {
				t.Errorf("%s, %s: %+v", run, i.Function, few)
			}
		}
	}
	fails(t, do(t, at+"burst/findings/nosuch/plot", ""), 404, `no finding has the key "nosuch"`)
	fails(t, do(t, at+"burst/findings/nosuch/plot?limit=x", ""), 400, "limit")
}

func TestLabelsOfFindings(t *testing.T) {
	labels := new(memory)
	at := scene(t, func(c *dashboard.Config, _ *pipeline) { c.Labels = labels })
	finding := want[api.FindingList](t, do(t, at+"burst/findings", ""), 200).Rows[1]
	put := func(key, body string, headers ...string) answer {
		t.Helper()
		return do(t, at+"burst/labels/"+key, body, append([]string{"Method: PUT"}, headers...)...)
	}
	got := want[api.Label](t, put(finding.Key, `{"state":"muted","note":"known: \"<b>\"\nticket 7"}`), 200)
	list := want[api.FindingList](t, do(t, at+"burst/findings", ""), 200)
	if l := list.Rows[1].Label; !list.Writable || l == nil || !reflect.DeepEqual(*l, got) || l.Key != finding.Key || l.State != "muted" ||
		l.Note != "known: \"<b>\"\nticket 7" || l.At.IsZero() {
		t.Errorf("%+v, %+v", l, got)
	}
	a := do(t, at+"burst/labels/ignore", "")
	if want := "ignore = [\n  \"" + finding.Function + "\", # muted: known: \"<b>\" ticket 7\n]\n"; !strings.HasSuffix(a.body, want) ||
		a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%s does not end with %s", a.body, want)
	}
	want[api.Label](t, put(finding.Key, `{"state":"open","note":""}`), 200)
	want[api.Label](t, put("gone", `{"state":"open"}`), 200) // labels of missing findings can be removed
	if len(labels.all) != 0 {
		t.Errorf("remaining labels %v", labels.all)
	}
	fails(t, put("gone", `{"state":"muted"}`), 404, "no finding has the key")
	fails(t, put(finding.Key, `{"state":"red"}`), 400, `unknown state "red" (want open, muted or expected`)
	fails(t, put(finding.Key, `{"note":"x"}`), 400, "no state")
	fails(t, put(finding.Key, `{"state":"open","color":1}`), 400, "unknown field")
	fails(t, put(finding.Key, `{"state":"open"} {}`), 400, "more than one value")
	fails(t, put(finding.Key, `{"state":"open","note":"`+strings.Repeat("x", 70_000)+`"}`), 413, "65536 bytes")
	fails(t, put(finding.Key, `{"state":"open","note":"`+strings.Repeat("ä", 4001)+`"}`), 400, "at most 2000")
	fails(t, put(finding.Key, `{"state":"open"}`, "Content-Type: text/plain"), 415, "JSON")
	fails(t, put(finding.Key, `{"state":"open"}`, "Sec-Fetch-Site: cross-site"), 403, "another site")
	fails(t, do(t, at+"burst/labels/"+finding.Key, ""), 405, "use PUT")
	fails(t, do(t, at+"burst/labels/"+finding.Key, "{}"), 405, "use PUT")
	fails(t, do(t, at+"nosuch/labels/"+finding.Key, `{"state":"open"}`, "Method: PUT"), 404, "nosuch")
	labels.err = errors.New("the disk is full")
	fails(t, put(finding.Key, `{"state":"muted"}`), 500, "store the label: the disk is full")
	fails(t, do(t, at+"burst/findings", ""), 500, "the disk is full")
}

func TestReadOnlyRejectsLabels(t *testing.T) {
	for _, change := range []func(c *dashboard.Config){
		func(*dashboard.Config) {},
		func(c *dashboard.Config) {
			c.Labels, c.ReadOnly = &memory{all: map[string]api.Label{"x": {}}}, true
		},
	} {
		at := scene(t, func(c *dashboard.Config, _ *pipeline) { change(c) })
		list := want[api.FindingList](t, do(t, at+"burst/findings", ""), 200)
		fails(t, do(t, at+"burst/labels/"+list.Rows[0].Key, `{"state":"muted"}`, "Method: PUT"), 403, "this server cannot set labels; ")
		if list.Writable {
			t.Error("the list is writable")
		}
		if a := do(t, at+"burst/labels/ignore", ""); a.code != 200 || !strings.Contains(a.body, "ignore = [\n]") {
			t.Errorf("%d %s", a.code, a.body)
		}
	}
}

// A lasting change has no anomalies, and costs time like other findings. It concerns all ranks and lasts.
func TestLastingChangeCountsAsLostTime(t *testing.T) {
	store := emptyStore(t)
	if err := analyze(t.Context(), store, "level-shift", "level-shift"); err != nil {
		t.Fatal(err)
	}
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) { c.Run, p.reader = "another", store })
	o := want[api.Overview](t, do(t, at+"/api/v1/runs/level-shift/overview", ""), 200)
	if len(o.Findings) != 1 {
		t.Fatalf("%d findings", len(o.Findings))
	}
	x := o.Findings[0]
	if x.Kind != "change" || x.To != nil || x.RankCount != 0 || x.OverTo != o.Length {
		t.Errorf("%+v", x)
	}
	if o.Figures.Lost != x.Lost || o.Figures.LostPercent == nil || math.Abs(*o.Figures.LostPercent-100*x.Share) > 0.1 {
		t.Errorf("%v us lost, want %v", o.Figures.Lost, x.Lost)
	}
	if cost := "1 finding costs " + text.Percent(100*x.Share) + " of core time"; !strings.Contains(o.Verdict.Sentence, cost) {
		t.Errorf("%q does not contain %q", o.Verdict.Sentence, cost)
	}
}

// A change that does not last has an end, also in the verdict.
func TestTemporaryChangeOfAllRanks(t *testing.T) {
	store := emptyStore(t)
	if err := analyze(t.Context(), store, "slowdown", "slowdown"); err != nil {
		t.Fatal(err)
	}
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) { c.Run, p.reader = "another", store })
	o := want[api.Overview](t, do(t, at+"/api/v1/runs/slowdown/overview", ""), 200)
	if len(o.Findings) != 1 {
		t.Fatalf("%d findings", len(o.Findings))
	}
	if x := o.Findings[0]; x.Kind != "change" || x.To == nil || *x.To < 3.1 || *x.To > 3.3 || x.From < 1.9 || x.From > 2.1 || x.RankCount != 0 {
		t.Errorf("%+v", x)
	}
	if s := o.Verdict.Sentence; !regexp.MustCompile(`Worst: advect_tracer from (1\.9|2\.0)\d s to 3\.[12]\d s`).MatchString(s) {
		t.Errorf("%q", s)
	}
}

// The verdict names causes, although others lost more time in waits.
func TestVerdictNamesCulpritsBeforeVictims(t *testing.T) {
	store := emptyStore(t)
	record := func(i int, rank trace.Rank, name string, kind provenance.AnomalyKind, lost trace.Ticks) *provenance.Record {
		r := anomaly(i, rank, trace.Ticks(100_000*i), lost+10, lost)
		r.Func, r.Kind, r.RuntimeExclusive = name, kind, lost+10
		r.CallStack[0].Func = name
		return r
	}
	waits := []*provenance.Record{
		record(1, 0, "MPI_Waitall()", provenance.CommWait, 90_000), record(2, 1, "MPI_Waitall()", provenance.CommWait, 80_000),
	}
	someRun(t, store, "waits", waits)
	someRun(t, store, "both", append(waits, record(20, 2, "pack", provenance.Slow, 9000)))
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) { c.Run, p.reader = "another", store })
	for run, worst := range map[string]string{"waits": "Worst: waits in MPI_Waitall since 0.10 s, cause not known yet", "both": "Worst: pack on"} {
		o := want[api.Overview](t, do(t, at+"/api/v1/runs/"+run+"/overview", ""), 200)
		if !strings.Contains(o.Verdict.Sentence, worst) {
			t.Errorf("%s: %q, want %q", run, o.Verdict.Sentence, worst)
		}
	}
}
