package insight

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// known is what the store tells of a run as a whole. It is found out at most every few
// seconds, once for all clients, and for good when the run has ended. Nobody changes it.
type known struct {
	run       provdb.Run
	begin     trace.Micros
	extent    trace.Micros // from the begin to the newest time that is known
	info      storedInfo
	kept      query.Kept
	ranks     []query.Placed // in order of program, host and rank
	names     map[trace.Program]string
	slowest   []query.Slow
	strip     api.Strip // in usualColumns columns
	functions map[trace.FuncKey]string
	memory    provdb.Reader // copy of the run; nil: it is too large, or it is being read
	*findings
}

// findings are what is wrong with a run. To find them out takes longer than all else,
// so they may be a little older. Nobody changes them.
type findings struct {
	stored bool // issues are as they were found when the run ended
	issues []provenance.Issue
	keys   []string       // of issues, by which they are known for longer than by their numbers
	byKey  map[string]int // index of issues
	thin   map[trace.FuncKey]bool
	wrong  error // why there are no issues

	// Of a run whose links are not stored, unless there are too many.
	found  *blame.Run
	links  []provenance.Link
	linkOf map[trace.EventKey]int
}

// storedInfo is what is needed of the settings and totals of a run.
type storedInfo struct {
	Error      string            `json:"error"`
	Incomplete []string          `json:"incomplete"`
	Version    string            `json:"version"`
	Settings   map[string]string `json:"settings"`
	Totals     struct {
		Events    int64        `json:"events"`
		Calls     int64        `json:"calls"`
		Flagged   int64        `json:"flagged"`
		Ranks     int64        `json:"ranks"`
		Functions int64        `json:"functions"`
		Begin     trace.Micros `json:"begin_us"`
	} `json:"totals"`
	Review *struct {
		Confirmed int64 `json:"confirmed"`
		Withdrawn int64 `json:"withdrawn"`
		Promoted  int64 `json:"promoted"`
		NotJudged int64 `json:"not_judged"`
	} `json:"review"`
	TraceBytes int64 `json:"trace_bytes"`
	Notes      []struct {
		Name     string `json:"name"`
		Severity string `json:"severity"`
		Count    int64  `json:"count"`
		Sentence string `json:"sentence"`
	} `json:"notes"`
	Broken []string `json:"broken"`
}

// minSamples is how many calls of a function must be known before any is judged.
func (i *storedInfo) minSamples() int {
	if n, err := strconv.Atoi(i.Settings["min-samples"]); err == nil && n > 0 {
		return n
	}
	return outlier.Default().MinSamples
}

// Bounds of what is known.
const (
	maxKnown      = 16 // runs
	maxRanksKnown = 1_000_000
	maxLinksKnown = 100_000 // anomalies of a run whose links are not stored
	maxCaches     = 4       // runs in memory
	knownPatience = 10      // times as long as one question may take
	UsualColumns  = 120
	MaxColumns    = 2000
	maxSlowest    = 5
)

// known finds out what the store tells of a run. While a large run is being copied into memory
// the store answers.
func (in *Insight) known(ctx context.Context, run string) (*known, error) {
	return in.knownWith(ctx, run, in.caches.Soon)
}

// getReader is a method of memo.Memo[provdb.Reader].
type getReader func(ctx context.Context, key string, find func(ctx context.Context) (provdb.Reader, bool, error)) (provdb.Reader, error)

// knownWith is known with the copy in memory that get returns.
func (in *Insight) knownWith(ctx context.Context, run string, get getReader) (*known, error) {
	a, err := in.brief(ctx, run)
	if err != nil {
		return nil, err
	}
	ended := a.Run.State != provdb.Running
	key := runKey(&a.Run)
	found, err := in.found.Get(ctx, key, func(ctx context.Context) (*findings, bool, error) {
		ctx, done, err := in.slotFor(ctx, knownPatience*in.Timeout)
		if err != nil {
			return nil, false, err
		}
		defer done()
		f := findOut(ctx, a)
		return f, ended && f.wrong == nil, nil
	})
	if err != nil {
		return nil, err
	}
	memory, err := get(ctx, key, func(ctx context.Context) (provdb.Reader, bool, error) {
		ctx, done, err := in.slotFor(ctx, knownPatience*in.Timeout)
		if err != nil {
			return nil, false, err
		}
		defer done()
		r, err := in.copyOf(ctx, a)
		return r, ended, err
	})
	if err != nil {
		return nil, err
	}
	k, err := in.runsKnown.Get(ctx, key, func(ctx context.Context) (*known, bool, error) {
		ctx, done, err := in.slotFor(ctx, knownPatience*in.Timeout)
		if err != nil {
			return nil, false, err
		}
		defer done()
		a.Memory = memory
		k, err := newKnown(ctx, a, in.traceTime(ctx, a))
		return k, ended, err
	})
	if err != nil {
		return nil, err
	}
	all := *k
	all.findings, all.memory = found, memory
	return &all, nil
}

// copyOf copies a run into memory; nil if it is too large.
func (in *Insight) copyOf(ctx context.Context, a *query.Asker) (provdb.Reader, error) {
	if in.Cache == nil {
		return nil, nil //nolint:nilnil // the store answers
	}
	c, err := in.Cache(ctx)
	if err != nil {
		return nil, err
	}
	fits, err := a.Fill(ctx, c, query.MaxCached)
	if err != nil || !fits {
		return nil, err
	}
	return c, nil
}

// runKey names a run as long as nothing but what is written to it changes.
func runKey(r *provdb.Run) string {
	return fmt.Sprintf("%d %s %d %s", r.ID, r.State, r.Finished.UnixNano(), r.Name)
}

// maxAhead is how long before the services a program may have been started.
const maxAhead = 24 * time.Hour

// traceTime is how far the traces of a run that goes on have been read, as far as the
// clock tells: 0 if it is not the one that is watched, or if its traces have another
// clock, as those that are replayed may.
func (in *Insight) traceTime(ctx context.Context, a *query.Asker) trace.Micros {
	if a.Run.Name != in.Run || a.Run.State != provdb.Running || a.Begin == 0 {
		return 0
	}
	status, err := in.Source.Status(ctx)
	if err != nil || status.Run.State != api.Running {
		return 0
	}
	now, behind := status.Run.Now.UnixMicro(), math.Inf(1)
	for i := range status.Nodes {
		if n := &status.Nodes[i]; n.State == api.NodeReading {
			behind = min(behind, n.Behind)
		}
	}
	begun := time.UnixMicro(int64(a.Begin))
	if math.IsInf(behind, 1) || begun.After(status.Run.Now) || begun.Before(status.Run.Started.Add(-maxAhead)) {
		return 0
	}
	return trace.Micros(now - int64(behind*1e6))
}

// brief finds a run, in its turn among other questions.
func (in *Insight) brief(ctx context.Context, run string) (*query.Asker, error) {
	ctx, done, err := in.Slot(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return in.asker(ctx, run)
}

// newKnown asks for all of it but the findings. now is the time of the trace of a run that goes on, 0 if
// only the store tells.
func newKnown(ctx context.Context, a *query.Asker, now trace.Micros) (*known, error) {
	k := &known{run: a.Run, begin: a.Begin, info: infoOf(a), functions: make(map[trace.FuncKey]string)}
	kept, err := a.Kept(ctx, k.info.minSamples())
	if err != nil {
		return nil, err
	}
	k.kept = *kept
	if k.ranks, err = a.Ranks(ctx, maxRanksKnown); err != nil {
		return nil, err
	}
	SortPlaced(k.ranks)
	if k.names, err = a.Executables(ctx); err != nil {
		return nil, err
	}
	if k.slowest, err = a.Slowest(ctx, maxSlowest); err != nil {
		return nil, err
	}
	k.extent = max(k.length(), now-k.begin)
	if k.strip, err = stripOf(ctx, a, query.Timeline{To: k.extent, Columns: UsualColumns}); err != nil {
		return nil, err
	}
	all, err := a.Functions(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		key := trace.FuncKey{Program: all[i].Program, Name: all[i].Name}
		if _, ok := k.functions[key]; !ok {
			k.functions[key] = all[i].ID()
		}
	}
	return k, nil
}

// infoOf reads the settings and totals of a run.
func infoOf(a *query.Asker) (info storedInfo) {
	if a.Run.Info != nil {
		_ = json.Unmarshal(a.Run.Info, &info) // others' info may be anything
	}
	return info
}

// findOut reads the issues of a run, or finds them out.
func findOut(ctx context.Context, a *query.Asker) *findings {
	f := &findings{byKey: make(map[string]int), thin: make(map[trace.FuncKey]bool)}
	if f.issues, f.wrong = a.StoredIssues(ctx); f.wrong != nil {
		return f
	}
	if f.stored = len(f.issues) > 0; !f.stored {
		run, found, err := a.FindOut(ctx, true)
		if err != nil {
			f.wrong = err
			return f
		}
		f.issues = found.Issues
		if len(found.Links) <= maxLinksKnown {
			f.keepLinks(run, found)
		}
	}
	f.keys = issueKeys(f.issues)
	for i, key := range slices.Backward(f.keys) {
		f.byKey[key] = i
	}
	if a.Run.State == provdb.Running {
		info := infoOf(a)
		f.wrong = f.findThin(ctx, a, info.minSamples())
	}
	return f
}

func (f *findings) keepLinks(run *blame.Run, found *blame.Findings) {
	f.found, f.links, f.linkOf = run, found.Links, make(map[trace.EventKey]int, len(found.Links))
	for i := range found.Links {
		f.linkOf[trace.EventKey{Program: found.Links[i].PID, ID: found.Links[i].EventID}] = i
	}
}

// sureTimes is how many times as many calls as are needed for a judgment make it a
// sure one. The detector takes for usual what one call in a hundred does: of ten times
// thirty calls these are three, of fewer there may be none yet.
const sureTimes = 10

// findThin finds the functions whose models know too few calls for a sure judgment.
func (f *findings) findThin(ctx context.Context, a *query.Asker, minSamples int) error {
	return a.NewestModels(ctx, func(p trace.Program, name string, model json.RawMessage) {
		m := provenance.ReadModel(model)
		if _, n, ok := m.Typical(); ok && n < float64(sureTimes*minSamples) {
			f.thin[trace.FuncKey{Program: p, Name: name}] = true
		}
	})
}

// length is from the begin of the run to the newest time that is known.
func (k *known) length() trace.Micros {
	length := trace.Micros(k.kept.Longest)
	if k.begin != 0 {
		length = max(length, k.kept.End-k.begin)
	}
	return max(length, 1)
}

// SortPlaced sorts ranks by program, host and rank.
func SortPlaced(ranks []query.Placed) {
	slices.SortFunc(ranks, func(a, b query.Placed) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Rank, b.Rank))
	})
}

// seconds is a time since the begin of the run.
func (k *known) seconds(t trace.Micros) float64 { return float64(t-k.begin) / 1e6 }

// issue finds an issue by its key.
func (f *findings) issue(key string) (*provenance.Issue, bool) {
	i, ok := f.byKey[key]
	if !ok {
		return nil, false
	}
	return &f.issues[i], true
}
