package dashboard_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// checkLanes checks that the calls of lanes are in order and nest.
func checkLanes(t *testing.T, name string, lanes []api.Lane) {
	t.Helper()
	for _, lane := range lanes {
		var stack []api.LaneCall
		for i, c := range lane.Calls {
			if i > 0 && c.Enter < lane.Calls[i-1].Enter || c.Exit < c.Enter {
				t.Errorf("%s: %+v is not in order", name, c)
			}
			for len(stack) > 0 && stack[len(stack)-1].Depth >= c.Depth {
				if last := stack[len(stack)-1]; last.Exit > c.Enter {
					t.Errorf("%s: %+v overlaps %+v", name, c, last)
				}
				stack = stack[:len(stack)-1]
			}
			if len(stack) > 0 && stack[len(stack)-1].Exit < c.Exit {
				t.Errorf("%s: %+v is longer than its caller %+v", name, c, stack[len(stack)-1])
			}
			stack = append(stack, c)
		}
	}
}

// checkEvidence compares the evidence of an anomaly with the lists.
func checkEvidence(t *testing.T, at string, event object, findings []api.Finding) api.Evidence {
	t.Helper()
	id := event["event_id"].(string)
	e := want[api.Evidence](t, do(t, at+"/events/"+id+"/evidence", ""), 200)
	if !e.Anomaly || e.Event != id || e.At != event["at_s"] || float64(e.Lost) != event["lost_us"] || e.Why == "" ||
		e.Path[len(e.Path)-1] != e.Function || e.FunctionID == "" {
		t.Fatalf("%s: %+v", id, e)
	}
	if e.Model == nil || e.Model.Algorithm != "tail" || len(e.Model.Edges) != len(e.Model.Counts)+1 || e.Model.Threshold == nil ||
		len(e.Model.Normal) == 0 {
		t.Errorf("%s: model %+v", id, e.Model)
	}
	if finding := findings[e.Finding-1]; finding.Key != e.FindingKey || finding.Calls != e.Same || finding.Function != e.Function {
		t.Errorf("%s is of %+v", id, finding)
	}
	self := 0
	for _, c := range e.Lanes[0].Calls {
		if c.Self {
			self++
		}
	}
	if checkLanes(t, id, e.Lanes); self != 1 {
		t.Errorf("%s is %d times in its lane", id, self)
	}
	if tw := e.Twin; tw == nil || tw.Exclusive >= e.Exclusive || !tw.SamePath {
		t.Errorf("%s: twin %+v", id, tw)
	} else {
		checkLanes(t, tw.Event, tw.Lanes)
	}
	return e
}

func TestEvidenceNamesCulpritsAndVictims(t *testing.T) {
	for _, run := range []string{"burst", "burst-live"} {
		at := scene(t, nil) + run
		findings := want[api.FindingList](t, do(t, at+"/findings", ""), 200).Rows
		byID := make(map[string]object)
		for _, event := range want[page](t, do(t, at+"/events?limit=5000&order=time", ""), 200).Rows {
			byID[event["event_id"].(string)] = event
		}
		waiting := make(map[string]map[string]bool) // victims by culprit
		for id, event := range byID {
			if event["kind"] != "comm-wait" {
				continue
			}
			e := checkEvidence(t, at, event, findings)
			c := e.Roles.Culprit
			if e.Roles.Role != "victim" || c == nil || !strings.HasPrefix(e.Roles.Sentence,
				fmt.Sprintf("It waited because of %s on rank %d (node0", c.Function, c.Rank)) {
				t.Fatalf("%s: %+v", id, e.Roles)
			}
			if waiting[c.Event] == nil {
				waiting[c.Event] = make(map[string]bool)
			}
			waiting[c.Event][id] = true
		}
		for culprit, victims := range waiting {
			e := checkEvidence(t, at, byID[culprit], findings)
			if r := e.Roles; r.Role != "culprit" || int(r.Waits) != len(victims) ||
				len(r.Victims) != min(int(r.Waits), 20) || r.WaitLost == 0 {
				t.Errorf("%s: %s has %d victims, the evidence has %+v", run, culprit, len(victims), r)
			}
			for i, v := range e.Roles.Victims {
				if !victims[v.Event] || i > 0 && v.Lost > e.Roles.Victims[i-1].Lost {
					t.Errorf("%s: %+v of %s", run, v, culprit)
				}
			}
			if e.Next == "" {
				continue
			}
			if next := checkEvidence(t, at, byID[e.Next], findings); next.Previous != culprit || next.Finding != e.Finding || next.At < e.At {
				t.Errorf("after %s is %s, before which is %s", culprit, e.Next, next.Previous)
			}
		}
		if len(waiting) == 0 {
			t.Errorf("%s: no execution waited", run)
		}
	}
}

func TestEvidenceSentenceStatesRarity(t *testing.T) {
	store := emptyStore(t)
	var all []*provenance.Record
	models := []string{
		`{"histogram":{"Histogram Bin Counts":[40000,1207,5],"Histogram Bin Edges":[300,400,500,5000]},"internal_global_threshold":5,"normal":[[280,499]]}`,
		`{"histogram":{"Histogram Bin Counts":[500,0,400,99,1],"Histogram Bin Edges":[100,101,200,300,400,5000]},"internal_global_threshold":5,"normal":[[90,110],[200,380]]}`,
		`{"count":900,"mean":400,"stddev":50,"minimum":380,"maximum":420,"skewness":0,"kurtosis":0}`,
		`null`,
		`{"histogram":{"Histogram Bin Counts":[998,1,1],"Histogram Bin Edges":[300,400,4000,4800]},"internal_global_threshold":9}`,
	}
	for i, model := range models {
		r := anomaly(i, trace.Rank(i), 1000, 4700, 4300)
		r.AlgoParams, r.RuntimeExclusive, r.Func, r.FID = json.RawMessage(model), 4700, "MPI_Allreduce()", i
		all = append(all, r)
	}
	all[1].RuntimeExclusive = 50
	someRun(t, store, "rare", all)
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
	for i, want1 := range []string{
		"MPI_Allreduce 4.70 ms on rank 0 (node0), typical 300–499 us; longer than 99.987 % of 41,212 calls",
		"MPI_Allreduce 50 us own time (4.70 ms with callees) on rank 1 (node0), typical 100 us or 200–380 us; shorter than 100 % of 1,000 calls",
		"MPI_Allreduce 4.70 ms on rank 2 (node1), typical 380–420 us; 86.0 standard deviations from the mean of 900 calls",
		"MPI_Allreduce 4.70 ms on rank 3 (node1)",
		"MPI_Allreduce 4.70 ms on rank 4 (node2), typical 301–399 us; longer than 99.9 % of 1,000 calls",
	} {
		e := want[api.Evidence](t, do(t, at+"/api/v1/runs/rare/events/"+all[i].EventID+"/evidence", ""), 200)
		if e.Sentence != want1 {
			t.Errorf("%s:\n got %s\nwant %s", models[i], e.Sentence, want1)
		}
	}
}

// A kernel has the thread that launched it as a second lane, and an arrow from there.
func TestKernelIsShownWithItsLaunch(t *testing.T) {
	store := emptyStore(t)
	r := anomaly(7, 0, 50_000, 900, 800)
	r.IsGPUEvent, r.GPULocation = true, &provenance.GPULocation{Context: 1, Device: 0, Stream: 20, Thread: r.TID}
	call := func(id, name string, entry, exit trace.Ticks) provenance.StackEntry {
		e := provenance.StackEntry{EventID: id, Func: name, FID: len(name), Entry: beginOf + entry}
		if exit > 0 {
			e.Exit = beginOf + exit
		}
		return e
	}
	r.GPUParent = provenance.GPUParent{EventID: "0:0:3", TID: r.TID + 1, CallStack: []provenance.StackEntry{
		call("0:0:3", "cudaLaunchKernel", 49_900, 49_950), call("0:0:2", "step", 49_000, 51_000), call("0:0:1", "main", 10, 0),
	}}
	r.EventWindow.Comms = []provenance.CommEntry{
		{Type: "SEND", Source: 0, Target: 3, Bytes: new(uint64(512)), Tag: 9, Timestamp: r.Entry + 10},
		{Type: "RECV", Source: 4, Target: 0, Bytes: new(uint64(0)), Timestamp: r.Entry + 20},
		{Type: "RECV", Source: 5, Target: 0, Timestamp: r.Entry + 30}, // its size is unknown
	}
	someRun(t, store, "gpu", []*provenance.Record{r})
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
	e := want[api.Evidence](t, do(t, at+"/api/v1/runs/gpu/events/"+r.EventID+"/evidence", ""), 200)
	checkLanes(t, r.EventID, e.Lanes)
	if len(e.Lanes) != 2 || e.Lanes[0].Name != "rank 0, GPU, device 0, context 1, stream 20" || e.Lanes[0].Calls[0].Group != "gpu" {
		t.Fatalf("%+v", e.Lanes)
	}
	want1 := []api.LaneCall{
		{Event: "0:0:1", Function: "main", Enter: 10 - 50_000, Exit: 1000, Open: true, Group: "user"},
		{Event: "0:0:2", Function: "step", Depth: 1, Enter: -1000, Exit: 1000, Group: "user"},
		{Event: "0:0:3", Function: "cudaLaunchKernel", Depth: 2, Enter: -100, Exit: -50, Group: "gpu"},
	}
	if !reflect.DeepEqual(e.Lanes[1].Calls, want1) {
		t.Errorf("got  %+v\nwant %+v", e.Lanes[1].Calls, want1)
	}
	arrows := []api.Arrow{
		{Kind: "launch", FromLane: 1, From: -100},
		{Kind: "send", ToLane: -1, From: 10, To: 10, Partner: 3, Bytes: new(uint64(512)), Tag: 9},
		{Kind: "receive", FromLane: -1, From: 20, To: 20, Partner: 4, Bytes: new(uint64(0))},
		{Kind: "receive", FromLane: -1, From: 30, To: 30, Partner: 5},
	}
	if !reflect.DeepEqual(e.Arrows, arrows) {
		t.Errorf("got  %+v\nwant %+v", e.Arrows, arrows)
	}
	flame := want[api.Flame](t, do(t, at+"/api/v1/runs/gpu/flame?metric=lost", ""), 200)
	if c := flame.Root.Children; len(c) != 1 || c[0].Function != r.Func || c[0].Group != "gpu" || c[0].Self != 800 {
		t.Errorf("%+v", c)
	}
	if g := e.GPU; g == nil || g.Stream != 20 || g.Parent != "0:0:3" ||
		!reflect.DeepEqual(g.Stack, []string{"main", "step", "cudaLaunchKernel"}) {
		t.Errorf("%+v", g)
	}
}

func TestWindowIsAFile(t *testing.T) {
	at := scene(t, nil) + "burst/events/"
	id := want[page](t, do(t, strings.TrimSuffix(at, "/")+"?limit=1", ""), 200).Rows[0]["event_id"].(string)
	name := `attachment; filename=chimbuko-0-` + strings.ReplaceAll(id, ":", "-")
	for format, form := range map[string]struct{ suffix, kind string }{
		"perfetto": {".perfetto-trace", "application/octet-stream"}, "chrome": {".trace.json", "application/json"},
		"json": {".json", "application/json"},
	} {
		a := do(t, at+id+"/window?program=0&format="+format, "")
		if a.code != 200 || a.header.Get("Content-Disposition") != name+form.suffix || a.header.Get("Content-Type") != form.kind ||
			len(a.body) < 500 {
			t.Errorf("%s: %d %v, %d bytes", format, a.code, a.header, len(a.body))
		}
		if strings.HasSuffix(form.kind, "json") != json.Valid([]byte(a.body)) {
			t.Errorf("%s: wrong format", format)
		}
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(do(t, at+id, "").body), "", "  "); err != nil ||
		indented.String() != do(t, at+id+"/window?format=json", "").body {
		t.Errorf("the window as JSON is not the record: %v", err)
	}
	fails(t, do(t, at+id+"/window?format=pdf", ""), 400, `unknown format "pdf" (want chrome, json or perfetto)`)
	fails(t, do(t, at+"0:0:0/window", ""), 404, "not found")
	fails(t, do(t, at+"0:0:0/evidence?x=1", ""), 400, "unknown parameter")
}

// In a run of several programs an event needs its program.
func TestEventOfSeveralProgramsNeedsProgram(t *testing.T) {
	store := emptyStore(t)
	first, second := anomaly(1, 0, 10, 10, 5), anomaly(1, 0, 20, 10, 5)
	second.PID = 1
	someRun(t, store, "two", []*provenance.Record{first, second})
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
	path := at + "/api/v1/runs/two/events/" + first.EventID
	fails(t, do(t, path+"/evidence", ""), 400, "programs 0, 1")
	fails(t, do(t, path+"/window", ""), 400, "programs 0, 1")
	if e := want[api.Evidence](t, do(t, path+"/evidence?program=1", ""), 200); e.Program != 1 || e.Twin != nil {
		t.Errorf("%+v", e)
	}
	found := want[api.FoundList](t, do(t, at+"/api/v1/runs/two/search?q="+first.EventID, ""), 200).Rows
	if len(found) != 2 || found[1].Route != "/e/1:"+first.EventID {
		t.Errorf("%+v", found)
	}
	flame := want[api.Flame](t, do(t, at+"/api/v1/runs/two/flame?metric=lost", ""), 200)
	if c := flame.Root.Children; len(c) != 2 || c[0].Function != "program 0" || flame.Root.Total != 10 {
		t.Errorf("%+v", flame)
	}
}

// The twin has about the median time, even if another typical execution is nearer in time, and the headline has both
// times of an execution.
func TestTwinTakesAboutTheMedian(t *testing.T) {
	store := emptyStore(t)
	slow := anomaly(0, 3, 1_000_000, 30_000, 19_407)
	slow.RuntimeExclusive = 19_429
	batch := &provdb.Batch{Anomalies: []*provenance.Record{slow}}
	for i, own := range []trace.Ticks{1, 25, 400} {
		r := anomaly(i+1, 3, 1_000_000-1000*trace.Ticks(i+1), own+5, 0)
		r.RuntimeExclusive, r.Status = own, ""
		batch.Typical = append(batch.Typical, r)
	}
	id, err := store.CreateRun(t.Context(), provdb.Run{
		Name: "twins", State: provdb.Running, Started: time.Unix(1, 0), Info: fmt.Appendf(nil, `{"totals":{"begin_us":%d}}`, beginOf),
	})
	if err == nil {
		err = store.Write(t.Context(), id, batch)
	}
	if err != nil {
		t.Fatal(err)
	}
	at, _ := serve(t, func(c *dashboard.Config, p *pipeline) { c.Run, p.reader = "another", store })
	e := want[api.Evidence](t, do(t, at+"/api/v1/runs/twins/events/"+slow.EventID+"/evidence", ""), 200)
	if e.Twin == nil || e.Twin.Event != batch.Typical[1].EventID {
		t.Errorf("twin %+v, want %s", e.Twin, batch.Typical[1].EventID)
	}
	if !strings.Contains(e.Sentence, "19.4 ms own time (30.0 ms with callees)") {
		t.Errorf("headline %q", e.Sentence)
	}
}
