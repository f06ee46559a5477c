package provenance

import "github.com/chimbuko/chimbuko/internal/base/trace"

// Role is the part that an anomaly played in making others wait.
type Role string

// The roles of anomalies; most have none.
const (
	Culprit Role = "culprit" // others waited because of it
	Victim  Role = "victim"  // it waited for someone who was late
)

// Kinds of issues that no single anomaly has.
const (
	Burst AnomalyKind = "burst" // many slow executions in a short time
	Shift AnomalyKind = "shift" // from some time on a function takes longer, or less time
	Drift AnomalyKind = "drift" // it takes longer and longer, or less and less time
)

// IssueKinds returns all kinds of issues.
func IssueKinds() []AnomalyKind { return append(AnomalyKinds(), Burst, Shift, Drift) }

// Trend describes how the anomalies of an issue are spread over the run.
type Trend string

// The trends; an issue with few anomalies has none.
const (
	More   Trend = "more"   // most are in its second half
	Fewer  Trend = "fewer"  // most are in its first half
	Steady Trend = "steady" // both halves have about as many
)

// Issue is one thing that is wrong with a run: all anomalies with the same program,
// function, call path, kind and cause, or a lasting change of a function.
type Issue struct {
	Number int           `json:"issue"` // 1 for the worst
	PID    trace.Program `json:"pid"`
	Func   string        `json:"func"`
	Path   string        `json:"call_path"` // functions from the outermost on; empty for a lasting change
	Kind   AnomalyKind   `json:"kind"`
	Role   Role          `json:"role,omitempty"` // victim: all of them are; culprit: one of them is, at least
	// Cause is the issue of what made victims wait; 0: it is not known.
	Cause     int          `json:"cause,omitempty"`
	Anomalies int64        `json:"anomalies"` // of a lasting change: calls since then
	LostTime  trace.Micros `json:"lost_us"`   // all of them together
	Longest   trace.Micros `json:"longest_us"`
	Ranks     []trace.Rank `json:"ranks"`
	Hosts     []string     `json:"hosts"`
	WorstRank trace.Rank   `json:"worst_rank"` // that lost most
	WorstTime trace.Micros `json:"worst_rank_lost_us"`
	First     trace.Micros `json:"first_us"` // entry
	Last      trace.Micros `json:"last_us"`  // exit
	Trend     Trend        `json:"trend,omitempty"`
	OverTime  []int64      `json:"over_time"` // anomalies in each twentieth of the run
	Example   string       `json:"example"`   // event id of the one that lost most
	// What waits of other calls lost because of it.
	Waits     int64        `json:"waits,omitempty"`
	WaitRanks int64        `json:"wait_ranks,omitempty"`
	WaitTime  trace.Micros `json:"waits_lost_us,omitzero"`
	// Of a lasting change: the median before and after.
	Before float64 `json:"before_us,omitzero"`
	After  float64 `json:"after_us,omitzero"`
}

// IsChange reports whether the issue is a lasting change of a function, which has
// no anomalies.
func (i *Issue) IsChange() bool { return i.Kind == Shift || i.Kind == Drift }

// Link describes which issue an anomaly belongs to, and what it has to do with others.
type Link struct {
	PID     trace.Program `json:"pid"`
	RID     trace.Rank    `json:"rid"`
	EventID string        `json:"event_id"`
	Issue   int           `json:"issue"`
	Role    Role          `json:"role,omitempty"`
	// Culprit is the execution that made a victim wait. Of a culprit it is the one
	// that made the same rank later still, or that of another rank which was as late;
	// empty: none.
	Culprit    string        `json:"culprit_event_id,omitempty"`
	CulpritPID trace.Program `json:"culprit_pid,omitempty"`
	// LateRank is the rank that a victim waited for in the end; nil: not known.
	LateRank *trace.Rank `json:"late_rank,omitempty"`
	// Hops is the number of waits from a victim to its culprit, itself included.
	Hops int `json:"hops,omitempty"`
	// What others lost because of it, and no one else more.
	Waits     int64        `json:"waits,omitempty"`
	WaitRanks int64        `json:"wait_ranks,omitempty"`
	WaitTime  trace.Micros `json:"waits_lost_us,omitzero"`
}
