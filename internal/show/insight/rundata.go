package insight

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
	"github.com/chimbuko/chimbuko/internal/show/memo"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// runData is the data of a run that most answers need. It is read at most every few seconds
// for all clients, and once after the run has ended. It is immutable.
type runData struct {
	run         provdb.Run
	unit        trace.Unit
	begin       trace.Ticks
	extent      trace.Ticks // from begin to the newest time
	info        *provdb.Info
	counts      query.Counts
	ranks       []executions.RankHost // ordered by program, host and rank
	names       map[trace.Program]string
	slowest     []api.Slowest
	strip       api.Strip // in DefaultColumns columns
	functions   map[trace.FuncKey]string
	gpus        bool              // has times of GPUs
	collectives bool              // has collective operations
	withdrawn   hostShare         // of the withdrawn anomalies
	memory      executions.Source // copy of the run; nil: too large, or not read yet
	read        time.Time         // when reading began
	*conclusion
}

// conclusion are the findings of a run. They take longer to compute than the other data, so they
// may be older. They are immutable.
type conclusion struct {
	stored   bool        // findings are those that were stored at the end of the run
	until    trace.Ticks // the end of the run so far that findings cover, since its start; 0: all of it
	findings []provenance.Finding
	keys     []string       // of findings; more stable than their numbers
	byKey    map[string]int // index of findings
	sparse   map[trace.FuncKey]bool
	begun    time.Time         // when reading the anomalies began
	err      error             // reason for missing findings
	peers    *provenance.Peers // nil: not compared
	timeline timelineData

	// Links of anomalies, if they are not stored and not too many.
	anomalies *blame.Run
	links     []provenance.Link
	linkOf    map[trace.EventKey]int
}

// minSamples returns the number of calls that a function needs to be judged.
func minSamples(i *provdb.Info) int {
	if n, err := strconv.Atoi(i.Settings["min-samples"]); err == nil && n > 0 {
		return n
	}
	return outlier.Default().MinSamples
}

// Bounds of cached data.
const (
	maxRuns        = 16
	maxRanks       = 1_000_000
	maxLinks       = 100_000 // anomalies of a run whose links are not stored
	maxCaches      = 4       // runs in memory
	slowFactor     = 10      // timeout of slow queries, in timeouts of a query
	DefaultColumns = 120
	MaxColumns     = 2000
	maxSlowest     = 5
)

// getCopy is a method of memo.Memo[executions.Source].
type getCopy func(ctx context.Context, key string, compute memo.Compute[executions.Source]) (executions.Source, error)

// data returns the data of a run. get returns its copy in memory.
func (in *Insight) data(ctx context.Context, run string, get getCopy) (*runData, error) {
	a, err := in.find(ctx, run)
	if err != nil {
		return nil, err
	}
	ended := a.Run.State != provdb.Running
	key := runKey(&a.Run)
	result, err := in.conclusion.Get(ctx, key, inSlot(in, func(ctx context.Context) (*conclusion, bool, error) {
		f := readConclusion(ctx, a)
		return f, ended && f.err == nil, nil
	}))
	if err != nil {
		return nil, err
	}
	memory, err := get(ctx, key, inSlot(in, func(ctx context.Context) (executions.Source, bool, error) {
		c, err := a.Copy(ctx, executions.MaxCached)
		return c, ended, err
	}))
	if err != nil {
		return nil, err
	}
	d, err := in.runs.Get(ctx, key, inSlot(in, func(ctx context.Context) (*runData, bool, error) {
		fast := *a // the copy may still be read with a
		fast.Memory = memory
		d, err := readRunData(ctx, &fast, in.traceTime(ctx, &fast))
		return d, ended, err
	}))
	if err != nil {
		return nil, err
	}
	full := *d
	full.conclusion, full.memory = result, memory
	return &full, nil
}

// inSlot returns find with a slot for a slow query.
func inSlot[T any](in *Insight, find func(ctx context.Context) (T, bool, error)) func(ctx context.Context) (T, bool, error) {
	return func(ctx context.Context) (none T, lasting bool, err error) {
		ctx, done, err := in.slot(ctx, slowFactor*in.Timeout)
		if err != nil {
			return none, false, err
		}
		defer done()
		return find(ctx)
	}
}

// runKey is the cache key of a run in its present state.
func runKey(r *provdb.Run) string {
	return fmt.Sprintf("%d %s %d %s", r.ID, r.State, r.Finished.UnixNano(), r.Name)
}

// maxAhead bounds how long before the services a program may have started.
const maxAhead = 24 * time.Hour

// traceTime returns the time up to which the traces of the watched run have been read, by the
// clock. It is 0 if the run has ended or its traces have another clock, as in a replay.
func (in *Insight) traceTime(ctx context.Context, a *query.Queries) trace.Ticks {
	if a.Run.Name != in.Run || a.Run.State != provdb.Running || a.Begin == 0 {
		return 0
	}
	status, err := in.Source.Status(ctx)
	if err != nil || status.Run.State != api.Running {
		return 0
	}
	behind := math.Inf(1)
	for i := range status.Nodes {
		if n := &status.Nodes[i]; n.State == api.NodeReading {
			behind = min(behind, n.Behind)
		}
	}
	begin := a.Unit.Time(a.Begin)
	if math.IsInf(behind, 1) || begin.After(status.Run.Now) || begin.Before(status.Run.Started.Add(-maxAhead)) {
		return 0
	}
	return a.Unit.At(status.Run.Now) - trace.Ticks(behind*a.Unit.PerSecond())
}

// find finds a run in a separate slot.
func (in *Insight) find(ctx context.Context, run string) (*query.Queries, error) {
	return InSlot(ctx, in, func(ctx context.Context) (*query.Queries, error) { return in.queriesOf(ctx, run) })
}

// readRunData reads all but the conclusion. now is the trace time of a live run, or 0.
func readRunData(ctx context.Context, a *query.Queries, now trace.Ticks) (*runData, error) {
	d := &runData{read: time.Now(), run: a.Run, unit: a.Unit, begin: a.Begin, info: a.Run.Decoded(), functions: make(map[trace.FuncKey]string)}
	counts, err := a.Counts(ctx, minSamples(d.info))
	if err != nil {
		return nil, err
	}
	d.counts = *counts
	if d.ranks, err = a.Ranks(ctx, maxRanks); err != nil {
		return nil, err
	}
	heatmap.SortRanks(d.ranks)
	if d.names, err = a.Executables(ctx); err != nil {
		return nil, err
	}
	if d.slowest, err = a.Slowest(ctx, maxSlowest); err != nil {
		return nil, err
	}
	if d.gpus, d.collectives, err = a.HasBreakdown(ctx); err != nil {
		return nil, err
	}
	if d.counts.Withdrawn > 0 {
		if d.withdrawn, err = d.withdrawnHost(ctx, a); err != nil {
			return nil, err
		}
	}
	d.extent = max(1, trace.Ticks(d.counts.Longest), now-d.begin)
	if d.begin != 0 {
		d.extent = max(d.extent, d.counts.End-d.begin, d.info.Totals.End-d.begin)
	}
	if d.strip, err = stripOf(ctx, a, executions.Timeline{To: d.extent, Columns: DefaultColumns}); err != nil {
		return nil, err
	}
	all, err := a.Functions(ctx)
	for i := range slices.Backward(all) { // of equal names the first
		d.functions[trace.FuncKey{Program: all[i].Program, Name: all[i].Name}] = all[i].ID()
	}
	return d, err
}

// hostShare is the share of one host in something.
type hostShare struct {
	host  string
	share float64
}

// withdrawnHost returns the host with most withdrawn anomalies.
func (d *runData) withdrawnHost(ctx context.Context, a *query.Queries) (most hostShare, err error) {
	rows, err := a.Query(ctx, statement("withdrawn"), int32(a.Run.ID))
	if err != nil {
		return most, err
	}
	hosts := d.hosts()
	type row struct {
		trace.RankKey `sql:"pid,rid"`
		N             int64 `sql:"withdrawn"`
	}
	counts := make(map[string]int64)
	err = provdb.Scan(rows, func(r *row) { counts[hosts[r.RankKey]] += r.N })
	for host, n := range counts {
		if share := float64(n) / float64(d.counts.Withdrawn); host != "" && share > most.share {
			most = hostShare{host, share}
		}
	}
	return most, err
}

// readConclusion reads the stored findings of a run, or computes them.
func readConclusion(ctx context.Context, a *query.Queries) *conclusion {
	f := &conclusion{begun: time.Now(), byKey: make(map[string]int), sparse: make(map[trace.FuncKey]bool)}
	if f.findings, f.err = a.StoredFindings(ctx); f.err != nil {
		return f
	}
	if f.stored = len(f.findings) > 0; !f.stored {
		result, err := a.ConcludeWithData(ctx, true)
		if err != nil {
			f.err = err
			return f
		}
		f.findings, f.peers, f.until = result.Findings, result.Peers, max(0, result.Anomalies.End-a.Begin)
		if len(result.Links) <= maxLinks {
			f.anomalies, f.links, f.linkOf = result.Anomalies, result.Links, make(map[trace.EventKey]int, len(result.Links))
			for i := range result.Links {
				f.linkOf[trace.EventKey{Program: result.Links[i].PID, ID: result.Links[i].EventID}] = i
			}
		}
	}
	if f.stored {
		if f.peers, f.err = a.Peers(ctx); f.err != nil {
			return f
		}
	}
	f.keys = findings.Keys(f.findings)
	for i, key := range slices.Backward(f.keys) {
		f.byKey[key] = i
	}
	if a.Run.State == provdb.Running {
		f.err = f.findSparse(ctx, a)
	}
	return f
}

// certainFactor is the multiple of the required samples that makes a judgment reliable: the
// detector accepts the behavior of one call in a hundred, which is that of three calls in ten times
// thirty.
const certainFactor = 10

// findSparse finds the functions whose models have too few samples for a reliable judgment.
func (f *conclusion) findSparse(ctx context.Context, a *query.Queries) error {
	least := float64(certainFactor * minSamples(a.Run.Decoded()))
	return a.NewestModels(ctx, func(p trace.Program, name string, model json.RawMessage) {
		m := provenance.ReadModel(model)
		if _, n, ok := m.Typical(); ok && n < least {
			f.sparse[trace.FuncKey{Program: p, Name: name}] = true
		}
	})
}

// seconds returns a time in seconds since the start of the run.
func (d *runData) seconds(t trace.Ticks) float64 { return d.unit.Seconds(t - d.begin) }

// micros returns a duration in microseconds.
func (d *runData) micros(t trace.Ticks) float64 { return d.unit.Micros(t) }

// finding finds a finding by its key.
func (f *conclusion) finding(key string) (*provenance.Finding, error) {
	if f.err != nil {
		return nil, f.err
	}
	i, ok := f.byKey[key]
	if !ok {
		return nil, noFinding(key)
	}
	return &f.findings[i], nil
}

// link returns the link of an anomaly, or nil.
func (f *conclusion) link(program trace.Program, event string) *provenance.Link {
	i, ok := f.linkOf[trace.EventKey{Program: program, ID: event}]
	if !ok {
		return nil
	}
	return &f.links[i]
}
