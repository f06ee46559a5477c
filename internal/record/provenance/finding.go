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

// Kinds of findings, besides those of anomalies.
const (
	Burst AnomalyKind = "burst" // many slow executions in a short time
	Shift AnomalyKind = "shift" // a function became slower, or faster, at some time
	Drift AnomalyKind = "drift" // a function becomes slower, or faster, over time
)

// FindingKinds returns all kinds of findings.
func FindingKinds() []AnomalyKind { return append(AnomalyKinds(), Burst, Shift, Drift) }

// Trend describes how the anomalies of a finding are spread over the run.
type Trend string

// The trends; a finding with few anomalies has none.
const (
	More   Trend = "more"   // most are in the second half
	Fewer  Trend = "fewer"  // most are in the first half
	Steady Trend = "steady" // both halves have about the same number
)

// Finding is a problem of a run: all anomalies with the same program, function, call path,
// kind and cause, or a lasting change of a function.
type Finding struct {
	Number int           `json:"finding"` // 1 for the worst
	PID    trace.Program `json:"pid"`
	Func   string        `json:"func"`
	Path   string        `json:"call_path"` // functions from the outermost; empty for a lasting change
	Kind   AnomalyKind   `json:"kind"`
	Role   Role          `json:"role,omitempty"` // victim: all anomalies are; culprit: at least one is
	// Cause is the finding that made victims wait; 0 if unknown.
	Cause     int          `json:"cause,omitempty"`
	Anomalies int64        `json:"anomalies"` // of a lasting change: calls since the change
	LostTime  trace.Micros `json:"lost_us"`   // of all anomalies
	Longest   trace.Micros `json:"longest_us"`
	Ranks     []trace.Rank `json:"ranks"`
	Hosts     []string     `json:"hosts"`
	WorstRank trace.Rank   `json:"worst_rank"` // that lost the most time
	WorstTime trace.Micros `json:"worst_rank_lost_us"`
	First     trace.Micros `json:"first_us"` // entry
	Last      trace.Micros `json:"last_us"`  // exit
	Trend     Trend        `json:"trend,omitempty"`
	OverTime  []int64      `json:"over_time"` // anomalies in each twentieth of the run
	Example   string       `json:"example"`   // event id of the anomaly that lost the most time
	// Waits of other calls because of it.
	Waits     int64        `json:"waits,omitempty"`
	WaitRanks int64        `json:"wait_ranks,omitempty"`
	WaitTime  trace.Micros `json:"waits_lost_us,omitzero"`
	// Medians before and after a lasting change.
	Before float64 `json:"before_us,omitzero"`
	After  float64 `json:"after_us,omitzero"`
}

// IsChange reports whether the finding is a lasting change of a function, without anomalies.
func (i *Finding) IsChange() bool { return i.Kind == Shift || i.Kind == Drift }

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
	Waits     int64        `json:"waits,omitempty"`
	WaitRanks int64        `json:"wait_ranks,omitempty"`
	WaitTime  trace.Micros `json:"waits_lost_us,omitzero"`
}

// Sentence describes which execution waited for which. function, rank and host are those of
// Culprit; function is empty if they are unknown.
func (l *Link) Sentence(function string, rank trace.Rank, host string) string {
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
		add("%s on %s lost %s because of it", text.Count(l.Waits, "wait"), text.Count(l.WaitRanks, "rank"), text.Duration(float64(l.WaitTime)))
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
