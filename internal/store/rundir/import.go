package rundir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Import creates a run from the JSON record files of a directory, and describes it in info.
// It reads damaged files as far as possible and lists them in info.Broken. onStep is called
// after each step. It returns the size of the run in bytes.
func Import(ctx context.Context, cfg *Config, info *provdb.Info, dir string, onStep func()) (size int64, err error) {
	if _, err := os.Stat(dir); err != nil {
		return 0, err
	}
	info.ImportedFrom, info.Imported, info.Review, info.Notes = dir, new(provdb.ImportCounts), nil, []tally.Note{}
	switch own, err := runfiles.ReadInfo(dir); {
	case err == nil:
		info.Unit, info.Totals, info.Settings, info.Changes, info.Modes = own.Unit, own.Totals, own.Settings, own.Changes, own.Modes
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	k, err := New(ctx, cfg, info)
	if err != nil {
		return 0, err
	}
	err = k.importRecords(ctx, info, dir, onStep)
	if err == nil {
		err = k.Dir.RemoveSpool()
	}
	info.State = provdb.Finished
	if err != nil {
		info.State = provdb.Failed
	}
	err = errors.Join(err, k.End(context.WithoutCancel(ctx), info), k.Close())
	return k.Size(), err
}

// importRecords stores all records of a directory, and counts them in info.
func (k *Keeper) importRecords(ctx context.Context, info *provdb.Info, dir string, onStep func()) error {
	var notes recordfile.Notes
	counts := info.Imported
	for step, err := range recordfile.Steps(ctx, dir, &notes) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			info.Broken = append(info.Broken, err.Error())
			continue
		}
		if err := checkUnit(info, step, counts.Anomalies+counts.Typical == 0); err != nil {
			return fmt.Errorf("import %s: %w", dir, err)
		}
		batch := &provdb.Batch{Anomalies: step.Anomalies, Typical: step.Typical}
		if len(step.Metadata) > 0 {
			batch.Metadata = []provdb.StepMetadata{{Program: step.Program, Rank: step.Rank, Step: step.Step, Facts: step.Metadata}}
		}
		counts.Steps++
		counts.Anomalies += int64(len(step.Anomalies))
		counts.Typical += int64(len(step.Typical))
		counts.Metadata += int64(len(step.Metadata))
		if err := k.Buffer.Add(ctx, batch); err != nil {
			return err
		}
		onStep()
	}
	global, err := recordfile.Global(ctx, dir, &notes)
	if err != nil {
		info.Broken = append(info.Broken, err.Error())
	}
	if global != nil {
		counts.Functions, counts.Counters = int64(len(global.FuncStats)), int64(len(global.CounterStats))
		counts.Models, counts.Paths = int64(len(global.ADModels)), int64(len(global.PathStats))
		batch := &provdb.Batch{
			Functions: global.FuncStats, Counters: global.CounterStats, Models: global.ADModels, Paths: global.PathStats, Peers: global.Peers,
			Breakdown: global.Breakdown,
		}
		if err := k.Buffer.Add(ctx, batch); err != nil {
			return err
		}
	}
	for sentence, n := range notes.All() {
		info.Notes = append(info.Notes, tally.Note{Severity: tally.Info.String(), Count: n, Sentence: sentence})
	}
	if counts.Steps == 0 && len(info.Broken) == 0 {
		return fmt.Errorf("import %s: no PROGRAM/RANK/STEP.{anomalies,normalexecs,metadata}.json files", dir)
	}
	if err := k.Buffer.Flush(ctx); err != nil {
		return err
	}
	_, err = k.FindFindings(ctx, info)
	return err
}

// checkUnit sets the unit of a run by its first records. Others must have the same.
func checkUnit(info *provdb.Info, step *recordfile.Step, first bool) error {
	for _, r := range slices.Concat(step.Anomalies, step.Typical) {
		if first {
			info.Unit, first = r.Unit.Canonical(), false
		}
		if r.Unit.Canonical() != info.Unit {
			return fmt.Errorf("event %s has ticks of %d ns, others of %d ns", r.EventID, r.Unit.Nanos(), info.Unit.Nanos())
		}
	}
	return nil
}
