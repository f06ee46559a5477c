package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Issues returns what is wrong with the run, the worst first: as it was stored when
// the run ended, or else found out now.
func (a *Asker) Issues(ctx context.Context) ([]provenance.Issue, error) {
	issues, err := a.StoredIssues(ctx)
	if err != nil || len(issues) > 0 {
		return issues, err
	}
	found, err := a.Findings(ctx, true)
	if err != nil {
		return nil, err
	}
	return found.Issues, nil
}

// StoredIssues returns the issues that were stored when the run ended, the worst first;
// none while it goes on.
func (a *Asker) StoredIssues(ctx context.Context) ([]provenance.Issue, error) {
	rows, err := a.collect(ctx, text("issues"), int32(a.Run.ID))
	if err != nil {
		return nil, err
	}
	issues := make([]provenance.Issue, 0, len(rows))
	for _, row := range rows {
		issue := provenance.Issue{
			Number: whole[int](row[0]), PID: whole[trace.Program](row[1]), Func: word[string](row[2]), Path: word[string](row[3]),
			Kind: word[provenance.AnomalyKind](row[4]), Role: word[provenance.Role](row[5]), Cause: whole[int](row[6]),
			Anomalies: whole[int64](row[7]), LostTime: whole[trace.Micros](row[8]), Longest: whole[trace.Micros](row[9]),
			WorstRank: whole[trace.Rank](row[10]), WorstTime: whole[trace.Micros](row[11]), First: whole[trace.Micros](row[12]), Last: whole[trace.Micros](row[13]),
			Trend: word[provenance.Trend](row[14]), Example: word[string](row[15]),
			Waits: whole[int64](row[16]), WaitRanks: whole[int64](row[17]), WaitTime: whole[trace.Micros](row[18]),
		}
		issue.Before, _ = row[19].(float64) // null for most
		issue.After, _ = row[20].(float64)
		err := errors.Join(
			json.Unmarshal([]byte(word[string](row[21])), &issue.Ranks), json.Unmarshal([]byte(word[string](row[22])), &issue.Hosts),
			json.Unmarshal([]byte(word[string](row[23])), &issue.OverTime))
		if err != nil {
			return nil, fmt.Errorf("issue %d: %w", issue.Number, err)
		}
		issues = append(issues, issue)
	}
	return issues, nil
}

// whole is a whole number of a row; 0 for null.
func whole[T ~int | ~int32 | ~int64 | ~uint32](v any) T {
	n, _ := v.(int64)
	return T(n)
}

// word is a text of a row; empty for null.
func word[T ~string](v any) T {
	s, _ := v.(string)
	return T(s)
}

// Linked is what is known of an anomaly and others.
type Linked struct {
	provenance.Link
	// Of Culprit, if it is not empty.
	CulpritRank                trace.Rank
	CulpritHost, CulpritCalled string
}

// Link returns what an anomaly has to do with others: as it was stored, or else
// found out now; nil if nothing is known of it.
func (a *Asker) Link(ctx context.Context, program trace.Program, event string) (*Linked, error) {
	link, err := a.LinkOnly(ctx, program, event)
	if err != nil || link == nil {
		return nil, err
	}
	l := &Linked{Link: *link}
	if l.Culprit == "" {
		return l, nil
	}
	culprit, err := a.Related(ctx, l.CulpritPID, l.Culprit)
	if err == nil && culprit != nil {
		l.CulpritRank, l.CulpritHost, l.CulpritCalled = culprit.Rank, culprit.Host, culprit.Function
	}
	return l, err
}

// LinkOnly is Link without what is known of the culprit.
func (a *Asker) LinkOnly(ctx context.Context, program trace.Program, event string) (*provenance.Link, error) {
	var rank any // to be found sooner
	if n, ok := eventNumbers(event); ok {
		rank = int32(n[0])
	}
	rows, err := a.collect(ctx, text("link"), int32(a.Run.ID), int32(program), event, rank)
	if err != nil {
		return nil, err
	}
	if len(rows) == 1 {
		row := rows[0]
		l := &provenance.Link{
			PID: program, RID: whole[trace.Rank](row[0]), EventID: event, Issue: whole[int](row[1]), Role: word[provenance.Role](row[2]),
			CulpritPID: whole[trace.Program](row[3]), Culprit: word[string](row[4]), Hops: whole[int](row[6]),
			Waits: whole[int64](row[7]), WaitRanks: whole[int64](row[8]), WaitTime: whole[trace.Micros](row[9]),
		}
		if row[5] != nil {
			late := whole[trace.Rank](row[5])
			l.LateRank = &late
		}
		return l, nil
	}
	issues, err := a.StoredIssues(ctx)
	if err != nil || len(issues) > 0 {
		return nil, err // it was withdrawn
	}
	found, err := a.Findings(ctx, true)
	if err != nil {
		return nil, err
	}
	for i := range found.Links {
		if l := &found.Links[i]; l.PID == program && l.EventID == event {
			return l, nil
		}
	}
	return nil, nil //nolint:nilnil // nothing is known
}

// Findings finds out what is wrong with the run, from its records. provisional says
// that anomalies count of which no review has told.
func (a *Asker) Findings(ctx context.Context, provisional bool) (*blame.Findings, error) {
	_, found, err := a.FindOut(ctx, provisional)
	return found, err
}

// FindOut does what Findings does, and returns the anomalies that it looked at, too;
// the links are in their order.
func (a *Asker) FindOut(ctx context.Context, provisional bool) (*blame.Run, *blame.Findings, error) {
	run, err := a.anomalies(ctx, provisional)
	if err != nil {
		return nil, nil, err
	}
	return run, blame.Conclude(run, blame.Find(run), a.Run.Decoded().Changes), nil
}

// eventKey names an execution.
type eventKey struct {
	program int64
	id      string
}

// anomalies reads what is needed of all anomalies.
func (a *Asker) anomalies(ctx context.Context, provisional bool) (*blame.Run, error) {
	paths := make(map[[2]int64]string)
	err := a.each(ctx, text("blame_paths"), func(row []any) {
		paths[[2]int64{row[0].(int64), row[1].(int64)}] = row[2].(string)
	})
	if err != nil {
		return nil, err
	}
	run := &blame.Run{Begin: a.Begin}
	at := make(map[eventKey]int)
	err = a.each(ctx, text("blame_anomalies"), func(row []any) {
		at[eventKey{row[0].(int64), row[3].(string)}] = len(run.Anomalies)
		run.Anomalies = append(run.Anomalies, blame.Anomaly{
			Program: whole[trace.Program](row[0]), Rank: whole[trace.Rank](row[1]), Thread: whole[trace.Thread](row[2]), Event: word[string](row[3]),
			Host: word[string](row[4]), Func: word[string](row[5]), Path: paths[[2]int64{row[0].(int64), row[6].(int64)}],
			Kind: word[provenance.AnomalyKind](row[7]), Wait: run.WaitOf(word[string](row[5])), OnDevice: row[8].(bool), Calls: row[9].(bool),
			Entry: whole[trace.Micros](row[10]), Exit: whole[trace.Micros](row[11]), Lost: whole[trace.Micros](row[12]),
		})
		run.End = max(run.End, whole[trace.Micros](row[13]))
	}, provisional)
	if err != nil || len(run.Anomalies) == 0 {
		return run, err
	}
	return run, errors.Join(a.inStep(ctx, run, at), a.messages(ctx, run, at))
}

// inStep finds out when ranks left collective calls before they waited.
func (a *Asker) inStep(ctx context.Context, run *blame.Run, at map[eventKey]int) error {
	var marks []string
	var names []any
	err := a.each(ctx, text("blame_functions"), func(row []any) {
		if run.WaitOf(row[0].(string)) == blame.Group {
			names = append(names, row[0])
			marks = append(marks, fmt.Sprintf("$%d", len(names)+1))
		}
	})
	if err != nil || len(names) == 0 {
		return err
	}
	return a.each(ctx, strings.ReplaceAll(text("blame_steps"), "/*names*/", strings.Join(marks, ", ")), func(row []any) {
		if i, ok := at[eventKey{row[0].(int64), row[1].(string)}]; ok {
			run.Anomalies[i].LeftStep(whole[trace.Micros](row[2]))
		}
	}, names...)
}

// messages reads those that were received in anomalies and sent around them.
func (a *Asker) messages(ctx context.Context, run *blame.Run, at map[eventKey]int) error {
	until := make(map[int]trace.Micros)
	err := a.each(ctx, text("blame_windows"), func(row []any) {
		if i, ok := at[eventKey{row[0].(int64), row[1].(string)}]; ok {
			until[i] = whole[trace.Micros](row[2])
		}
	})
	if err != nil {
		return err
	}
	return a.each(ctx, text("blame_messages"), func(row []any) {
		i, ok := at[eventKey{row[0].(int64), row[1].(string)}]
		if !ok {
			return
		}
		n := &run.Anomalies[i]
		sent, own := row[2].(bool), row[7] == true
		m := blame.Message{Partner: whole[trace.Rank](row[3]), Sent: sent, Tag: whole[int32](row[5]), Time: whole[trace.Micros](row[6])}
		if sent {
			m.Partner = whole[trace.Rank](row[4])
			run.Sends = append(run.Sends, blame.Send{
				Program: n.Program, From: whole[trace.Rank](row[3]), To: m.Partner, Tag: m.Tag, Time: m.Time, Until: max(n.Exit, until[i]),
			})
		}
		if own {
			n.Message(m)
		}
	})
}

// each calls f for each row of the run.
func (a *Asker) each(ctx context.Context, sql string, f func(row []any), args ...any) error {
	rows, err := a.Query(ctx, sql, append([]any{int32(a.Run.ID)}, args...)...)
	if err != nil {
		return err
	}
	for row, err := range rows.All {
		if err != nil {
			return err
		}
		f(row)
	}
	return nil
}
