// Package evaluate compares the anomalies of a stored run with planted ones.
package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/quality"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Run compares a run, a directory or a store, with the truth in files, directories and
// patterns.
func Run(ctx context.Context, run string, truths []string) (*truth.Score, error) {
	planted, err := truth.Read(truths)
	if err != nil {
		return nil, err
	}
	m := &matcher{Matcher: planted.Matcher(), planted: planted, ranks: make(map[trace.Program]int)}
	calls, err := m.addRun(ctx, run)
	if err != nil {
		return nil, err
	}
	if calls == 0 && m.Flags() > 0 {
		return nil, fmt.Errorf("%s: %d calls are flagged, but totals.calls in run.json is 0", run, m.Flags())
	}
	score := m.Score(calls)
	if m.links != nil {
		score.Findings = m.Findings(m.reports, m.ranks)
	}
	return score, nil
}

// matcher compares a run with the truth, which may have other numbers of programs.
type matcher struct {
	*truth.Matcher
	planted *truth.Truth
	numbers map[trace.Program]trace.Program // in the truth, by those in the run
	reports []truth.Report
	links   *quality.Links        // nil if the run has no findings
	ranks   map[trace.Program]int // number of ranks, by programs of the truth
}

// setFindings sets the findings of the run, and the links of its anomalies to them.
func (m *matcher) setFindings(findings []provenance.Finding, links []provenance.Link) {
	m.reports, m.links = quality.Reports(findings), quality.NewLinks(links)
	for i := range m.reports {
		m.reports[i].Program = m.program(m.reports[i].Program)
	}
}

// setPrograms sets the numbers of programs by the names of their executables.
func (m *matcher) setPrograms(executables map[trace.Program]string) {
	for program, name := range executables {
		executables[program] = path.Base(name)
	}
	m.numbers = m.planted.Numbers(executables)
}

// program returns the truth's number of a program.
func (m *matcher) program(n trace.Program) trace.Program {
	if number, ok := m.numbers[n]; ok {
		return number
	}
	return n
}

// addRun adds the flags and changes of a run, and returns the number of analyzed calls.
func (m *matcher) addRun(ctx context.Context, run string) (calls float64, err error) {
	if isFilesOnly(run) {
		return m.addFiles(ctx, run)
	}
	place, err := rundir.FindStore(run)
	if err != nil {
		return 0, err
	}
	r, err := place.Open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	a, err := query.New(ctx, r, place.Run)
	if err != nil {
		return 0, err
	}
	executables, err := a.Executables(ctx)
	if err != nil {
		return 0, err
	}
	m.setPrograms(executables)
	if calls, err = m.addChanges(a.Run.Decoded()); err != nil {
		return 0, fmt.Errorf("%s: run %s: %w", run, a.Run.Name, err)
	}
	if err := m.readFindings(ctx, a); err != nil {
		return 0, fmt.Errorf("%s: findings: %w", run, err)
	}
	for doc, err := range a.Documents(ctx, "anomalies") {
		var r provenance.Record
		if err == nil {
			err = json.Unmarshal(doc, &r)
		}
		if err == nil {
			err = m.addFlag(&r)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: event %s: %w", run, r.EventID, err)
		}
	}
	return calls, nil
}

// readFindings reads the findings of a stored run.
func (m *matcher) readFindings(ctx context.Context, a *query.Queries) error {
	ranks, err := a.Ranks(ctx, query.MaxRanks)
	if err != nil {
		return err
	}
	for i := range ranks {
		m.ranks[m.program(ranks[i].Program)]++
	}
	result, err := a.FindingsAndLinks(ctx)
	if err == nil {
		m.setFindings(result.Findings, result.Links)
	}
	return err
}

// readFindingFiles reads the findings of a run without database, if it has any.
func (m *matcher) readFindingFiles(run string) error {
	var (
		findings []provenance.Finding
		links    []provenance.Link
	)
	for name, into := range map[string]any{"findings.json": &findings, "links.json": &links} {
		path := filepath.Join(run, "global", name)
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = json.Unmarshal(content, into)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	m.setFindings(findings, links)
	return nil
}

// isFilesOnly reports whether a run has record files and no database.
func isFilesOnly(run string) bool {
	_, errFiles := os.Stat(filepath.Join(run, "records"))
	_, errStore := os.Stat(filepath.Join(run, duckstore.FileName))
	return errFiles == nil && errStore != nil
}

func (m *matcher) addFiles(ctx context.Context, run string) (calls float64, err error) {
	info, err := runfiles.ReadInfo(run)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s is not the directory of an analyzed run: %w", run, err)
	}
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(m.planted.Troubles, func(t truth.Trouble) bool { return len(t.Programs) > 0 }) {
		executables := make(map[trace.Program]string)
		for step, err := range recordfile.Steps(ctx, run, nil) {
			if err != nil {
				return 0, err
			}
			for _, d := range step.Metadata {
				if d.Descr == "Executable" {
					executables[d.PID] = d.Value
				}
			}
		}
		m.setPrograms(executables)
	}
	if calls, err = m.addChanges(info); err != nil {
		return 0, fmt.Errorf("%s: %w", filepath.Join(run, "run.json"), err)
	}
	if err := m.readFindingFiles(run); err != nil {
		return 0, err
	}
	ranks := make(map[trace.RankKey]bool)
	for step, err := range recordfile.Steps(ctx, run, nil) {
		if err != nil {
			return 0, err
		}
		if key := (trace.RankKey{Program: step.Program, Rank: step.Rank}); !ranks[key] {
			ranks[key] = true
			m.ranks[m.program(step.Program)]++
		}
		for _, r := range step.Anomalies {
			if err := m.addFlag(r); err != nil {
				return 0, fmt.Errorf("%s: event %s: %w", run, r.EventID, err)
			}
		}
	}
	return calls, nil
}

// addChanges adds the lasting changes of a run, and returns the number of analyzed calls.
func (m *matcher) addChanges(info *provdb.Info) (calls float64, err error) {
	if info.Totals.Calls < 0 {
		return 0, fmt.Errorf("totals.calls is %d", info.Totals.Calls)
	}
	for _, c := range info.Changes {
		m.AddChange(m.program(c.Program), c.Function, c.Since, truth.AtEnd)
	}
	return float64(info.Totals.Calls), nil
}

// addFlag adds a record, unless it is withdrawn.
func (m *matcher) addFlag(r *provenance.Record) error {
	f := quality.Flag(r)
	if m.links != nil {
		m.links.Set(&f)
	}
	f.Program = m.program(f.Program)
	switch r.Status {
	case "", provenance.Confirmed, provenance.Provisional:
	case provenance.Promoted:
		f.Found = truth.AtEnd
	case provenance.Withdrawn:
		return nil
	default:
		return fmt.Errorf("unknown status %q (want confirmed, promoted, provisional, withdrawn)", r.Status)
	}
	m.Add(&f)
	return nil
}
