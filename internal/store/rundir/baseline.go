package rundir

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/chimbuko/chimbuko/internal/judge/comparison"
)

// ReadBaseline reads a file that chimbuko baseline wrote. It returns nil for anything else.
func ReadBaseline(where string) (r *comparison.Run, err error) {
	if IsServer(where) {
		return nil, nil //nolint:nilnil // not a baseline
	}
	if info, err := os.Stat(where); err != nil || !info.Mode().IsRegular() {
		return nil, nil //nolint:nilnil,nilerr // not a baseline, or does not exist
	}
	f, err := os.Open(where)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := bufio.NewReader(f)
	if first, err := in.Peek(2); err != nil || !comparison.IsBaseline(first) {
		return nil, nil //nolint:nilnil,nilerr // not a baseline
	}
	if r, err = comparison.Decode(in); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return r, nil
}
