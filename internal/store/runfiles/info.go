// Package runfiles reads and writes the small files of a run directory: its state, how to reach
// its services, and the names of their directories. It needs no store.
package runfiles

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Info is the file with settings, state and totals.
const Info = "run.json"

// ReadInfo reads run.json in the run directory at path, if it has the current format.
func ReadInfo(path string) (*provdb.Info, error) {
	name := filepath.Join(path, Info)
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var head struct{ Format int }
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := provdb.InfoFormat.Check(head.Format); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	info := new(provdb.Info)
	if err := json.Unmarshal(b, info); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return info, nil
}

// HasFinished reports whether the run at path has finished, according to run.json.
func HasFinished(path string) bool {
	info, err := ReadInfo(path)
	return err == nil && info.State == provdb.Finished
}

// Name returns the default name of the run in a directory: that of the directory.
func Name(dir string) string {
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	} // otherwise the working directory is missing
	return filepath.Base(dir)
}
