package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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

const countLost = `SELECT sum(lost_time)::BIGINT FROM anomalies a JOIN runs r ON r.run = a.run WHERE r.name = $1 AND status IS DISTINCT FROM 'withdrawn'`

func TestOverviewShowsLossesAndTheirPlaces(t *testing.T) {
	at, store := scene(t, nil), openScenes(t)
	for run, want1 := range map[string]struct{ live, stored bool }{"burst": {false, true}, "burst-live": {true, false}} {
		o := want[api.Overview](t, do(t, at+run+"/overview?findings=1", ""), 200)
		lost := float64(count(t, store, countLost, run))
		f := &o.Figures
		if f.Lost != lost || math.Abs(f.CoreHoursLost*3.6e9-lost) > 1 ||
			f.Anomalies != count(t, store, `SELECT count(*) FROM anomalies a JOIN runs r ON r.run = a.run WHERE r.name = $1 AND status IS DISTINCT FROM 'withdrawn'`, run) {
			t.Errorf("%s: lost %v by %d anomalies, want %v", run, f.Lost, f.Anomalies, lost)
		}
		if percent := 100 * lost / 1e6 / o.Length / float64(f.Ranks); f.LostPercent == nil || math.Abs(*f.LostPercent-percent) > 1e-9 {
			t.Errorf("%s: %v %% lost, want %v", run, f.LostPercent, percent)
		}
		if o.Live != want1.live || f.Provisional == want1.stored || len(o.Findings) != 1 || o.Length < 6 || o.Began.IsZero() ||
			len(o.Programs) != 1 || f.Hosts < 1 || f.Victims == 0 {
			t.Errorf("%s: %+v", run, o)
		}
		worst := o.Findings[0]
		if !strings.Contains(o.Verdict.Sentence, " findings cost ") || !strings.Contains(o.Verdict.Sentence, " of core time (") ||
			o.Verdict.Finding != worst.Number ||
			!strings.Contains(o.Verdict.Sentence, ". Worst: "+strings.TrimSuffix(worst.Function, "()")) ||
			!strings.Contains(o.Verdict.Sentence, " on "+worst.Hosts[0]) || strings.Contains(o.Verdict.Sentence, "[{") {
			t.Errorf("%s: %q of %+v", run, o.Verdict.Sentence, worst)
		}
		if wantLevel := map[bool]api.Level{true: api.LevelBad, false: api.LevelWatch}[*f.LostPercent >= 1]; o.Verdict.Level != wantLevel {
			t.Errorf("%s: level %s", run, o.Verdict.Level)
		}
		if (o.Review != nil) != want1.stored || want1.stored && (o.Review.Confirmed+o.Review.Promoted != f.Anomalies ||
			topics(o)["review"] == "") {
			t.Errorf("%s: review %+v, notices %+v", run, o.Review, o.Notices)
		}
		for _, i := range o.Findings {
			if confidence := map[bool]bool{true: i.Status == "confirmed", false: i.Status == "provisional" ||
				i.Status == "warming"}[want1.stored]; !confidence || i.Cause != 0 || i.FunctionID == "" {
				t.Errorf("%s: %+v", run, i)
			}
		}
		strip := 0.0
		for _, l := range o.Strip.Series {
			if len(l.Lost) != 120 || len(l.N) != 120 {
				t.Errorf("%s: %d columns", run, len(l.Lost))
			}
			for _, v := range l.Lost {
				strip += v
			}
		}
		if strip != lost || o.Strip.To < o.Length {
			t.Errorf("%s: the strip shows %v until %v, want %v until %v", run, strip, o.Strip.To, lost, o.Length)
		}
	}
}

// topics returns the sentences of notices by topic.
func topics(o api.Overview) map[string]string {
	all := make(map[string]string)
	for _, n := range o.Notices {
		all[n.Topic] += n.Sentence
	}
	return all
}

// Waits belong to their causes, and findings without a cause add up to the total.
func TestEachAnomalyIsCountedOnce(t *testing.T) {
	at, store := scene(t, nil), openScenes(t)
	for _, run := range []string{"burst", "burst-live"} {
		list := want[api.FindingList](t, do(t, at+run+"/findings", ""), 200)
		var anomalies int64
		var all, causes, waits float64
		for _, i := range list.Rows {
			all, anomalies = all+i.LostOwn, anomalies+i.Calls
			if i.Cause == 0 {
				causes += i.Lost
			} else {
				waits++
			}
		}
		if lost := float64(count(t, store, countLost, run)); all != lost || causes != lost || waits == 0 || list.Stored != (run == "burst") ||
			list.Total != int64(len(list.Rows)) {
			t.Errorf("%s: findings lost %v, causes %v, all %v; %v findings are waits", run, all, causes, lost, waits)
		}
	}
}

func TestMutedFindingsAreCountedSeparately(t *testing.T) {
	labels := new(memory)
	at := scene(t, func(c *dashboard.Config, _ *pipeline) { c.Labels = labels }) + "burst"
	before := want[api.Overview](t, do(t, at+"/overview?findings=100", ""), 200)
	worst := before.Findings[0]
	labels.all = map[string]api.Label{
		worst.Key:              {Key: worst.Key, State: api.LabelMuted},
		before.Findings[1].Key: {State: api.LabelOpen, Note: "look here"},
	}
	after := want[api.Overview](t, do(t, at+"/overview?findings=100", ""), 200)
	f := &after.Figures
	if f.FindingsMuted != 1 || f.MutedLost != worst.Lost || f.Lost != before.Figures.Lost ||
		len(after.Findings) != len(before.Findings)-1 ||
		after.Findings[0].Label == nil || after.Findings[0].Label.Note != "look here" || after.Verdict.Finding != after.Findings[0].Number ||
		!strings.HasSuffix(after.Verdict.Sentence, "1 is muted or expected") {
		t.Errorf("%+v, %+v", after.Verdict, f)
	}
	for _, i := range before.Findings {
		labels.all[i.Key] = api.Label{State: api.LabelExpected}
	}
	after = want[api.Overview](t, do(t, at+"/overview", ""), 200)
	if after.Verdict.Level != api.LevelGood || !strings.HasPrefix(after.Verdict.Sentence,
		fmt.Sprintf("No open findings: %d are muted or expected, which cost ", len(before.Findings))) || len(after.Findings) != 0 {
		t.Errorf("%+v", after.Verdict)
	}
	labels.err = errors.New("the disk is gone")
	if o := want[api.Overview](t, do(t, at+"/overview", ""), 200); !strings.Contains(topics(o)["health"], "the disk is gone") {
		t.Errorf("%+v", o.Notices)
	}
}

func TestOverviewOfRunWithoutAnomalies(t *testing.T) {
	store := emptyStore(t)
	ctx := t.Context()
	id, err := store.CreateRun(ctx, provdb.Run{Name: "calm", State: provdb.Running, Started: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	slow := provenance.FuncStats{FID: 1, Name: "solve(int) [{solve.c} {7,0}]"}
	slow.RuntimeProfile.Exclusive.Count, slow.RuntimeProfile.Exclusive.Mean, slow.RuntimeProfile.Exclusive.Maximum = 41_200_000, 1200, 12_300
	run := provdb.Run{ID: id, Name: "calm", State: provdb.Finished, Started: time.Unix(1, 0), Finished: time.Unix(9, 0)}
	if err := errors.Join(store.Write(ctx, id, &provdb.Batch{Functions: []provenance.FuncStats{slow}}),
		store.UpdateRun(ctx, run)); err != nil {
		t.Fatal(err)
	}
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
	o := want[api.Overview](t, do(t, at+"/api/v1/runs/calm/overview", ""), 200)
	if want := "0 anomalies in 41 M calls; slowest: solve(int) 12.3 ms, on average 1.20 ms"; o.Verdict.Sentence != want ||
		o.Verdict.Level != api.LevelGood || len(o.Slowest) != 1 || len(o.Findings) != 0 {
		t.Errorf("%+v, want %q", o, want)
	}
}

func TestOverviewWithoutDataGivesInstructions(t *testing.T) {
	at, p := serve(t, func(c *dashboard.Config, p *pipeline) {
		c.Run = "new"
		p.status = api.Status{Run: api.RunStatus{Name: "new", State: api.Waiting}, Totals: api.Totals{RanksExpected: 4000}}
	})
	for _, reader := range []provdb.Reader{filled(t), nil} {
		p.set(func(p *pipeline) { p.reader = reader })
		o := want[api.Overview](t, do(t, at+"/api/v1/runs/new/overview", ""), 200)
		if o.Verdict.Level != api.LevelUnknown || !strings.HasPrefix(o.Verdict.Sentence,
			"No data yet: 0 of 4,000 ranks have been seen. Start the analyzers with chimbuko ad") ||
			o.State != api.Waiting || !o.Live || topics(o)["no-data"] == "" || (reader == nil) != (topics(o)["store"] != "") {
			t.Errorf("%+v", o)
		}
	}
	fails(t, do(t, at+"/api/v1/runs/other/overview", ""), 503, "no store")
	p.set(func(p *pipeline) { p.reader, p.err = filled(t), errors.New("timeout") })
	fails(t, do(t, at+"/api/v1/runs/new/overview", ""), 404, "nothing of run")
	fails(t, do(t, at+monday+"/overview?columns=0&findings=101", ""), 400, `columns: "0" is not a number from 1 to 2000`)
}

// obstructed is a store whose answers the test delays or fails.
type obstructed struct {
	provdb.Reader
	before func(ctx context.Context, sql string) error
}

func (o *obstructed) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	if err := o.before(ctx, sql); err != nil {
		return nil, err
	}
	return o.Reader.Query(ctx, sql, args...)
}

func TestOverviewWithoutStoreIsNotGood(t *testing.T) {
	at, p := serve(t, func(_ *dashboard.Config, p *pipeline) {
		p.reader = &obstructed{p.reader, func(context.Context, string) error { return errors.New("the disk is gone") }}
	})
	for _, state := range []api.State{api.Running, api.Finished} {
		p.set(func(p *pipeline) { p.status.Run.State = state })
		o := want[api.Overview](t, do(t, at+monday+"/overview", ""), 200)
		if o.Verdict.Level != api.LevelUnknown || !strings.HasPrefix(o.Verdict.Sentence, "The store cannot be read now") ||
			!strings.Contains(topics(o)["store"], "the disk is gone") {
			t.Errorf("%s: %+v, notices %+v", state, o.Verdict, o.Notices)
		}
	}
}

func TestStoreAnswersWhileCacheLoads(t *testing.T) {
	read := make(chan struct{})
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) {
		p.reader = &obstructed{p.reader, func(ctx context.Context, sql string) error {
			if !strings.Contains(sql, "LEFT JOIN links l") { // reads the copy
				return nil
			}
			select {
			case <-read:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
	})
	paths := []string{"/overview?columns=7", "/heatmap?columns=20&rows=5", "/findings", "/functions", "/events?order=lost&limit=9"}
	answers := func() (all []string) {
		t.Helper()
		for _, path := range paths {
			r := do(t, at+monday+path, "")
			if r.code != 200 {
				t.Fatalf("%s: %d %s", path, r.code, r.body)
			}
			all = append(all, r.body)
		}
		return all
	}
	before := answers()
	explained := make(chan int)
	go func() { explained <- do(t, at+monday+"/explain", "").code }()
	select {
	case status := <-explained:
		t.Fatalf("an explanation did not wait for the copy: %d", status)
	case <-time.After(300 * time.Millisecond): // longer than an answer takes
	}
	close(read)
	if status := <-explained; status != 200 {
		t.Errorf("the explanation ended with %d", status)
	}
	for i, after := range answers() {
		if after != before[i] {
			t.Errorf("%s: with the copy\n%.300s, without it\n%.300s", paths[i], after, before[i])
		}
	}
}

func TestNoticesNameLimitsOfData(t *testing.T) {
	at, p := serve(t, nil)
	f := func(change func(s *api.Status), level api.Level, topic, want1 string) {
		t.Helper()
		p.set(func(p *pipeline) {
			p.status = someStatus()
			p.status.Totals.RanksExpected, p.status.Nodes[0].Drops = 0, 0
			change(&p.status)
		})
		o := want[api.Overview](t, do(t, at+monday+"/overview", ""), 200)
		for i, n := range o.Notices {
			if i > 0 && n.Level == api.LevelBad && o.Notices[i-1].Level != api.LevelBad {
				t.Errorf("notices are not ordered by level: %+v", o.Notices)
			}
			if n.Topic == topic && n.Sentence == want1 && n.Level == level {
				return
			}
		}
		t.Errorf("%s %s %q is not in %+v", level, topic, want1, o.Notices)
	}
	f(func(s *api.Status) {
		s.Totals = api.Totals{Ranks: 3, RanksExpected: 5}
		s.Ranks = []api.Rank{
			{Rank: 0, Node: "a", Host: "nid001"},
			{Rank: 2, Node: "b", Host: "nid077"},
			{Rank: 4, Node: "b", Host: "nid077", Ended: true},
		}
		s.Nodes = []api.Node{{Name: "a"}, {Name: "b", State: api.NodeSilent}}
	}, api.LevelWatch, "silent-ranks", "2 of 5 ranks reporting; missing: 2, 1, 3 (host nid077). Start their analyzers again with the "+
		"same command")
	f(func(s *api.Status) { s.Totals.RanksExpected = 4 }, api.LevelWatch, "silent-ranks", "3 of 4 ranks reporting")
	f(func(s *api.Status) { s.Nodes[0].Drops = 1200 }, api.LevelWatch, "drops",
		"1,200 records found no room at 1 analyzer and will be sent when the run ends: give chimbuko ad a larger --outbox")
	f(func(s *api.Status) {
		s.Nodes[0].Tallies = []api.Tally{{Name: "x", Severity: "data loss", Count: 3, Sentence: "steps were lost"}}
	}, api.LevelWatch, "drops", "3 steps were lost")
	f(func(s *api.Status) { s.Nodes[0].Behind = 45 }, api.LevelWatch, "backlog",
		"1 analyzer is behind the traces, the worst (node-a on nid001) by 45 s: give it more processors with --workers, or start more "+
			"analyzers with fewer ranks each")
	f(func(s *api.Status) { s.Store.Lag, s.Store.PendingMessages = 34, 1234 }, api.LevelWatch, "backlog",
		"1,234 messages wait for the store, the oldest for 34 s: a larger --store-delay of chimbuko serve stores more at once, a larger "+
			"--stream-size lets more wait")
	f(func(s *api.Status) {
		s.Health = []api.Health{{Part: "store", Severity: api.SeverityError, Sentence: "the disk is full: make room"}}
	}, api.LevelBad, "health", "store: the disk is full: make room")
	f(func(s *api.Status) {
		warm := int64(28)
		s.Totals.Functions, s.Totals.FunctionsWarm = 240, &warm
	}, api.LevelUnknown, "warming", "Models have < 30 samples for 212 functions; anomalies are provisional")
}

func TestOverviewOfFailedOrDamagedRun(t *testing.T) {
	store := emptyStore(t)
	id, err := fill(t.Context(), store, "odd", 30)
	if err != nil {
		t.Fatal(err)
	}
	run := provdb.Run{ID: id, Name: "odd", Started: time.Unix(1, 0), Finished: time.Unix(9, 0)}
	f := func(state provdb.State, info, topic, part string) {
		t.Helper()
		run.State, run.Info, run.Finished = state, []byte(info), run.Finished.Add(time.Second)
		if err := store.UpdateRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
		if o := want[api.Overview](t, do(t, at+"/api/v1/runs/odd/overview", ""), 200); !strings.Contains(topics(o)[topic], part) {
			t.Errorf("%s %s: %+v", state, info, o.Notices)
		}
	}
	f(provdb.Failed, `{"error":"the disk\nis full"}`, "health", "The analysis failed; the run has the data stored before that: the disk is full")
	f(provdb.Finished, `{"broken":["a.bp: step 3 at byte 99: cut off"]}`, "store",
		"A trace is damaged and was read up to the damage: a.bp: step 3 at byte 99: cut off")
	f(provdb.Finished, `{"notes":[{"severity":"data loss","count":12,"sentence":"calls were lost"}]}`, "drops", "12 calls were lost")
	f(provdb.Finished, `[1]`, "store", "The run has no stored findings")
	f(provdb.Finished, `{}`, "review", "3 of 20 flags were withdrawn at the end; 10 anomalous calls were found only at the end")
}

// The overview of an ended run does not suggest starting analyzers.
func TestOverviewOfRunThatFailedEarlyHasReason(t *testing.T) {
	store := emptyStore(t)
	run := provdb.Run{Name: "odd", State: provdb.Running, Started: time.Unix(1, 0)}
	var err error
	if run.ID, err = store.CreateRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	for state, sentence := range map[provdb.State]string{
		provdb.Failed:   "The analysis failed and stored nothing: a.bp and b.bp both hold rank 0",
		provdb.Finished: "The run has ended without data: no call was read",
	} {
		run.State, run.Info, run.Finished = state, []byte(`{"error":"a.bp and b.bp\nboth hold rank 0"}`), time.Unix(2, 0)
		if err := store.UpdateRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
		if o := want[api.Overview](t, do(t, at+"/api/v1/runs/odd/overview", ""), 200); o.Verdict.Sentence != sentence {
			t.Errorf("%s: %+v", state, o.Verdict)
		}
	}
}

// A failing store is a notice, and the data of the pipeline are shown.
func TestFailingStoreIsANotice(t *testing.T) {
	store := emptyStore(t)
	if _, err := fill(t.Context(), store, "monday", 20); err != nil {
		t.Fatal(err)
	}
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	o := want[api.Overview](t, do(t, at+monday+"/overview", ""), 200)
	if n := o.Notices[0]; n.Topic != "store" || n.Level != api.LevelBad || !strings.Contains(n.Sentence, "closed") ||
		*o.Figures.Calls != 1900 {
		t.Errorf("%+v", o)
	}
}

func TestListsOfAnswersAreNeverNull(t *testing.T) {
	store := emptyStore(t)
	if _, err := store.CreateRun(t.Context(), provdb.Run{Name: "bare", State: provdb.Running, Started: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
	for _, path := range []string{"overview", "heatmap", "findings", "functions", "flame", "flame?metric=lost", "search?q=x"} {
		a := do(t, at+"/api/v1/runs/bare/"+path, "")
		if want[object](t, a, 200); strings.Contains(a.body, ":null") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if got := want[api.Heatmap](t, do(t, at+"/api/v1/runs/bare/heatmap", ""), 200); !reflect.DeepEqual(got.Cells, []api.HeatCell{}) {
		t.Errorf("%+v", got)
	}
}

func TestSmallLossRaisesNoAlarm(t *testing.T) {
	store := emptyStore(t)
	someRun(t, store, "small", []*provenance.Record{anomaly(1, 0, 0, 200, 100), anomaly(2, 0, 10_000_000, 200, 100)})
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
	o := want[api.Overview](t, do(t, at+"/api/v1/runs/small/overview", ""), 200)
	if o.Verdict.Level != api.LevelGood || !strings.HasPrefix(o.Verdict.Sentence,
		"Little time was lost: no finding costs more than 0.01 % of core time, and all together < 0.01 %") {
		t.Errorf("%+v", o.Verdict)
	}
}

func TestRunWithManyWithdrawnFlagsIsNotGood(t *testing.T) {
	f := func(lost trace.Ticks, level api.Level) {
		t.Helper()
		store := emptyStore(t)
		flag := anomaly(2, 0, 10_000_000, lost+100, lost)
		flag.Status = provenance.Withdrawn
		someRun(t, store, "withdrawn", []*provenance.Record{anomaly(1, 0, 0, 200, 100), flag})
		at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
		o := want[api.Overview](t, do(t, at+"/api/v1/runs/withdrawn/overview", ""), 200)
		said := strings.Contains(o.Verdict.Sentence, "were withdrawn: see findings --withdrawn")
		if o.Verdict.Level != level || said != (level != api.LevelGood) || o.Figures.WithdrawnLost != float64(lost) {
			t.Errorf("%d us withdrawn: %+v", lost, o.Verdict)
		}
		list := want[api.FindingList](t, do(t, at+"/api/v1/runs/withdrawn/findings", ""), 200)
		if n := len(list.Rows); n != 2 || list.Rows[1].Status != "withdrawn" || list.Rows[1].Reason == "" || list.Rows[1].Listed {
			t.Errorf("got %+v", list.Rows)
		}
	}
	f(20_000, api.LevelGood) // 0.2 % of 10 s
	f(90_000, api.LevelWatch)
}
