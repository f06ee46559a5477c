package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// addRoles adds how an anomaly relates to others: as stored at the end of the run, or as
// computed now. It adds nothing if a live run has too many anomalies for that.
func (q *runQuery) addRoles(ctx context.Context, e *executions.Event, place *executions.Place, v *api.Evidence) error {
	if !v.Anomaly || e.Record.Status == provenance.Withdrawn || q.data.err != nil {
		return nil
	}
	var err error
	l := q.data.link(e.Record.PID, e.Record.EventID)
	if q.data.stored {
		l, err = q.LinkOnly(ctx, e.Record.PID, e.Record.EventID)
	}
	if err != nil || l == nil {
		return err
	}
	if l.Finding > 0 && l.Finding <= len(q.data.findings) {
		v.Finding, v.FindingKey, v.Same = l.Finding, q.data.keys[l.Finding-1], q.data.findings[l.Finding-1].Anomalies
	}
	v.Roles.Role, v.Roles.Waits, v.Roles.WaitLost = string(l.Role), l.Waits, int64(l.WaitTime)
	if l.LateRank != nil {
		late := int64(*l.LateRank)
		v.Roles.LateRank = &late
	}
	if err := q.addOthers(ctx, e, place, l, v); err != nil {
		return err
	}
	v.Roles.Sentence = roleSentence(l, &v.Roles)
	return nil
}

// addOthers adds culprit, victims, and the previous and next anomaly of the finding.
func (q *runQuery) addOthers(
	ctx context.Context, e *executions.Event, place *executions.Place, l *provenance.Link, v *api.Evidence,
) (err error) {
	if l.Culprit != "" {
		culprit, err := q.Related(ctx, l.CulpritPID, l.Culprit)
		if err != nil {
			return err
		}
		if culprit != nil {
			o := q.data.other(culprit)
			v.Roles.Culprit = &o
		}
	}
	if !q.data.stored {
		q.data.addComputed(l, v)
		return nil
	}
	if l.Waits > 0 {
		victims, err := q.Victims(ctx, l.PID, l.EventID, maxVictims)
		if err != nil {
			return err
		}
		for i := range victims {
			v.Roles.Victims = append(v.Roles.Victims, q.data.other(&victims[i]))
		}
	}
	if place != nil {
		v.Previous, v.Next, err = q.Neighbors(ctx, l.Finding, e.Record, place)
	}
	return err
}

func (d *runData) other(r *executions.Execution) api.Other {
	return api.Other{
		Event: r.Event, Program: int64(r.Program), Rank: int64(r.Rank), Host: r.Host, Function: r.Function,
		At: d.seconds(r.Entry), Lost: int64(r.Lost),
	}
}

// addComputed adds victims and neighbors by the links that are not stored.
func (d *runData) addComputed(l *provenance.Link, v *api.Evidence) {
	var victims, same []int
	for i := range d.links {
		o := &d.links[i]
		if o.Role == provenance.Victim && o.Culprit == l.EventID && o.CulpritPID == l.PID {
			victims = append(victims, i)
		}
		if o.Finding == l.Finding {
			same = append(same, i)
		}
	}
	all := d.anomalies.Anomalies
	slices.SortStableFunc(victims, func(a, b int) int { return cmp.Compare(all[b].Lost, all[a].Lost) })
	for _, i := range victims[:min(len(victims), maxVictims)] {
		a := &all[i]
		v.Roles.Victims = append(v.Roles.Victims, d.other(&executions.Execution{
			Program: a.Program, Rank: a.Rank, Event: a.Event, Host: a.Host, Function: a.Func, Entry: a.Entry, Lost: a.Lost,
		}))
	}
	slices.SortStableFunc(same, func(a, b int) int {
		return cmp.Or(cmp.Compare(all[a].Entry, all[b].Entry), strings.Compare(all[a].Event, all[b].Event))
	})
	at := slices.IndexFunc(same, func(i int) bool { return all[i].Event == l.EventID })
	if at > 0 {
		v.Previous = all[same[at-1]].Event
	}
	if at >= 0 && at+1 < len(same) {
		v.Next = all[same[at+1]].Event
	}
}

// roleSentence describes which execution waited for which.
func roleSentence(l *provenance.Link, r *api.Roles) string {
	var texts []string
	switch {
	case l.Role == provenance.Victim && r.Culprit != nil:
		who := fmt.Sprintf("%s on rank %d", text.ShortName(r.Culprit.Function), r.Culprit.Rank)
		if r.Culprit.Host != "" && r.Culprit.Host != "Unknown" {
			who += " (" + text.OneLine(r.Culprit.Host) + ")"
		}
		if r.Culprit.Program != int64(l.PID) {
			who += fmt.Sprintf(" of program %d", r.Culprit.Program)
		}
		texts = append(texts, "It waited because of "+who)
	case l.Role == provenance.Victim && l.LateRank != nil:
		texts = append(texts, fmt.Sprintf("It waited for rank %d, which was late for an unknown reason", *l.LateRank))
	case l.Role == provenance.Victim:
		texts = append(texts, "It waited for an unknown rank that was late")
	case l.Role == provenance.Culprit && l.Waits > 0:
		texts = append(texts, fmt.Sprintf("%s on %s lost %s because of it", text.Count(l.Waits, "wait"), text.Count(l.WaitRanks, "rank"),
			text.Duration(float64(l.WaitTime))))
	case l.Role == provenance.Culprit && r.Culprit != nil:
		texts = append(texts, fmt.Sprintf("Others waited for its rank, most because of %s", text.ShortName(r.Culprit.Function)))
	}
	if l.Role == provenance.Culprit && l.LateRank != nil {
		texts = append(texts, fmt.Sprintf("it waited for a late message from rank %d, which has no anomaly itself", *l.LateRank))
	}
	if l.Hops > 1 {
		texts = append(texts, fmt.Sprintf("there are %s between them", text.Count(l.Hops-1, "other wait")))
	}
	return strings.Join(texts, "; ")
}
