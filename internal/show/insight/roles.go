package insight

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
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
		l, err = q.Link(ctx, e.Record.PID, e.Record.EventID)
	}
	if err != nil || l == nil {
		return err
	}
	if l.Finding > 0 && l.Finding <= len(q.data.findings) {
		v.Finding, v.FindingKey, v.Same = l.Finding, q.data.keys[l.Finding-1], q.data.findings[l.Finding-1].Calls
	}
	v.Roles.Role, v.Roles.Waits, v.Roles.WaitLost = string(l.Role), l.Waits, q.Unit.Micros(l.WaitTime)
	if l.LateRank != nil {
		v.Roles.LateRank = new(int64(*l.LateRank))
	}
	if err := q.addOthers(ctx, e, place, l, v); err != nil {
		return err
	}
	var by api.Other
	if v.Roles.Culprit != nil {
		by = *v.Roles.Culprit
	}
	v.Roles.Sentence = l.Sentence(q.Unit, by.Function, trace.Rank(by.Rank), by.Host)
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
			v.Roles.Culprit = new(q.data.other(culprit))
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
		v.Previous, v.Next, err = q.Neighbors(ctx, l.Finding, e.Record)
	}
	return err
}

func (d *runData) other(r *executions.Execution) api.Other {
	return api.Other{
		Event: r.Event, Program: int64(r.Program), Rank: int64(r.Rank), Host: r.Host, Function: r.Function,
		At: d.seconds(r.Entry), Lost: d.micros(r.Lost),
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
