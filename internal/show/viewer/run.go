package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Run is a stored run. It is an insight.Source.
type Run struct {
	Name  string // in the store
	Place rundir.Place
	// Stopped reports that the run had not ended when it was opened, but no process worked
	// on it.
	Stopped bool

	dir       string // of the run, or ""
	requested string // requested name; "": that of the directory, or the latest
	version   string
	reader    rundir.LazyReader

	mu   sync.Mutex
	last *provdb.Info // of a run that has ended
}

// Open opens a run of a run directory, a database file or a server. name "" selects the run of
// the directory, or the latest.
func Open(ctx context.Context, where, name, version string) (*Run, error) {
	place, err := rundir.FindStore(where)
	if err != nil {
		return nil, err
	}
	return OpenPlace(ctx, place, rundir.Find(where), name, version)
}

// OpenPlace opens a run of a store. dir is its run directory, or "".
func OpenPlace(ctx context.Context, place rundir.Place, dir, name, version string) (*Run, error) {
	r := &Run{dir: dir, requested: name, version: version, Place: place}
	if err := r.find(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// find finds the run in the store.
func (r *Run) find(ctx context.Context) (err error) {
	r.reader.Find = r.open
	if r.requested == "" {
		if r.Stopped, err = IsStopped(ctx, r.dir, r.Place); err != nil {
			return err
		}
	}
	a, err := query.New(ctx, &r.reader, cmp.Or(r.requested, r.Place.Run))
	switch {
	case err == nil:
		r.Name = a.Run.Name
		return nil
	case errors.Is(err, provdb.ErrNotFound) && r.dir != "" && r.requested == "": // nothing is stored yet
		if info, err := runfiles.ReadInfo(r.dir); err == nil {
			r.Name = (&rundir.Config{Dir: r.dir, Name: info.Name}).RunName()
			return nil
		}
	}
	return fmt.Errorf("%s: %w", r.Place.Raw(), err)
}

// Reader returns the store.
func (r *Run) Reader() provdb.Reader { return &r.reader }

// Close closes the store.
func (r *Run) Close() error { return r.reader.Close() }

// open opens the store. While a process works on the file, open connects to that process;
// otherwise it could not open the file again after a restart.
func (r *Run) open(ctx context.Context) (rundir.Reader, error) {
	if r.Place.Server == "" && r.dir != "" && !r.Stopped {
		if info, err := runfiles.ReadInfo(r.dir); err == nil && info.State.Open() {
			return remotestore.Open(ctx, r.Place.Owner)
		}
	}
	return r.Place.Open(ctx)
}

// IsStopped reports whether a run has not ended although no process works on it. An offline
// run on a server counts as running, because its writer is unknown.
func IsStopped(ctx context.Context, dir string, place rundir.Place) (bool, error) {
	if dir == "" {
		return false, nil
	}
	info, err := runfiles.ReadInfo(dir)
	if err != nil || !info.State.Open() || place.Server != "" && !info.Online {
		return false, nil //nolint:nilerr // not a run directory
	}
	if s, err := runfiles.ReadServices(dir); err == nil && s.Web != "" {
		if !Reachable(s) {
			return false, nil
		}
		if _, err := FetchStatus(ctx, s); err == nil {
			return false, nil
		}
	}
	if place.Server != "" {
		return true, nil
	}
	c, err := remotestore.Open(ctx, place.Owner)
	if err == nil {
		return false, c.Close()
	}
	return true, ctx.Err()
}

// Status returns the status that the services of the run report, or its outcome.
func (r *Run) Status(ctx context.Context) (*api.Status, error) {
	info, err := r.Info(ctx)
	if err != nil {
		return nil, err
	}
	if info.State.Open() && r.dir != "" {
		if s, err := runfiles.ReadServices(r.dir); err == nil && s.Web != "" && s.Run == r.Name && Reachable(s) {
			if st, err := FetchStatus(ctx, s); err == nil {
				return st, nil
			}
		}
	}
	return r.outcome(info), nil
}

// Info returns run.json, from the run directory or the store.
func (r *Run) Info(ctx context.Context) (*provdb.Info, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil {
		return r.last, nil
	}
	var info *provdb.Info
	if r.dir != "" && r.requested == "" {
		info, _ = runfiles.ReadInfo(r.dir) // else the store has it
	}
	if info == nil {
		a, err := query.New(ctx, &r.reader, r.Name)
		if err != nil {
			return nil, err
		}
		info = a.Run.Decoded()
		info.State, info.Started = a.Run.State, a.Run.Started
	}
	if !info.State.Open() {
		r.last = info
	}
	return info, nil
}

// outcome returns the status of a run that no process works on.
func (r *Run) outcome(info *provdb.Info) *api.Status {
	t := &info.Totals
	st := &api.Status{
		Run: api.RunStatus{Name: r.Name, State: info.State, Started: info.Started, Now: time.Now().UTC(), Version: r.version},
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
	case r.Stopped && info.State.Open(): // the store has other problems
		st.Run.State = api.Incomplete
		st.Health = []api.Health{{Part: "run", Severity: api.SeverityError, Sentence: "incomplete: " + StopReason(r.dir, info)}}
	}
	return st
}

// StopReason explains why a run is incomplete and how to complete it.
func StopReason(dir string, info *provdb.Info) string {
	why := "it stopped early"
	if len(info.Incomplete) > 0 {
		why = text.OneLine(info.Incomplete[0])
	}
	if info.Online {
		return why + "; complete it with chimbuko finish " + dir
	}
	return why + "; analyze its traces again, with chimbuko analyze --out " + dir + " --force"
}

// analyzers returns all analyzers of a finished run as one.
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
