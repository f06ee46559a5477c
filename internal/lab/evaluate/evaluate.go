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
)

// Run compares a run, a directory or a store, with the truth in files, directories and
// patterns.
func Run(ctx context.Context, run string, truths []string) (*truth.Score, error) {
	planted, err := truth.Read(truths)
	if err != nil {
		return nil, err
	}
	m := &matcher{Matcher: planted.Matcher(), planted: planted}
	calls, err := m.addRun(ctx, run)
	if err != nil {
		return nil, err
	}
	if calls == 0 && m.Flags() > 0 {
		return nil, fmt.Errorf("%s: %d calls are flagged, but totals.calls in run.json is 0", run, m.Flags())
	}
	return m.Score(calls), nil
}

// matcher compares a run with the truth, which may have other numbers of programs.
type matcher struct {
	*truth.Matcher
	planted *truth.Truth
	numbers map[trace.Program]trace.Program // in the truth, by those in the run
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

// isFilesOnly reports whether a run has record files and no database.
func isFilesOnly(run string) bool {
	_, errFiles := os.Stat(filepath.Join(run, "records"))
	_, errStore := os.Stat(filepath.Join(run, duckstore.FileName))
	return errFiles == nil && errStore != nil
}

func (m *matcher) addFiles(ctx context.Context, run string) (calls float64, err error) {
	info, err := rundir.ReadInfo(run)
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
	for step, err := range recordfile.Steps(ctx, run, nil) {
		if err != nil {
			return 0, err
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
