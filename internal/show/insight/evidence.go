package insight

import (
	"context"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/lanes"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Bounds of lists of an execution.
const (
	maxVictims  = 20
	maxMetadata = 1000
)

// EventParams name an execution.
type EventParams struct {
	ID      string
	Program *trace.Program // nil: the only one with that id
}

// Event returns a record.
func (in *Insight) Event(ctx context.Context, run string, of EventParams) (*executions.Event, error) {
	return read(ctx, in, run, func(ctx context.Context, q *runQuery) (*executions.Event, error) {
		e, err := q.Event(ctx, of.ID, of.Program)
		if err != nil {
			return nil, forAPI(err)
		}
		return e, tooLarge(e)
	})
}

func tooLarge(e *executions.Event) error {
	if len(e.Document) > maxAnswer {
		return api.Problemf(api.TooLarge, "query its parts with SQL", "the record is too large")
	}
	return nil
}

// Evidence returns all data about an execution.
func (in *Insight) Evidence(ctx context.Context, run string, of EventParams) (*api.Evidence, error) {
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.Evidence, error) {
		e, twin, place, samePath, err := q.EventWithTwin(ctx, of.ID, of.Program)
		if err == nil {
			err = tooLarge(e)
		}
		if err != nil {
			return nil, forAPI(err)
		}
		v := q.data.newEvidence(e)
		if place != nil {
			v.FunctionID = place.Function.ID()
		}
		if twin != nil {
			v.Twin = q.data.pageTwin(twin.Record, samePath)
		}
		// The parts set different fields.
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return q.addRoles(ctx, e, place, v) })
		g.Go(func() error { return q.addContext(ctx, e, v) })
		return v, g.Wait()
	})
}

// newEvidence returns the data of the record itself.
func (d *runData) newEvidence(e *executions.Event) *api.Evidence {
	r := e.Record
	v := &api.Evidence{
		Event: r.EventID, Program: int64(r.PID), Rank: int64(r.RID), Thread: int64(r.TID), Host: text.Host(r.Hostname), Function: r.Func,
		Anomaly: e.Collection == "anomalies", Kind: string(r.Kind), Status: string(r.Status), Sentence: d.sentence(r), Why: r.Why,
		At: d.seconds(r.Entry), Entered: d.unit.Time(r.Entry).UTC(), Exclusive: d.micros(r.RuntimeExclusive),
		Inclusive: d.micros(r.RuntimeTotal), Judged: d.judgedTime(r),
		Lost: d.micros(r.LostTime), Severity: d.unit.MicrosOf(Finite(r.OutlierSeverity)), Score: Finite(r.OutlierScore), Step: int64(r.IOStep),
		Path:  pathOf(r.CallStack),
		Model: d.pageModel(r.AlgoParams), Roles: api.Roles{Victims: []api.Other{}}, GPU: gpuOf(r),
		Counters: []api.Counter{}, State: []api.Field{}, Metadata: []api.Field{}, Record: e.Document,
	}
	if len(v.Path) == 0 {
		v.Path = []string{r.Func}
	}
	v.Lanes, v.Arrows = lanes.Of(r)
	for i := range r.CounterEvents {
		c := &r.CounterEvents[i]
		v.Counters = append(v.Counters, api.Counter{Name: c.Name, Value: float64(c.Value), At: d.unit.Between(r.Entry, c.Timestamp)})
	}
	if r.NodeState != nil {
		for _, f := range r.NodeState.Data {
			v.State = append(v.State, api.Field{Name: f.Field, Value: fmt.Sprint(f.Value)})
		}
	}
	return v
}

// Finite returns 0 for numbers that JSON cannot represent.
func Finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// pathOf returns the functions of a stack, the outermost first.
func pathOf(stack []provenance.StackEntry) []string {
	path := make([]string, 0, len(stack))
	for _, f := range slices.Backward(stack) {
		path = append(path, f.Func)
	}
	return path
}

// gpuOf returns where on a GPU an execution ran, or nil.
func gpuOf(r *provenance.Record) *api.GPU {
	if !r.IsGPUEvent {
		return nil
	}
	g := &api.GPU{Device: -1, Context: -1, Stream: -1, Stack: []string{}}
	if l := r.GPULocation; l != nil {
		g.Device, g.Context, g.Stream = partOf(l.Device), partOf(l.Context), partOf(l.Stream)
	}
	switch p := r.GPUParent.(type) {
	case provenance.GPUParent:
		g.Parent, g.Stack = p.EventID, pathOf(p.CallStack)
	case string:
		g.Problem = p
	default:
		g.Problem = "the record does not name its launch"
	}
	return g
}

// partOf returns a number of a location; -1: unknown.
func partOf(n uint64) int64 {
	if n > math.MaxInt64 {
		return -1
	}
	return int64(n)
}

// pageTwin returns a typical execution to compare an anomaly with.
func (d *runData) pageTwin(t *provenance.Record, samePath bool) *api.Twin {
	twin := &api.Twin{
		Event: t.EventID, At: d.seconds(t.Entry), Rank: int64(t.RID), Host: text.Host(t.Hostname), Exclusive: d.micros(t.RuntimeExclusive),
		Inclusive: d.micros(t.RuntimeTotal), SamePath: samePath,
	}
	twin.Lanes, twin.Arrows = lanes.Of(t)
	return twin
}

// addContext adds usual values of counters and the metadata of the rank.
func (q *runQuery) addContext(ctx context.Context, e *executions.Event, v *api.Evidence) error {
	if len(v.Counters) > 0 {
		usual, err := q.counterMeans(ctx, e.Record.PID)
		if err != nil {
			return err
		}
		for i := range v.Counters {
			if u, ok := usual[v.Counters[i].Name]; ok {
				v.Counters[i].Mean, v.Counters[i].Stddev = &u[0], &u[1]
			}
		}
	}
	facts, err := q.metadata(ctx, e.Record.PID, e.Record.RID)
	if err != nil {
		return err
	}
	seen := make(map[api.Field]bool)
	for _, f := range facts {
		if field := (api.Field{Name: f.Name, Value: f.Value}); !seen[field] {
			seen[field] = true
			v.Metadata = append(v.Metadata, field)
		}
	}
	nameLanes(v.Lanes, facts)
	if v.Twin == nil {
		return nil
	}
	if v.Twin.Rank != v.Rank {
		if facts, err = q.metadata(ctx, e.Record.PID, trace.Rank(v.Twin.Rank)); err != nil {
			return err
		}
	}
	nameLanes(v.Twin.Lanes, facts)
	return nil
}

// fact is a value of the metadata of a rank.
type fact struct {
	Thread int64  `sql:"thread"`
	Name   string `sql:"name"`
	Value  string `sql:"value"`
}

func (q *runQuery) metadata(ctx context.Context, program trace.Program, rank trace.Rank) (facts []fact, err error) {
	rows, err := q.Metadata(ctx, query.Metadata{Program: &program, Rank: &rank, Limit: maxMetadata})
	if err != nil {
		return nil, err
	}
	err = provdb.Scan(rows, func(f *fact) { facts = append(facts, *f) })
	return facts, err
}

// nameLanes gives the threads of a host the names that the trace has for them.
func nameLanes(all []api.Lane, facts []fact) {
	for i := range all {
		l := &all[i]
		plain := fmt.Sprintf("rank %d, thread %d", l.Rank, l.Thread)
		for _, f := range facts {
			if f.Name == query.ThreadName && f.Thread == l.Thread && f.Value != "" && l.Name == plain {
				l.Name = fmt.Sprintf("rank %d, %s", l.Rank, text.OneLine(f.Value))
			}
		}
	}
}

// counterMeans returns mean and deviation of the counters of a program.
func (q *runQuery) counterMeans(ctx context.Context, program trace.Program) (map[string][2]float64, error) {
	rows, err := q.Counters(ctx, "", &program, MaxRows)
	if err != nil {
		return nil, err
	}
	type row struct {
		Name   string   `sql:"counter"`
		Mean   *float64 `sql:"mean"`
		Stddev float64  `sql:"stddev"`
	}
	usual := make(map[string][2]float64)
	err = provdb.Scan(rows, func(r *row) {
		if r.Mean != nil {
			usual[r.Name] = [2]float64{Finite(*r.Mean), Finite(r.Stddev)}
		}
	})
	return usual, err
}
