package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Selection chooses anomalies that are to be explained.
type Selection struct {
	// Filter chooses anomalies that were not withdrawn. Normal, Withdrawn, order and
	// limits are not looked at.
	Filter Filter
	// Issue leaves only its anomalies; nil: those of all.
	Issue *provenance.Issue
	// Member tells which anomalies are of Issue where that is not stored; nil: it is.
	Member func(program trace.Program, event string) bool
	// Only leaves executions that have, of each field that it names, one of the values.
	// Without leaves out what has any of its values, here and in what the selection is
	// held against. Lasso leaves those inside of a polygon.
	Only, Without []contrast.Term
	Lasso         []contrast.Vertex
	// Ranks are all of the run, and Extent is how long it took; nil and 0: they are
	// asked for.
	Ranks  []Placed
	Extent trace.Micros
}

// Bounds of what an explanation looks at. Of more, some of all times are taken.
const (
	maxSelected = 2000
	maxTypical  = 1000
	maxOthers   = 1000
	maxStates   = 300 // executions of any function whose nodes' states are looked at
	maxClosely  = 400 // of each of them whose messages, counters and states are looked at
	// leastClosely is how many are looked at in any case of a run of which details are at hand.
	leastClosely = 25
)

// sampled is an execution that is looked at.
type sampled struct {
	program          trace.Program
	rank             trace.Rank
	thread           int64
	event            string
	fn, path         int32
	host, function   string
	entry, exit      trace.Micros
	step             int64
	onGPU, anomalous bool
	marked, detailed bool // it is known whether its details are at hand; they are
	message          *message
	counters         map[string]float64
	states           map[string]float64
	stateRead        any // when
	stateUnit        uint64
	lost             trace.Micros
	count            int64 // of those that it stands for, where it is a group
}

// split tells those whose details are at hand from others.
func (s *sampling) split(list []*sampled) (atHand, others []*sampled) {
	s.details.mark(list)
	for _, x := range list {
		if x.detailed {
			atHand = append(atHand, x)
		} else {
			others = append(others, x)
		}
	}
	return atHand, others
}

// atHand are those whose details are at hand, where there are such and not too few of them.
func (s *sampling) atHand(list []*sampled) []*sampled {
	if s.details == nil {
		return list
	}
	if atHand, _ := s.split(list); len(atHand) >= leastClosely {
		return atHand
	}
	return list
}

// closely are those of which messages, counters and states are looked at: what is at hand,
// and as many others as make it leastClosely, since each of them costs a store some time.
func (s *sampling) closely(list []*sampled) []*sampled {
	if s.details != nil {
		atHand, others := s.split(list)
		list = append(atHand, others[:min(len(others), max(0, leastClosely-len(atHand)))]...)
	}
	return list[:min(len(list), maxClosely)]
}

func (s *sampled) key() trace.EventKey { return trace.EventKey{Program: s.program, ID: s.event} }

// message is the one that tells most of an execution: of its own the last that came, or
// else the last that was sent; or else the nearest around it.
type message struct {
	partner int64
	bytes   float64
	own     bool
}

// sampling is all that is looked at.
type sampling struct {
	q                         *Selection
	details                   *Details
	begin                     trace.Micros
	selected, typical, others []*sampled
	anywhere                  []*sampled // for states of nodes only
	total                     int64
	lost                      trace.Micros
	reckoned                  bool                                           // both of them
	read                      map[contrast.FieldKind]map[trace.EventKey]bool // of which executions messages, counters and states are known
	lastStep                  int64
	hosts                     map[trace.RankKey]string

	pathNames map[pathKey]string
	pathCalls map[pathKey]float64  // of the functions of the selection; empty: not known
	devices   map[device][2]string // device and stream
	threads   []int64              // of hosts, that are known of
	readings  map[string]contrast.Moments
	units     map[unit]uint64
}

// unit is a rank at a time: what happens on a rank in a two-hundredth of the run has
// mostly one reason, and counts once for chance.
type unit struct {
	program trace.Program
	rank    trace.Rank
	at      any
}

func (s *sampling) unit(x *sampled, at any) uint64 {
	if s.units == nil {
		s.units = make(map[unit]uint64)
	}
	key := unit{x.program, x.rank, at}
	n, ok := s.units[key]
	if !ok {
		n = uint64(len(s.units))
		s.units[key] = n
	}
	return n
}

type device struct {
	program trace.Program
	rank    trace.Rank
	thread  int64
}

// Explain tells what is different about a selection of anomalies: it is held against
// typical executions of the same functions, other anomalies of them, and what is known
// of all calls.
func (a *Asker) Explain(ctx context.Context, q Selection) (*contrast.Explanation, error) {
	if q.Issue != nil && q.Issue.IsChange() {
		if err := q.ofChange(); err != nil {
			return nil, err
		}
		return contrast.ExplainChange(q.Issue, a.Begin), nil
	}
	s := &sampling{q: &q, details: a.Details, begin: a.Begin}
	if err := q.check(); err != nil {
		return nil, err
	}
	w, err := a.choose(ctx, s)
	if err == nil && len(s.selected) > 0 {
		err = a.against(ctx, s, w)
	}
	if err != nil {
		return nil, err
	}
	e := &contrast.Explanation{
		Selected: s.total, Lost: s.lost, Reckoned: s.reckoned, Looked: len(s.selected), Typical: len(s.typical),
		Others: len(s.others), Functions: s.functions(),
	}
	if len(s.selected) == 0 {
		e.Sentence = "No anomaly is in the selection"
		return e, nil
	}
	if err := a.known(ctx, s); err != nil {
		return nil, err
	}
	e.Explain(s.fields(), s.bins())
	return e, nil
}

// check says what is wrong with the selection.
func (q *Selection) check() error {
	for _, kind := range q.Filter.Kinds {
		if _, err := choose("kind", kind, kinds); err != nil {
			return err
		}
	}
	return nil
}

// functions counts those of the selection, the most frequent first.
func (s *sampling) functions() []contrast.Count {
	var list []contrast.Count
	at := make(map[numberKey]int)
	for _, x := range s.selected {
		key := numberKey{x.program, x.fn}
		i, ok := at[key]
		if !ok {
			i = len(list)
			at[key] = i
			list = append(list, contrast.Count{Program: x.program, Name: x.function})
		}
		list[i].Executions++
	}
	slices.SortStableFunc(list, func(a, b contrast.Count) int { return b.Executions - a.Executions })
	return list
}

// chosen are the conditions of a selection.
type chosen struct {
	all   string // what is looked at at all
	some  string // the selection among that
	args  []any
	first int // how many of the arguments all needs
}

func (a *Asker) chosen(ctx context.Context, q *Selection, limit int) (*chosen, error) {
	f := q.Filter
	f.Normal, f.Withdrawn = false, true // withdrawn ones are never looked at
	c := &conditions{args: []any{int32(a.Run.ID), true, int64(limit)}}
	q.leaveOut(c, a.Begin)
	w := &chosen{all: c.sql.String(), first: len(c.args)}
	c.sql.Reset()
	if f.Function != "" {
		if err := a.ofFunctions(ctx, c, f.Function); err != nil {
			return nil, err
		}
	}
	if x := q.Issue; x != nil {
		c.add("pid = ? AND fn IN (SELECT fn FROM functions WHERE run = $1 AND pid = ? AND name = ?)", int32(x.PID), int32(x.PID), x.Func)
		if q.Member == nil {
			c.add("(pid, rid, event_id) IN (SELECT pid, rid, event_id FROM links WHERE run = $1 AND issue = ?)", int32(x.Number))
		}
	}
	f.conditions(c, a.Begin)
	q.leave(c, a.Begin)
	w.some, w.args = c.sql.String(), c.args
	return w, nil
}

// choose reads the selection and returns its conditions.
func (a *Asker) choose(ctx context.Context, s *sampling) (*chosen, error) {
	limit := maxSelected
	if s.q.Member != nil {
		limit = 10 * maxSelected // not all of them are of the issue
	}
	w, err := a.chosen(ctx, s.q, limit)
	if err != nil {
		return nil, err
	}
	if s.selected, err = a.executions(ctx, w.all+w.some, w.args); err != nil {
		return nil, err
	}
	type total struct {
		N    int64        `sql:"executions"`
		Lost trace.Micros `sql:"lost_us"`
	}
	rows, err := a.bulk().Query(ctx, strings.ReplaceAll(text("explain_total"), " /*where*/", w.all+w.some), w.args...)
	if err == nil {
		err = provdb.Scan(rows, func(t *total) { s.total, s.lost = t.N, t.Lost })
	}
	if err != nil {
		return nil, err
	}
	if s.q.Member != nil {
		s.keepMembers()
	}
	if s.q.closely() {
		err = a.narrow(ctx, s)
	}
	return w, err
}

// against reads what the selection is held against.
func (a *Asker) against(ctx context.Context, s *sampling, w *chosen) error {
	functions := s.functionKeys()
	rest, args := w.all+" AND (TRUE"+w.some+") IS NOT TRUE", w.args
	if s.q.Member != nil {
		rest, args = w.all, w.args[:w.first:w.first]
	}
	args[2] = int64(maxOthers)
	others, err := a.executions(ctx, rest+sameFunctions(len(args)+1), append(args, functions))
	if err != nil {
		return err
	}
	if s.q.Member != nil {
		others = slices.DeleteFunc(others, func(x *sampled) bool { return s.q.Member(x.program, x.event) })
	}
	c := &conditions{args: []any{int32(a.Run.ID), false, int64(maxTypical), functions}}
	c.sql.WriteString(sameFunctions(len(c.args)))
	s.q.leaveOut(c, a.Begin)
	if s.typical, err = a.executions(ctx, c.sql.String(), c.args); err != nil {
		return err
	}
	return a.exclude(ctx, s, others)
}

// exclude removes from what the selection is held against what is left out of all, as far
// as the store or memory could not tell.
func (a *Asker) exclude(ctx context.Context, s *sampling, others []*sampled) (err error) {
	if others, err = a.leaveOutClosely(ctx, s, others); err != nil {
		return err
	}
	s.others = append(others, s.others...)
	s.others = s.others[:min(len(s.others), maxOthers)]
	s.typical, err = a.leaveOutClosely(ctx, s, s.typical)
	return err
}

// sameFunctions chooses the functions that a parameter names.
func sameFunctions(n int) string {
	return fmt.Sprintf(` AND (pid, fn) IN (SELECT split_part(x, '/', 1)::INTEGER, split_part(x, '/', 2)::INTEGER
    FROM (SELECT unnest(string_to_array($%d::VARCHAR, ',')) AS x) t WHERE x <> '')`, n)
}

// keepMembers leaves those that are of the issue.
func (s *sampling) keepMembers() {
	all := len(s.selected)
	s.selected = slices.DeleteFunc(s.selected, func(x *sampled) bool { return !s.q.Member(x.program, x.event) })
	if s.total <= int64(all) {
		s.total = int64(len(s.selected))
	} else {
		s.total = s.q.Issue.Anomalies
	}
	if s.total == s.q.Issue.Anomalies {
		s.lost = s.q.Issue.LostTime
	} else {
		s.lost = 0
		for _, x := range s.selected {
			s.lost += x.lost
		}
	}
	s.selected = s.selected[:min(len(s.selected), maxSelected)]
}

// functionKeys names the functions of the selection, the most frequent first.
func (s *sampling) functionKeys() string {
	var keys []string
	seen := make(map[numberKey]bool)
	for _, x := range s.selected {
		key := numberKey{x.program, x.fn}
		if !seen[key] && len(keys) < maxNumbers {
			seen[key] = true
			keys = append(keys, fmt.Sprintf("%d/%d", x.program, x.fn))
		}
	}
	return strings.Join(keys, ",")
}

// executions reads some of those that conditions choose.
func (a *Asker) executions(ctx context.Context, where string, args []any) (list []*sampled, err error) {
	rows, err := a.bulk().Query(ctx, strings.ReplaceAll(text("explain_executions"), " /*where*/", where), args...)
	if err != nil {
		return nil, err
	}
	type row struct {
		Program   trace.Program `sql:"pid"`
		Rank      trace.Rank    `sql:"rid"`
		Thread    int64         `sql:"tid"`
		Event     string        `sql:"event_id"`
		Fn        int32         `sql:"fn"`
		Path      int32         `sql:"path"`
		Host      string        `sql:"hostname"`
		Entry     trace.Micros  `sql:"entry"`
		Exit      trace.Micros  `sql:"exit"`
		Step      int64         `sql:"io_step"`
		OnGPU     bool          `sql:"is_gpu_event"`
		Function  string        `sql:"func"`
		Anomalous bool          `sql:"anomalous"`
		Lost      trace.Micros  `sql:"lost_time"`
	}
	err = provdb.Scan(rows, func(r *row) {
		list = append(list, &sampled{
			program: r.Program, rank: r.Rank, thread: r.Thread, event: r.Event, fn: r.Fn, path: r.Path, host: r.Host, function: r.Function,
			entry: r.Entry, exit: r.Exit, step: r.Step, onGPU: r.OnGPU, anomalous: r.Anomalous, lost: r.Lost, count: 1,
		})
	})
	return list, err
}
