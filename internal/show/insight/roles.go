package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// addRoles adds what an anomaly has to do with others: as it was stored when the run
// ended, or else by what is known now. Where a run that goes on has so many anomalies
// that this is not kept, nothing is told.
func (q *asked) addRoles(ctx context.Context, e *query.Event, place *query.Place, v *api.Evidence) error {
	if !v.Anomaly || e.Record.Status == provenance.Withdrawn || q.known.wrong != nil {
		return nil
	}
	var err error
	var l *provenance.Link
	if q.known.stored {
		l, err = q.LinkOnly(ctx, e.Record.PID, e.Record.EventID)
	} else {
		l = q.known.link(trace.EventKey{Program: e.Record.PID, ID: e.Record.EventID})
	}
	if err != nil || l == nil {
		return err
	}
	if l.Issue > 0 && l.Issue <= len(q.known.issues) {
		v.Issue, v.IssueKey, v.Same = l.Issue, q.known.keys[l.Issue-1], q.known.issues[l.Issue-1].Anomalies
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

// link is what is known now of an anomaly; nil: nothing.
func (k *known) link(key trace.EventKey) *provenance.Link {
	i, ok := k.linkOf[key]
	if !ok {
		return nil
	}
	return &k.links[i]
}

// addOthers adds culprit, victims, and the anomalies of the issue before and after.
func (q *asked) addOthers(ctx context.Context, e *query.Event, place *query.Place, l *provenance.Link, v *api.Evidence) (err error) {
	if l.Culprit != "" {
		culprit, err := q.Related(ctx, l.CulpritPID, l.Culprit)
		if err != nil {
			return err
		}
		if culprit != nil {
			o := q.known.other(culprit)
			v.Roles.Culprit = &o
		}
	}
	if !q.known.stored {
		q.known.addNow(l, v)
		return nil
	}
	if l.Waits > 0 {
		victims, err := q.Victims(ctx, l.PID, l.EventID, maxVictims)
		if err != nil {
			return err
		}
		for i := range victims {
			v.Roles.Victims = append(v.Roles.Victims, q.known.other(&victims[i]))
		}
	}
	if place != nil {
		v.Previous, v.Next, err = q.Neighbors(ctx, l.Issue, e.Record, place)
	}
	return err
}

func (k *known) other(r *query.Related) api.Other {
	return api.Other{
		Event: r.Event, Program: int64(r.Program), Rank: int64(r.Rank), Host: r.Host, Function: r.Function,
		At: k.seconds(r.Entry), Lost: int64(r.Lost),
	}
}

// addNow adds victims and neighbors by what is known now.
func (k *known) addNow(l *provenance.Link, v *api.Evidence) {
	var victims, same []int
	for i := range k.links {
		o := &k.links[i]
		if o.Role == provenance.Victim && o.Culprit == l.EventID && o.CulpritPID == l.PID {
			victims = append(victims, i)
		}
		if o.Issue == l.Issue {
			same = append(same, i)
		}
	}
	all := k.found.Anomalies
	slices.SortStableFunc(victims, func(a, b int) int { return cmp.Compare(all[b].Lost, all[a].Lost) })
	for _, i := range victims[:min(len(victims), maxVictims)] {
		a := &all[i]
		v.Roles.Victims = append(v.Roles.Victims, api.Other{
			Event: a.Event, Program: int64(a.Program), Rank: int64(a.Rank), Host: a.Host,
			Function: a.Func, At: k.seconds(a.Entry), Lost: int64(a.Lost),
		})
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

// roleSentence tells in words who waited for whom.
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
		texts = append(texts, fmt.Sprintf("It waited for rank %d; why that was late is not known", *l.LateRank))
	case l.Role == provenance.Victim:
		texts = append(texts, "It waited for somebody who was late; who that was is not known")
	case l.Role == provenance.Culprit && l.Waits > 0:
		texts = append(texts, fmt.Sprintf("%s on %s lost %s because of it", text.Count(l.Waits, "wait"), text.Count(l.WaitRanks, "rank"),
			durationText(int64(l.WaitTime))))
	case l.Role == provenance.Culprit && r.Culprit != nil:
		texts = append(texts, fmt.Sprintf("Others waited for its rank, most because of %s", text.ShortName(r.Culprit.Function)))
	}
	if l.Role == provenance.Culprit && l.LateRank != nil {
		texts = append(texts, fmt.Sprintf("what it waited for came late from rank %d, which was not late itself as far as is known", *l.LateRank))
	}
	if l.Hops > 1 {
		texts = append(texts, fmt.Sprintf("there are %s between them", text.Count(int64(l.Hops-1), "other wait")))
	}
	return strings.Join(texts, "; ")
}

func durationText(us int64) string { return text.Duration(float64(us)) }
