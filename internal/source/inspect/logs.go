package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/nccl"
)

// mayBeLog reports whether a file in a directory may be a log of NCCL Inspector by its name. The content decides.
func mayBeLog(path string) bool {
	switch filepath.Ext(path) {
	case ".log", ".json", ".jsonl":
		return true
	}
	return false
}

// LogsIn returns the logs of NCCL Inspector among paths.
func LogsIn(paths []string) (logs []string) {
	for _, p := range paths {
		if nccl.IsLog(p) {
			logs = append(logs, p)
		}
	}
	return logs
}

// logReader reads a log of NCCL Inspector.
type logReader struct {
	sequence
	file  *nccl.File
	names trace.Names
	gaps  []gap
}

func openLog(path string, t *tally.Tally) (*logReader, error) {
	f, err := nccl.ReadHead(path)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fmt.Errorf("%s: no record of NCCL Inspector", path)
	}
	new(nccl.Job).Add([]*nccl.File{f})
	r := &logReader{file: f, names: trace.EmptyNames()}
	for i := range f.Ranks {
		r.open = append(r.open, func() (trace.Steps, error) {
			if i > 0 {
				t = nil // all count the same
			}
			return f.Steps(i, nccl.Options{Tally: t}), nil
		})
	}
	r.ended = func(steps trace.Steps) {
		if r.gaps == nil { // all ranks have the same
			for _, g := range steps.(*nccl.Reader).Gaps() {
				r.gaps = append(r.gaps, gap{g.Kind.Name(), g.Offset, g.Length})
			}
		}
	}
	return r, nil
}

func (r *logReader) Next(ctx context.Context) (*trace.Step, error) {
	step, err := r.sequence.Next(ctx)
	if err == nil {
		r.names.Add(r.file.Ranks[len(r.file.Ranks)-len(r.open)-1], r.current.Names())
	}
	return step, err
}

func (r *logReader) Names() *trace.Names { return &r.names }
func (r *logReader) Unit() trace.Unit    { return trace.Microsecond }
func (r *logReader) Format() string      { return "NCCL Inspector" }
func (r *logReader) Version() string     { return "" }
func (r *logReader) Active() bool        { return false }
func (r *logReader) OneFile() bool       { return len(r.file.Ranks) > 1 }
func (r *logReader) Gaps() []gap         { return r.gaps }

func (r *logReader) Modified() time.Time {
	if info, err := os.Stat(r.file.Path); err == nil {
		return info.ModTime()
	}
	return time.Time{}
}

func (r *logReader) Size() int64 {
	if info, err := os.Stat(r.file.Path); err == nil {
		return info.Size()
	}
	return 0
}

func (r *logReader) Close() error {
	r.release()
	return nil
}
