package provenance

import (
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Role is the role of an anomaly in the waits of others.
type Role string

// The roles of anomalies; most have none.
const (
	Culprit Role = "culprit" // others waited because of it
	Victim  Role = "victim"  // it waited for a late rank
)

// FindingKind is the question that a finding answers.
type FindingKind string

// The kinds of findings.
const (
	Outlier       FindingKind = "outlier"      // executions took far longer than others like them
	RecurringMode FindingKind = "recurring"    // a share of the calls is slow by a similar time throughout the run
	LastingChange FindingKind = "change"       // a function is slower, or faster, from some time on or for a while
	ExcessWork    FindingKind = "excess-work"  // executions did more than usual
	Interference  FindingKind = "interference" // delays hit whatever runs, in proportion to its time
	Waiting       FindingKind = "wait"         // calls waited for others
	SlowPlace     FindingKind = "slow-peer"    // a rank, host, thread, GPU or role is slower than its peers
)

// FindingKinds returns all kinds of findings.
func FindingKinds() []FindingKind {
	return []FindingKind{Outlier, RecurringMode, LastingChange, ExcessWork, Interference, Waiting, SlowPlace}
}

// Form is when the executions of a finding happened, if that is remarkable.
type Form string

// The forms of findings; most have none.
const (
	Burst Form = "burst" // nearly all are in short sequences
	Shift Form = "shift" // of a change: at once
	Drift Form = "drift" // of a change: gradually

	Temporary Form = "temporary" // of a change: for a while

	Recording Form = "recording" // of interference: when the trace was written
	Long      Form = "long"      // of interference: delays that are too long to be like the others of the same program

	Rare Form = "rare" // where the function is usually not called

	Lasting Form = "lasting" // of excess work: a rank or GPU makes more calls than its peers, from some time on or for a while
)

// Late is the late part that lost most of the time of a finding.
type Late string

// The late parts. Late is empty if it is unknown, or if no part lost more than half of the time.
const (
	LateHost          Late = "host"          // code on a processor
	LateDevice        Late = "device"        // a GPU: its kernels and copies, and calls that wait for it
	LateCommunication Late = "communication" // messages and collective operations between ranks, also on GPUs
)

// Severity is how much attention a finding deserves.
type Severity string

// The severities.
const (
	Alarm Severity = "alarm"
	Note  Severity = "info" // a property of the program: all ranks have it at all times
)

// MinorShare is the least share of the time of all ranks that is worth a person's time:
// findings below it are minor, and listed only on request.
const MinorShare = 1e-4

// Trend describes how the anomalies of a finding are spread over the run.
type Trend string

// The trends; a finding with few anomalies has none.
const (
	More   Trend = "more"   // most are in the second half
	Fewer  Trend = "fewer"  // most are in the first half
	Steady Trend = "steady" // both halves have about the same number
)

// Finding is a problem of a run, or a notable property: a group of anomalies, or a lasting
// change of a function. Its times, also those named _us, are in ticks.
type Finding struct {
	Number   int           `json:"finding"` // 1 for the costliest
	Kind     FindingKind   `json:"kind"`
	Form     Form          `json:"form,omitempty"`
	Status   Status        `json:"status"` // provisional, confirmed or withdrawn
	Severity Severity      `json:"severity"`
	PID      trace.Program `json:"program"`
	Func     string        `json:"function"`       // the costliest of several; empty for interference
	Path     string        `json:"call_path"`      // functions from the outermost; empty if there are several
	Role     Role          `json:"role,omitempty"` // victim: all executions are; culprit: at least one is
	// Late is the part that lost most of LostOwn; for waits with a cause, that of the cause.
	Late Late `json:"late,omitempty"`
	// Cause is the finding that made these wait; 0 if unknown.
	Cause int          `json:"cause,omitempty"`
	Ranks []trace.Rank `json:"ranks"` // none for changes of a function, which concern all
	Hosts []string     `json:"hosts"`
	// Seconds since the start of the run. To is nil while it lasts.
	From float64  `json:"from_s"`
	To   *float64 `json:"to_s"`
	// Calls is the number of affected calls, of OfCalls of the function or call path; 0 if
	// unknown.
	Calls   int64 `json:"calls"`
	OfCalls int64 `json:"of_calls"`
	// Expected and Actual are the medians of unaffected and affected calls. For
	// interference Actual is the median delay.
	Expected float64 `json:"expected_us"`
	Actual   float64 `json:"actual_us"`
	// Period is the time between executions on a thread, in seconds; nil if irregular.
	Period *float64 `json:"period_s"`
	// LostOwn is the time that its executions lost, and LostCaused the time that others lost
	// waiting for them; Lost is their sum.
	LostOwn    trace.Ticks `json:"lost_own_us"`
	LostCaused trace.Ticks `json:"lost_caused_us"`
	Lost       trace.Ticks `json:"lost_us"`
	Share      float64     `json:"share"` // Lost as a share of the time of all ranks
	// Confidence is the probability that the detector's false alarms alone would not produce this
	// many flags.
	Confidence float64  `json:"confidence"`
	Summary    string   `json:"summary"`
	Reason     string   `json:"reason,omitempty"` // of a withdrawal
	Examples   []string `json:"examples"`         // event ids, the worst first

	Longest   trace.Ticks `json:"longest_us"`
	WorstRank trace.Rank  `json:"worst_rank"` // that lost the most time
	WorstTime trace.Ticks `json:"worst_rank_lost_us"`
	First     trace.Ticks `json:"first_us"` // entry
	Last      trace.Ticks `json:"last_us"`  // exit
	Trend     Trend       `json:"trend,omitempty"`
	OverTime  []int64     `json:"over_time"` // executions that ran in each twentieth of the run
	Waits     int64       `json:"waits"`     // of other calls because of it
	WaitRanks int64       `json:"wait_ranks"`
}

// IsChange reports whether the finding is a change of a function, without anomalies. In older runs a rank
// or host that was slow for a while is a change, too, and has ranks.
func (f *Finding) IsChange() bool { return f.Kind == LastingChange && len(f.Ranks) == 0 }

// OfPeers reports whether the finding compares a place with its peers.
func (f *Finding) OfPeers() bool {
	return f.Kind == SlowPlace || f.Kind == ExcessWork && f.Form == Lasting
}

// Minor reports whether the finding costs too little to be listed by default.
func (f *Finding) Minor() bool { return f.Share < MinorShare }

// Listed reports whether the finding is in the list that people read first: not withdrawn,
// not minor, not shown with its cause, and not a note.
func (f *Finding) Listed() bool { return f.notable() && f.Severity != Note }

// Noted reports whether the finding is a note about normal behavior that costs enough to be listed:
// it is not a problem, and does not count as one.
func (f *Finding) Noted() bool { return f.notable() && f.Severity == Note }

func (f *Finding) notable() bool { return f.Cause == 0 && f.Status != Withdrawn && !f.Minor() }

// Example returns the event id of the execution that lost the most time; empty for none.
func (f *Finding) Example() string {
	if len(f.Examples) == 0 {
		return ""
	}
	return f.Examples[0]
}

// Link has the finding of an anomaly and its relation to other anomalies.
type Link struct {
	PID     trace.Program `json:"pid"`
	RID     trace.Rank    `json:"rid"`
	EventID string        `json:"event_id"`
	Finding int           `json:"finding"`
	Role    Role          `json:"role,omitempty"`
	// Culprit is the execution that made a victim wait. For a culprit, it is another one that
	// delayed the same rank more, or one of another rank that was as late. Empty for none.
	Culprit    string        `json:"culprit_event_id,omitempty"`
	CulpritPID trace.Program `json:"culprit_pid,omitempty"`
	// LateRank is the rank that a victim ultimately waited for; nil if unknown.
	LateRank *trace.Rank `json:"late_rank,omitempty"`
	// Hops is the number of waits from a victim to its culprit, including the victim.
	Hops int `json:"hops,omitempty"`
	// Waits of others with this anomaly as their main culprit.
	Waits     int64       `json:"waits,omitempty"`
	WaitRanks int64       `json:"wait_ranks,omitempty"`
	WaitTime  trace.Ticks `json:"waits_lost_us,omitzero"`
}

// Sentence describes which execution waited for which. function, rank and host are those of
// Culprit; function is empty if they are unknown. unit is that of the run.
func (l *Link) Sentence(unit trace.Unit, function string, rank trace.Rank, host string) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch victim, culprit := l.Role == Victim, l.Role == Culprit; {
	case victim && function != "":
		where := ""
		if host != "" && host != "Unknown" {
			where = " (" + text.OneLine(host) + ")"
		}
		if l.CulpritPID != l.PID {
			where += fmt.Sprintf(" of program %d", l.CulpritPID)
		}
		add("It waited because of %s on rank %d%s", text.ShortName(function), rank, where)
	case victim && l.LateRank != nil:
		add("It waited for rank %d, which was late for an unknown reason", *l.LateRank)
	case victim:
		add("It waited for an unknown rank that was late")
	case culprit && l.Waits > 0:
		lost := text.Duration(unit.Micros(l.WaitTime))
		add("%s on %s lost %s because of it", text.Count(l.Waits, "wait"), text.Count(l.WaitRanks, "rank"), lost)
	case culprit && function != "":
		add("Others waited for its rank, most because of %s", text.ShortName(function))
	}
	if l.Role == Culprit && l.LateRank != nil {
		add("it waited for a late message from rank %d, which has no anomaly itself", *l.LateRank)
	}
	if l.Hops > 1 {
		add("with %s between them", text.Count(l.Hops-1, "other wait"))
	}
	return strings.Join(parts, "; ")
}
