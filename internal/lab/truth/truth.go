// Package truth writes and reads files that describe the anomalies planted in a program,
// and compares them with the calls that an analysis flagged. docs/formats/truth.md
// describes the files. The package is independent of detectors and records.
package truth

import (
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Role is the part of a call in a trouble.
type Role string

// The roles of a call.
const (
	Cause  Role = "cause"  // the trouble is in the call itself
	Victim Role = "victim" // the call waits for a cause
)

// Finding is a kind of finding that an analysis reports.
type Finding string

// The kinds of finding.
const (
	Outlier      Finding = "outlier"      // single calls are far longer than others
	Recurring    Finding = "recurring"    // a share of the calls is longer, all the time
	SlowPeer     Finding = "slow-peer"    // a rank, host, thread or device is slower than others
	Change       Finding = "change"       // calls are longer from some time on
	ExcessWork   Finding = "excess-work"  // a call does more than usual
	Interference Finding = "interference" // delays that hit the running call, whatever it is
	Wait         Finding = "wait"         // calls that wait for others
)

// Trouble is one planted trouble.
type Trouble struct {
	// Name is unique in a run.
	Name string `json:"trouble"`
	// Kind is one of slow-call, slow-mode, excess-work, rare-call, slow-rank, slow-host,
	// slow-link, os-noise, memory-pressure, io-stall, gpu-clock-drop, level-shift, drift,
	// huge-value, burst; readers take any.
	Kind string `json:"kind"`
	// Each is set if each of its causes must be found; otherwise one flag suffices.
	Each    bool          `json:"each"`
	Program trace.Program `json:"program"`
	// Programs are the names of all programs by number, if there are several. An analysis may
	// number them differently.
	Programs []string `json:"programs,omitempty"`
	Hosts    []string `json:"hosts"`
	// Ranks are those of the causes, not of the victims.
	Ranks []trace.Rank `json:"ranks"`
	// Functions are full names as in the trace; empty means all.
	Functions []string    `json:"functions"`
	From      trace.Ticks `json:"from_us"`
	To        trace.Ticks `json:"to_us"` // 0: until the end of the run
	Text      string      `json:"text"`  // a description
	// Findings are the kinds of finding that are right about it, the best first; empty
	// means unknown.
	Findings []Finding `json:"findings,omitempty"`
	// Informational is set if it is not a reason for an alarm.
	Informational bool `json:"informational,omitempty"`
	// Lost is the time that it added to its causes, including those that the truth does not
	// list; 0 means unknown.
	Lost trace.Ticks `json:"lost_us,omitempty"`
	// Saved is by how much the run would have been shorter without it; nil means unknown.
	Saved *trace.Ticks `json:"saved_us,omitempty"`
}

// Call is an execution that a trouble changed. One that several troubles changed has a
// Call for each of them.
type Call struct {
	Event    string        `json:"call"` // id of its entry, formatted as a trace.EventID
	Trouble  string        `json:"trouble"`
	Role     Role          `json:"role"`
	Program  trace.Program `json:"program"`
	Rank     trace.Rank    `json:"rank"` // the same as in Event
	Thread   trace.Thread  `json:"thread"`
	Function string        `json:"function"`
	Entry    trace.Ticks   `json:"entry_us"`
	Exit     trace.Ticks   `json:"exit_us"`
	Injected trace.Ticks   `json:"injected_us"`       // may be negative
	Culprit  *trace.Rank   `json:"culprit,omitempty"` // of a victim: the rank it waited for
	Minor    bool          `json:"minor,omitempty"`   // too small to require a flag; a flag on it is not wrong
}

// Truth has the planted anomalies of a run. It is immutable, so that any number of
// Matchers may use it.
type Truth struct {
	Troubles []Trouble // of the exact format, in order of the files

	timed     []timedCall // of the text formats
	listed    []listedCall
	byEvent   map[event]int32 // index of the first entry of a call in listed
	functions []string        // of listed calls
	extent    []extent        // of each trouble
	regions   map[trace.RankKey][]int32

	timedTroubles []Trouble              // one for each rank and function of timed
	external      []int32                // troubles from outside
	delays        map[trace.Rank][]delay // waits for a processor, in order
}

// event identifies a call in all programs.
type event struct {
	program   trace.Program
	rank      trace.Rank
	step, row uint32
}

// listedCall is a Call without the fields that its event implies or scores do not need.
type listedCall struct {
	entry, injected trace.Ticks
	rank            trace.Rank
	trouble         int32 // in Troubles
	function        int32 // in functions
	next            int32 // index of the same call with another trouble; 0: none
	victim, minor   bool
	further         bool // it is the next of another
}

// extent summarizes the calls of a trouble.
type extent struct {
	causes, victims int
	injected        trace.Ticks // into all causes
	most            trace.Ticks // into one cause
	waited          trace.Ticks // by all victims
	begin           trace.Ticks // From, or the entry of the first cause if that is later
}

// Covers reports whether a flag has the program, a rank, a function and the time of the
// trouble.
func (t *Trouble) Covers(f *Flag) bool {
	return t.Program == f.Program && t.From <= f.Exit && (t.To == 0 || f.Entry <= t.To) &&
		(len(t.Functions) == 0 || slices.Contains(t.Functions, f.Function)) && slices.Contains(t.Ranks, f.Rank)
}

// overlap returns the time of a flag within the time of the trouble.
func (t *Trouble) overlap(f *Flag) trace.Ticks {
	end := f.Exit
	if t.To != 0 {
		end = min(end, t.To)
	}
	return max(0, end-max(f.Entry, t.From))
}

// parseEvent parses rank:step:row.
func parseEvent(program trace.Program, text string) (e event, ok bool) {
	rank, rest, ok1 := strings.Cut(text, ":")
	step, row, ok2 := strings.Cut(rest, ":")
	r, err1 := strconv.ParseInt(rank, 10, 32)
	s, err2 := strconv.ParseUint(step, 10, 31)
	n, err3 := strconv.ParseUint(row, 10, 32)
	return event{program, trace.Rank(r), uint32(s), uint32(n)}, ok1 && ok2 && err1 == nil && err2 == nil && err3 == nil
}

// Numbers returns the truth's numbers of the programs of a run that has other numbers for the
// same names. Names that are not unique or unknown to the truth are left out.
func (t *Truth) Numbers(run map[trace.Program]string) map[trace.Program]trace.Program {
	numbers := make(map[trace.Program]trace.Program)
	for i := range t.Troubles {
		for n, name := range t.Troubles[i].Programs {
			var same []trace.Program
			for program, other := range run {
				if other == name {
					same = append(same, program)
				}
			}
			if len(same) == 1 {
				numbers[same[0]] = trace.Program(n)
			}
		}
	}
	return numbers
}
