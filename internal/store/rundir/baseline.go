package rundir

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/chimbuko/chimbuko/internal/judge/comparison"
)

// ReadBaseline reads a file that chimbuko baseline wrote. It returns nil for anything else.
func ReadBaseline(where string) (r *comparison.Run, err error) {
	if IsServer(where) {
		return nil, nil //nolint:nilnil // not a baseline
	}
	info, err := os.Stat(where)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil //nolint:nilnil,nilerr // not a baseline, or does not exist
	}
	f, err := os.Open(where)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	first := make([]byte, 2)
	if n, err := io.ReadFull(f, first); err != nil || !comparison.IsBaseline(first[:n]) {
		return nil, nil //nolint:nilnil,nilerr // not a baseline
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if r, err = comparison.Decode(f); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return r, nil
}
