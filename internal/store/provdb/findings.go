package provdb

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// IssueColumns are those of the table issues, in the order of IssueRow.
var IssueColumns = []string{
	"run", "issue", "pid", "func", "call_path", "kind", "role", "cause", "anomalies", "lost_us", "longest_us", "ranks", "hosts",
	"worst_rank", "worst_rank_lost_us", "first_us", "last_us", "trend", "example", "waits", "wait_ranks", "waits_lost_us",
	"before_us", "after_us", "rank_list", "host_list", "over_time",
}

// IssueRow returns the values of an issue's columns: nil, int32, int64, float64,
// string, or json.RawMessage.
func IssueRow(run RunID, i *provenance.Issue) ([]any, error) {
	var worst, worstTime, example, before, after any = int32(i.WorstRank), int64(i.WorstTime), i.Example, nil, nil
	if i.IsChange() {
		worst, worstTime, example, before, after = nil, nil, nil, i.Before, i.After
	}
	row := []any{
		int32(run), int32(i.Number), int32(i.PID), i.Func, i.Path, string(i.Kind), orNull(string(i.Role)), numberOrNull(i.Cause),
		i.Anomalies, int64(i.LostTime), int64(i.Longest), int64(len(i.Ranks)), int64(len(i.Hosts)), worst, worstTime,
		int64(i.First), int64(i.Last), orNull(string(i.Trend)), example, i.Waits, i.WaitRanks, int64(i.WaitTime), before, after,
	}
	for _, list := range []any{notNil(i.Ranks), notNil(i.Hosts), notNil(i.OverTime)} {
		text, err := json.Marshal(list)
		if err != nil {
			return nil, fmt.Errorf("issue %d: %w", i.Number, err)
		}
		row = append(row, json.RawMessage(text))
	}
	return row, nil
}

// LinkColumns are those of the table links, in the order of LinkRow.
var LinkColumns = []string{
	"run", "pid", "rid", "event_id", "issue", "role", "culprit_pid", "culprit_event_id", "late_rid", "hops", "waits", "wait_ranks",
	"waits_lost_us",
}

// LinkRow returns the values of a link's columns: nil, int32, int64 or string.
func LinkRow(run RunID, l *provenance.Link) []any {
	var culprit, late any
	if l.Culprit != "" {
		culprit = int32(l.CulpritPID)
	}
	if l.LateRank != nil {
		late = int32(*l.LateRank)
	}
	return []any{
		int32(run), int32(l.PID), int32(l.RID), l.EventID, int32(l.Issue), orNull(string(l.Role)), culprit, orNull(l.Culprit), late,
		int32(l.Hops), l.Waits, l.WaitRanks, int64(l.WaitTime),
	}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func numberOrNull(n int) any {
	if n == 0 {
		return nil
	}
	return int32(n)
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// HasFindings reports whether the batch says what is wrong with the run.
func (b *Batch) HasFindings() bool { return len(b.Issues)+len(b.Links) > 0 }

// VoidsFindings reports whether what was found out before holds no longer.
func (b *Batch) VoidsFindings() bool { return len(b.Anomalies)+len(b.Typical) > 0 || b.HasFindings() }

func (c *cleaner) issue(i provenance.Issue) provenance.Issue {
	for _, s := range []*string{&i.Func, &i.Path, (*string)(&i.Kind), (*string)(&i.Role), (*string)(&i.Trend), &i.Example} {
		*s = provenance.Text(*s)
	}
	i.Hosts = slices.Clone(i.Hosts)
	for k := range i.Hosts {
		i.Hosts[k] = provenance.Text(i.Hosts[k])
	}
	return i
}

func (c *cleaner) link(l provenance.Link) provenance.Link {
	for _, s := range []*string{&l.EventID, &l.Culprit, (*string)(&l.Role)} {
		*s = provenance.Text(*s)
	}
	return l
}
