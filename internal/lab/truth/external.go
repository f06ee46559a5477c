package truth

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Stall is the kind of a trouble in which the process of a rank was stopped.
const Stall = "stall"

// Kinds of lines that the recorder of a run with trouble from outside writes.
var (
	externalTroubles = []string{Stall, "slow", "compete", "memhog", "iohog"}
	externalNotes    = []string{"begin", "end", "delay", "delays"}
)

// Bounds of the kept parts of such lines, and of a wait in microseconds (a day).
const (
	maxExternal = 10_000
	maxDelays   = 10_000_000
	maxWait     = 86_400_000_000
)

// externalLine is a line of the recorder: a trouble, the beginning of the run with its ranks, or a
// time in which a rank waited for a processor.
type externalLine struct {
	Kind  string         `json:"kind"`
	Rank  *trace.Rank    `json:"rank"`
	Start *trace.Ticks   `json:"start"`
	End   *trace.Ticks   `json:"end"`
	Wait  *trace.Ticks   `json:"wait_us"`
	Share *float64       `json:"stopped_share"`
	PIDs  map[string]any `json:"pids"`
}

// delay is a window of time in which a rank waited for a processor.
type delay struct{ start, end, wait trace.Ticks }

// decodeExternal returns the line if it is one of the recorder, and otherwise nil.
func decodeExternal(text []byte) (*externalLine, error) {
	var of struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(text, &of) != nil || !slices.Contains(externalTroubles, of.Kind) && !slices.Contains(externalNotes, of.Kind) {
		return nil, nil //nolint:nilnil // it is another line
	}
	e := new(externalLine)
	if err := json.Unmarshal(text, e); err != nil {
		return nil, fieldError(err)
	}
	return e, e.check()
}

func (e *externalLine) check() error {
	if e.Kind == "begin" || e.Kind == "end" || e.Kind == "delays" {
		return nil
	}
	switch hog := strings.HasSuffix(e.Kind, "hog") || e.Kind == "compete"; {
	case e.Start == nil:
		return errors.New(`"start" is missing`)
	case e.End == nil:
		return errors.New(`"end" is missing`)
	case *e.Start < 0 || *e.End < *e.Start:
		return fmt.Errorf("%d to %d is not a time", *e.Start, *e.End)
	case !hog && e.Rank == nil:
		return errors.New(`"rank" is missing`)
	case !hog && *e.Rank < 0:
		return fmt.Errorf("rank %d is negative", *e.Rank)
	case e.Kind == "delay" && e.Wait == nil:
		return errors.New(`"wait_us" is missing`)
	case e.Kind == "delay" && (*e.Wait < 0 || *e.Wait > maxWait):
		return fmt.Errorf("wait_us is %d (want 0 to %d)", *e.Wait, int64(maxWait))
	case e.Share != nil && !(*e.Share >= 0 && *e.Share <= 1):
		return fmt.Errorf("stopped_share is %v (want 0 to 1)", *e.Share)
	}
	return nil
}

// addExternal adds a line of the recorder. Troubles of all ranks get their ranks in finishExternal.
func (r *reader) addExternal(e *externalLine) error {
	switch e.Kind {
	case "begin":
		for text := range e.PIDs {
			var n numbers
			rank := n.rank(text)
			if n.err != nil {
				return n.err
			}
			r.ranks[rank] = true
		}
		return nil
	case "delay":
		if r.delayCount++; r.delayCount > maxDelays {
			return fmt.Errorf("there are more than %d delays", maxDelays)
		}
		r.ranks[*e.Rank] = true
		r.truth.delays[*e.Rank] = append(r.truth.delays[*e.Rank], delay{*e.Start, *e.End, *e.Wait})
		return nil
	case "end", "delays":
		return nil
	}
	if len(r.truth.external) == maxExternal {
		return fmt.Errorf("there are more than %d troubles from outside", maxExternal)
	}
	length := *e.End - *e.Start
	t := &Trouble{
		Name: fmt.Sprintf("%s %d", e.Kind, len(r.truth.external)+1), Kind: e.Kind, From: *e.Start, To: *e.End,
		Hosts: []string{}, Functions: []string{}, Text: fmt.Sprintf("%s for %.3f s", e.Kind, float64(length)/1e6),
	}
	if e.Rank != nil && *e.Rank >= 0 {
		t.Ranks = []trace.Rank{*e.Rank}
	}
	switch {
	case e.Kind == Stall:
		t.Lost, t.Findings = length, []Finding{Outlier, Interference, Recurring, Change}
	case e.Share != nil:
		t.Lost = trace.Ticks(*e.Share * float64(length))
	}
	if err := r.addTrouble(t); err != nil {
		return err
	}
	r.truth.external = append(r.truth.external, r.troubles[t.Name])
	return nil
}

// finishExternal sorts the delays and completes troubles that concern all ranks.
func (r *reader) finishExternal() {
	all := slices.Sorted(maps.Keys(r.ranks))
	for _, i := range r.truth.external {
		if t := &r.truth.Troubles[i]; t.Ranks == nil {
			t.Ranks = all
		}
	}
	for _, list := range r.truth.delays {
		slices.SortFunc(list, func(a, b delay) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	}
}

// waited returns how long a rank waited for a processor in the windows that overlap a time.
func (t *Truth) waited(rank trace.Rank, from, to trace.Ticks) (sum trace.Ticks) {
	list := t.delays[rank]
	first, _ := slices.BinarySearchFunc(list, from, func(d delay, at trace.Ticks) int { return cmp.Compare(d.start, at) })
	for _, d := range list[max(0, first-1):] {
		if d.start > to {
			break
		}
		if min(to, d.end) > max(from, d.start) || d.start <= from && from <= d.end {
			sum += d.wait
		}
	}
	return sum
}

// explains reports whether the scheduler's record explains a flag: its rank waited for a processor for at
// least half of the lost time or, if it is in MPI, another rank did.
func (t *Truth) explains(f *Flag) bool {
	explained := func(rank trace.Rank) bool { return 2*t.waited(rank, f.Entry, f.Exit) >= f.Lost }
	if explained(f.Rank) {
		return true
	}
	if !strings.HasPrefix(f.Function, "MPI_") && f.Function != "MPI Collective Sync" {
		return false
	}
	for rank := range t.delays {
		if rank != f.Rank && explained(rank) {
			return true
		}
	}
	return false
}

// A flag on another rank belongs to a stop if it overlaps the stop or this time after it, and lost at
// least this share of it.
const (
	stopAfterEffect = 20_000
	stopVictimShare = 0.3
)

// affects reports whether a flag on another rank waited for a trouble from outside.
func (t *Trouble) affects(f *Flag) bool {
	if t.Kind != Stall {
		return f.Entry <= t.To && f.Exit >= t.From
	}
	return f.Entry <= t.To+stopAfterEffect && f.Exit >= t.From && float64(f.Lost) >= stopVictimShare*float64(t.Lost)
}

// ExternalScore compares flags with the record of a run with trouble from outside.
type ExternalScore struct {
	// Stops counts the times that a rank was stopped, and Found those with a flag on that rank that overlaps
	// it and lost at least half of it. Named counts those in which such a flag is the culprit of waits.
	Stops int `json:"stops"`
	Found int `json:"stops_found"`
	Named int `json:"stops_named"`
	// Outside counts flags outside troubles, Unexplained those of them that the scheduler's record
	// does not explain. Both are 0 without a record.
	Outside               int     `json:"flags_outside"`
	Unexplained           int     `json:"flags_unexplained"`
	UnexplainedPerMillion float64 `json:"unexplained_per_million_calls"`
}

// stopMatch records whether a flag found a stop, and whether one of them is a culprit.
type stopMatch struct{ found, named bool }

// addExternal compares a flag with the troubles from outside, and returns whether one affects it.
func (m *Matcher) addExternal(f *Flag) (affected bool) {
	t := m.truth
	for k, i := range t.external {
		trouble := &t.Troubles[i]
		switch {
		case slices.Contains(trouble.Ranks, f.Rank):
			if f.Entry > trouble.To || f.Exit < trouble.From {
				continue
			}
			affected = true
			if 2*f.Lost >= trouble.Lost {
				m.stops[k].found = true
				m.stops[k].named = m.stops[k].named || f.Culprit
			}
		case trouble.affects(f):
			affected = true
			m.touch(i, f.Lost, true)
		}
	}
	if !affected && len(t.delays) > 0 {
		m.outside++
		if !t.explains(f) {
			m.unexplained++
		}
	}
	return affected
}

// scoreExternal returns nil if the truth has neither troubles from outside nor a record.
func (m *Matcher) scoreExternal(calls float64) *ExternalScore {
	if len(m.truth.external)+len(m.truth.delays) == 0 {
		return nil
	}
	s := &ExternalScore{Outside: m.outside, Unexplained: m.unexplained}
	for k, i := range m.truth.external {
		if m.truth.Troubles[i].Kind != Stall {
			continue
		}
		s.Stops++
		if m.stops[k].found {
			s.Found++
		}
		if m.stops[k].named {
			s.Named++
		}
	}
	if calls > 0 {
		s.UnexplainedPerMillion = 1e6 * float64(s.Unexplained) / calls
	}
	return s
}
