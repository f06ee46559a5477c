package insight

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/lanes"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Bounds of what is told with an execution.
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
func (in *Insight) Event(ctx context.Context, run string, of EventParams) (*query.Event, error) {
	return ask(ctx, in, run, func(ctx context.Context, q *asked) (*query.Event, error) {
		e, err := q.Event(ctx, of.ID, of.Program)
		if err != nil {
			return nil, choosing(err)
		}
		return e, tooLarge(e)
	})
}

func tooLarge(e *query.Event) error {
	if len(e.Document) > maxAnswer {
		return Problemf(api.TooLarge, "ask for its parts with sql", "the record is too large")
	}
	return nil
}

// Evidence returns all there is to say of one execution.
func (in *Insight) Evidence(ctx context.Context, run string, of EventParams) (*api.Evidence, error) {
	return informed(ctx, in, run, func(ctx context.Context, q *asked) (*api.Evidence, error) {
		e, twin, place, samePath, err := q.EventWithTwin(ctx, of.ID, of.Program)
		if err == nil {
			err = tooLarge(e)
		}
		if err != nil {
			return nil, choosing(err)
		}
		v := q.known.newEvidence(e)
		if place != nil {
			v.FunctionID = place.Function.ID()
		}
		if twin != nil {
			v.Twin = q.known.pageTwin(twin.Record, samePath)
		}
		// Each part fills in fields of its own.
		g, ctx := errgroup.WithContext(ctx)
		for _, add := range []func(context.Context, *query.Event, *query.Place, *api.Evidence) error{q.addRoles, q.addContext} {
			g.Go(func() error { return add(ctx, e, place, v) })
		}
		return v, g.Wait()
	})
}

// newEvidence is what the record itself tells.
func (k *known) newEvidence(e *query.Event) *api.Evidence {
	r := e.Record
	v := &api.Evidence{
		Event: r.EventID, Program: int64(r.PID), Rank: int64(r.RID), Thread: int64(r.TID), Host: r.Hostname, Function: r.Func,
		Anomaly: e.Collection == "anomalies", Kind: string(r.Kind), Status: string(r.Status), Sentence: k.sentence(r), Why: r.Why,
		At: k.seconds(r.Entry), Entered: time.UnixMicro(int64(r.Entry)).UTC(), Exclusive: int64(r.RuntimeExclusive),
		Inclusive: int64(r.RuntimeTotal), Judged: int64(k.judged(r)),
		Lost: int64(r.LostTime), Severity: Finite(r.OutlierSeverity), Score: Finite(r.OutlierScore), Step: int64(r.IOStep),
		Path:  pathOf(r.CallStack),
		Model: k.pageModel(r.AlgoParams), Roles: api.Roles{Victims: []api.Other{}}, GPU: gpuOf(r),
		Counters: []api.Counter{}, State: []api.Field{}, Metadata: []api.Field{}, Record: e.Document,
	}
	if len(v.Path) == 0 {
		v.Path = []string{r.Func}
	}
	v.Lanes, v.Arrows = lanes.Of(r)
	for i := range r.CounterEvents {
		c := &r.CounterEvents[i]
		v.Counters = append(v.Counters, api.Counter{Name: c.Name, Value: float64(c.Value), At: float64(c.Timestamp) - float64(r.Entry)})
	}
	if r.NodeState != nil {
		for _, f := range r.NodeState.Data {
			v.State = append(v.State, api.Field{Name: f.Field, Value: fmt.Sprint(f.Value)})
		}
	}
	return v
}

// Finite is a number that JSON knows.
func Finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// pathOf are the functions of a stack from the outermost on.
func pathOf(stack []provenance.StackEntry) []string {
	path := make([]string, 0, len(stack))
	for _, f := range slices.Backward(stack) {
		path = append(path, f.Func)
	}
	return path
}

// gpuOf tells where on a GPU an execution ran; nil: on none.
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
		g.Problem = "the record does not say what launched it"
	}
	return g
}

// partOf is a number of a location; -1 where it is not known.
func partOf(n uint64) int64 {
	if n > math.MaxInt64 {
		return -1
	}
	return int64(n)
}

// pageTwin is a typical execution beside an anomaly.
func (k *known) pageTwin(t *provenance.Record, samePath bool) *api.Twin {
	twin := &api.Twin{
		Event: t.EventID, At: k.seconds(t.Entry), Rank: int64(t.RID), Host: t.Hostname, Exclusive: int64(t.RuntimeExclusive),
		Inclusive: int64(t.RuntimeTotal), SamePath: samePath,
	}
	twin.Lanes, twin.Arrows = lanes.Of(t)
	return twin
}

// addContext adds what is usual of counters, and what is known of the rank.
func (q *asked) addContext(ctx context.Context, e *query.Event, _ *query.Place, v *api.Evidence) error {
	if len(v.Counters) > 0 {
		usual, err := q.usualCounters(ctx, e.Record.PID)
		if err != nil {
			return err
		}
		for i := range v.Counters {
			if u, ok := usual[v.Counters[i].Name]; ok {
				v.Counters[i].Mean, v.Counters[i].Stddev = &u[0], &u[1]
			}
		}
	}
	rows, err := q.Metadata(ctx, query.Metadata{Program: &e.Record.PID, Rank: &e.Record.RID, Limit: maxMetadata})
	if err != nil {
		return err
	}
	seen := make(map[api.Field]bool)
	for row, err := range rows.All {
		if err != nil {
			return err
		}
		name, _ := row[4].(string)
		value, _ := row[5].(string)
		if f := (api.Field{Name: name, Value: value}); !seen[f] {
			seen[f] = true
			v.Metadata = append(v.Metadata, f)
		}
	}
	return nil
}

// usualCounters are mean and deviation of the counters of a program.
func (q *asked) usualCounters(ctx context.Context, program trace.Program) (map[string][2]float64, error) {
	rows, err := q.Counters(ctx, "", &program, MaxRows)
	if err != nil {
		return nil, err
	}
	at := make(map[string]int)
	for i, c := range rows.Columns {
		at[c.Name] = i
	}
	usual := make(map[string][2]float64)
	for row, err := range rows.All {
		if err != nil {
			return nil, err
		}
		name, _ := row[at["counter"]].(string)
		mean, ok := row[at["mean"]].(float64)
		stddev, _ := row[at["stddev"]].(float64)
		if ok {
			usual[name] = [2]float64{Finite(mean), Finite(stddev)}
		}
	}
	return usual, nil
}
