package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// viewRun is a run that is shown. It is a dashboard.Source.
type viewRun struct {
	dir     string // of the run; "" if there is none
	run     string // its name as it was given; "" is that of the directory, or the latest
	name    string // its name in the store
	version string
	place   rundir.Place
	reader  rundir.LazyReader
	cut     bool // it had not ended when we came, but nobody was at work on it

	mu   sync.Mutex
	last *provdb.Info // of a run that has ended
}

// Reader is the store.
func (v *viewRun) Reader() provdb.Reader { return &v.reader }

func (v *viewRun) close() error { return v.reader.Close() }

// open opens the store. As long as somebody is at work on a file it is left to them,
// for they could not open it themselves when they are started again.
func (v *viewRun) open(ctx context.Context) (provdb.Reader, func() error, error) {
	if v.place.Server == "" && v.dir != "" && !v.cut {
		if info, err := rundir.ReadInfo(v.dir); err == nil && info.State.Open() {
			c, err := remotestore.Open(ctx, v.place.Owner)
			if err != nil {
				return nil, nil, err
			}
			return c, c.Close, nil
		}
	}
	return v.place.Open(ctx)
}

// isCut reports whether the run has not ended, but nobody is at work on it. Who
// writes to a server is not known, so such a run is believed to go on.
func (v *viewRun) isCut(ctx context.Context) (bool, error) {
	if v.dir == "" || v.run != "" {
		return false, nil
	}
	info, err := rundir.ReadInfo(v.dir)
	if err != nil || !info.State.Open() || v.place.Server != "" && !info.Online {
		return false, nil //nolint:nilerr // not a run directory
	}
	if s, err := rundir.ReadServices(v.dir); err == nil && s.Web != "" {
		if !reachable(s) {
			return false, nil
		}
		if _, err := askServices(ctx, s); err == nil {
			return false, nil
		}
	}
	if v.place.Server != "" {
		return true, nil
	}
	c, err := remotestore.Open(ctx, v.place.Owner)
	if err == nil {
		return false, c.Close()
	}
	return true, ctx.Err()
}

// Status is how the run fares that goes on, as its services tell, or what came of it.
func (v *viewRun) Status(ctx context.Context) (*api.Status, error) {
	info, err := v.summary(ctx)
	if err != nil {
		return nil, err
	}
	if info.State.Open() && v.dir != "" {
		if s, err := rundir.ReadServices(v.dir); err == nil && s.Web != "" && s.Run == v.name && reachable(s) {
			if st, err := askServices(ctx, s); err == nil {
				return st, nil
			}
		}
	}
	return v.outcome(info), nil
}

// summary is what is known of the run as a whole, from its directory or its store.
func (v *viewRun) summary(ctx context.Context) (*provdb.Info, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last != nil {
		return v.last, nil
	}
	var info *provdb.Info
	if v.dir != "" && v.run == "" {
		info, _ = rundir.ReadInfo(v.dir) // else the store has it
	}
	if info == nil {
		a, err := query.New(ctx, &v.reader, v.name)
		if err != nil {
			return nil, err
		}
		info = a.Run.Decoded()
		info.State, info.Started = a.Run.State, a.Run.Started
	}
	if !info.State.Open() {
		v.last = info
	}
	return info, nil
}

// viewStates are the states of runs that nobody is at work on.
var viewStates = map[provdb.State]api.State{
	provdb.Running: api.Running, provdb.Finished: api.Finished, provdb.Failed: api.Failed, provdb.Incomplete: api.Incomplete,
}

// outcome is what came of a run.
func (v *viewRun) outcome(info *provdb.Info) *api.Status {
	t := &info.Totals
	st := &api.Status{
		Run: api.RunStatus{Name: v.name, State: viewStates[info.State], Started: info.Started, Now: time.Now().UTC(), Version: v.version},
		Totals: api.Totals{
			Ranks: int64(t.Ranks), Steps: int64(t.Steps), Events: t.Events, Calls: t.Calls, Anomalies: t.Anomalies, Functions: int64(t.Functions),
			BytesRead: info.TraceBytes,
		},
	}
	switch {
	case info.State == provdb.Finished:
		n := analyzers(info)
		st.Totals.RanksEnded, st.Totals.RecordsSent, st.Totals.RecordsStored = int64(t.Ranks), n.RecordsSent, n.RecordsSent
		st.Nodes = []api.Node{n}
	case v.cut && info.State.Open(): // what else is wrong the store knows
		st.Run.State = api.Incomplete
		st.Health = []api.Health{{Part: "run", Severity: api.SeverityError, Sentence: "it is incomplete: " + v.cutText(info)}}
	}
	return st
}

// cutText says why a run is incomplete, and what to do about it.
func (v *viewRun) cutText(info *provdb.Info) string {
	why := "nobody is at work on it, and it has not ended"
	if len(info.Incomplete) > 0 {
		why = oneLine(info.Incomplete[0])
	}
	return why + "; " + v.goOn(info)
}

// goOn says what to do about a run that was cut.
func (v *viewRun) goOn(info *provdb.Info) string {
	if info.Online {
		return "chimbuko finish " + v.dir + " completes it"
	}
	return "analyze its traces again, with chimbuko analyze --out " + v.dir + " --force"
}

// analyzers are all who analyzed a run that has ended, as one.
func analyzers(info *provdb.Info) api.Node {
	t := &info.Totals
	n := api.Node{
		Name: "all analyzers", State: api.NodeDone, Ranks: int64(t.Ranks), StepsRead: int64(t.Steps), StepsExchanged: int64(t.Steps),
		Events: t.Events, Calls: t.Calls, Anomalies: t.Flagged, BytesRead: info.TraceBytes,
		RecordsSent: t.Anomalies,
	}
	if r := info.Review; r != nil {
		n.RecordsSent += r.Withdrawn + r.Typical
	}
	for _, note := range info.Notes {
		n.Tallies = append(n.Tallies, api.Tally(note))
	}
	return n
}

// tell says what is shown, above all if the run did not end well.
func (v *viewRun) tell(ctx context.Context, env *Env) {
	info, err := v.summary(ctx)
	if err != nil {
		fmt.Fprintf(env.Stderr, "chimbuko: how the run ended is not known: %v\n", err)
		return
	}
	text := string(info.State)
	switch {
	case info.State == provdb.Finished && info.Totals.Events > 0:
		text = fmt.Sprintf("finished%s, with %s anomalies in %s calls on %s", incompleteWords(info), grouped(info.Totals.Anomalies), grouped(info.Totals.Calls), counted(info.Totals.Ranks, "rank"))
	case info.State == provdb.Failed:
		text = "failed: " + oneLine(info.Error) + "; what was stored before is shown"
	case v.cut:
		text = "incomplete: " + v.cutText(info) + ", when this page has been ended"
	case info.State.Open():
		text = "goes on"
	}
	fmt.Fprintf(env.Stderr, "chimbuko: run %q: %s\n", v.name, text)
}

// incompleteWords says that something is missing of a run that has ended.
func incompleteWords(info *provdb.Info) string {
	if len(info.Incomplete) == 0 {
		return ""
	}
	return " but incomplete (" + oneLine(info.Incomplete[0]) + ")"
}
