package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// logReader reads a log of NCCL Inspector, one rank after another.
type logReader struct {
	file  *nccl.File
	ranks []*nccl.Reader
	names trace.Names
	gaps  []gap
	err   error
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
		r.ranks = append(r.ranks, f.Steps(i, nccl.Options{Tally: t}))
		t = nil // all count the same
	}
	return r, nil
}

func (r *logReader) Next(ctx context.Context) (*trace.Step, error) {
	for len(r.ranks) > 0 {
		current := r.ranks[0]
		s, err := current.Next(ctx)
		if err == nil {
			r.names.Add(r.file.Ranks[len(r.file.Ranks)-len(r.ranks)], current.Names())
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if !errors.Is(err, io.EOF) && r.err == nil {
			r.err = err
			for _, g := range current.Gaps() {
				r.gaps = append(r.gaps, gap{g.Kind.Name(), g.Offset, g.Length})
			}
		}
		current.Release()
		r.ranks = r.ranks[1:]
	}
	if r.err != nil {
		return nil, r.err
	}
	return nil, io.EOF
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
	for _, of := range r.ranks {
		of.Release()
	}
	return nil
}
