package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// Findings returns the findings of the run, the worst first: those stored when the run ended, or else
// those found now. Only findings found now have links.
func (a *Queries) Findings(ctx context.Context) (*findings.Result, error) {
	stored, err := a.StoredFindings(ctx)
	if err == nil && len(stored) == 0 {
		return a.Conclude(ctx, true)
	}
	return &findings.Result{Findings: stored}, err
}

// StoredFindings returns the findings that were stored when the run ended, the worst first. It returns
// none while the run is in progress.
func (a *Queries) StoredFindings(ctx context.Context) ([]provenance.Finding, error) {
	return executions.ReadAll[provenance.Finding](ctx, a, text("findings"))
}

// FindingsAndLinks returns the findings of the run as Findings does, with the links of its anomalies.
func (a *Queries) FindingsAndLinks(ctx context.Context) (*findings.Result, error) {
	result, err := a.Findings(ctx)
	if err == nil && result.Links == nil {
		result.Links, err = executions.ReadAll[provenance.Link](ctx, a, text("links"))
	}
	return result, err
}

// Link returns the link of an anomaly to its finding and culprit: as stored when the run ended, or
// else as found now. It returns nil without a link.
func (a *Queries) Link(ctx context.Context, program trace.Program, event string) (*provenance.Link, error) {
	var rank any // speeds up the query
	if n, ok := trace.EventNumbers(event); ok {
		rank = int32(n[0])
	}
	links, err := executions.ReadAll[provenance.Link](ctx, a, text("link"), int32(program), event, rank)
	if err != nil {
		return nil, err
	}
	if len(links) == 1 {
		return &links[0], nil
	}
	findings, err := a.StoredFindings(ctx)
	if err != nil || len(findings) > 0 {
		return nil, err // the anomaly was withdrawn
	}
	result, err := a.Conclude(ctx, true)
	if err != nil {
		return nil, err
	}
	for i := range result.Links {
		if l := &result.Links[i]; l.PID == program && l.EventID == event {
			return l, nil
		}
	}
	return nil, nil //nolint:nilnil // no link
}

// Conclude computes the findings and links of the run from its stored anomalies. If provisional is
// true, it includes anomalies that have not been reviewed.
func (a *Queries) Conclude(ctx context.Context, provisional bool) (*findings.Result, error) {
	result, err := a.ConcludeWithData(ctx, provisional)
	if err != nil {
		return nil, err
	}
	return result.Result, nil
}

// Conclusion contains the findings of a run and the data behind them.
type Conclusion struct {
	*findings.Result
	Anomalies *blame.Run        // the links are in the same order
	Peers     *provenance.Peers // with the slow peers that only calls show; nil without a comparison
}

// ConcludeWithData is like Conclude and also returns the data that it read.
func (a *Queries) ConcludeWithData(ctx context.Context, provisional bool) (*Conclusion, error) {
	run, err := a.anomalies(ctx, provisional)
	if err != nil {
		return nil, err
	}
	p, err := a.profile(ctx)
	if err != nil {
		return nil, err
	}
	all, err := a.Peers(ctx)
	if err != nil {
		return nil, err
	}
	if all != nil && run.Begin != 0 { // a live run may have no records
		for i := range all.Loads {
			run.End = max(run.End, run.Begin+all.Loads[i].Elapsed)
		}
	}
	run.Ranks = p.Ranks()
	result := findings.Conclude(run, blame.Find(run), a.Run.Decoded().Changes, p, all)
	if all != nil {
		peers.Add(all, result.Slow...)
	}
	for i := range result.Findings {
		f := &result.Findings[i] // without calls, which would have a status
		if provisional && f.OfPeers() && len(f.Examples) == 0 && a.Run.Finished.IsZero() {
			f.Status = provenance.Provisional
		}
	}
	return &Conclusion{Result: result, Anomalies: run, Peers: all}, nil
}

// end returns the end of the run: the newest time that is stored, or the end of the traces.
func (a *Queries) end(ctx context.Context) (trace.Ticks, error) {
	stored, err := executions.ReadValue[trace.Ticks](ctx, a, text("end"))
	return max(stored, a.Run.Decoded().Totals.End), err
}

// MaxRanks bounds the ranks that are read for findings.
const MaxRanks = 1_000_000

// profile reads the profile for Conclude. In the first seconds of a run it has no call paths.
func (a *Queries) profile(ctx context.Context) (*findings.Profile, error) {
	type row struct {
		Program   trace.Program `sql:"pid"`
		Path      int           `sql:"path"`
		Parent    *int          `sql:"parent"`
		Func      string        `sql:"func"`
		Calls     int64         `sql:"calls"`
		Exclusive trace.Ticks   `sql:"exclusive_us"`
	}
	var paths []provenance.PathStats
	err := executions.ReadEach(ctx, a, text("path_times"), func(r *row) {
		s := provenance.PathStats{PID: r.Program, Node: r.Path + 1, Func: r.Func, Calls: r.Calls, Exclusive: r.Exclusive}
		if r.Parent != nil {
			s.Parent = *r.Parent + 1
		}
		paths = append(paths, s)
	}, nil)
	if err != nil {
		return nil, err
	}
	placed, err := a.Ranks(ctx, MaxRanks)
	ranks := make([]trace.RankKey, len(placed))
	for i := range placed {
		ranks[i] = placed[i].RankKey
	}
	return findings.NewProfile(paths, ranks, a.Run.Decoded().Modes), err
}

// anomalies reads the anomalies for Conclude.
func (a *Queries) anomalies(ctx context.Context, provisional bool) (*blame.Run, error) {
	paths, err := a.PathNames(ctx)
	if err != nil {
		return nil, err
	}
	type row struct {
		blame.Anomaly
		PathID executions.PathID `sql:"pid,path"`
	}
	run := &blame.Run{Begin: a.Begin, Unit: a.Unit}
	if run.End, err = a.end(ctx); err != nil {
		return nil, err
	}
	at := make(map[trace.EventKey]int)
	err = executions.ReadEach(ctx, a, text("blame_anomalies"), func(r *row) {
		x := r.Anomaly
		x.Path, x.Wait = paths[r.PathID], run.WaitOf(x.Func)
		if x.Status == provenance.Withdrawn {
			run.Withdrawn = append(run.Withdrawn, x)
			return
		}
		at[trace.EventKey{Program: x.Program, ID: x.Event}] = len(run.Anomalies)
		run.Anomalies = append(run.Anomalies, x)
	}, provisional, "%"+provenance.NotRare+"%")
	if err != nil || len(run.Anomalies) == 0 {
		return run, err
	}
	return run, errors.Join(a.readStepExits(ctx, run, at), a.messages(ctx, run, at))
}

// readStepExits sets when ranks left the last collective call before each anomaly.
func (a *Queries) readStepExits(ctx context.Context, run *blame.Run, at map[trace.EventKey]int) error {
	type function struct {
		Name string `sql:"name"`
	}
	var marks []string
	var names []any
	err := executions.ReadEach(ctx, a, text("blame_functions"), func(r *function) {
		if run.WaitOf(r.Name) == blame.Group {
			names = append(names, r.Name)
			marks = append(marks, fmt.Sprintf("$%d", len(names)+1))
		}
	})
	if err != nil || len(names) == 0 {
		return err
	}
	type row struct {
		trace.EventKey `sql:"pid,event_id"`
		Func           string      `sql:"func"`
		Exit           trace.Ticks `sql:"exit"`
	}
	return executions.ReadEach(ctx, a, strings.ReplaceAll(text("blame_steps"), "/*names*/", strings.Join(marks, ", ")), func(r *row) {
		if i, ok := at[r.EventKey]; ok {
			run.Anomalies[i].LeftStep(r.Func, r.Exit)
		}
	}, names...)
}

// messages reads the messages received in anomalies and sent around them.
func (a *Queries) messages(ctx context.Context, run *blame.Run, at map[trace.EventKey]int) error {
	type window struct {
		trace.EventKey `sql:"pid,event_id"`
		Until          trace.Ticks `sql:"until"`
	}
	until := make(map[int]trace.Ticks)
	err := executions.ReadEach(ctx, a, text("blame_windows"), func(r *window) {
		if i, ok := at[r.EventKey]; ok {
			until[i] = r.Until
		}
	})
	if err != nil {
		return err
	}
	type row struct {
		trace.EventKey `sql:"pid,event_id"`
		Sent           bool        `sql:"sent"`
		Source         trace.Rank  `sql:"src"`
		Target         trace.Rank  `sql:"tar"`
		Tag            int32       `sql:"tag"`
		At             trace.Ticks `sql:"timestamp"`
		Own            bool        `sql:"own"`
	}
	return executions.ReadEach(ctx, a, text("blame_messages"), func(r *row) {
		i, ok := at[r.EventKey]
		if !ok {
			return
		}
		n := &run.Anomalies[i]
		m := blame.Message{Partner: r.Source, Sent: r.Sent, Tag: r.Tag, Time: r.At}
		if r.Sent {
			m.Partner = r.Target
			run.Sends = append(run.Sends, blame.Send{
				Program: n.Program, From: r.Source, To: m.Partner, Tag: m.Tag, Time: m.Time, Until: max(n.Exit, until[i]),
			})
		}
		if r.Own {
			n.Message(m)
		}
	})
}

// Differences describes how the calls of each finding of a list differ from others; the text is empty
// if they do not. It explains reviewed calls that are slow by themselves; other findings already state
// their reason. The findings and links are from Findings.
func (a *Queries) Differences(ctx context.Context, list []provenance.Finding, links []provenance.Link) ([]string, error) {
	texts := make([]string, len(list))
	var unexplained []int
	for i := range list {
		x := &list[i]
		bySelf := x.Kind == provenance.RecurringMode || x.Kind == provenance.Outlier || x.Kind == provenance.Waiting && x.Cause == 0
		if bySelf && x.Status == provenance.Confirmed {
			unexplained = append(unexplained, i)
		}
	}
	if len(unexplained) == 0 {
		return texts, nil
	}
	var shared Selection
	if err := a.ForExplain(ctx, len(unexplained)); err != nil {
		return nil, err
	}
	if err := a.readRanksAndExtent(ctx, &shared); err != nil {
		return nil, err
	}
	for _, i := range unexplained {
		s := shared
		s.ofFinding(&list[i], links)
		e, err := a.Explain(ctx, s)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(e.Fields, func(d contrast.Difference) bool { return d.Notable }) {
			texts[i] = e.Sentence
		}
	}
	return texts, nil
}
