package cli

import (
	"fmt"
	"path/filepath"

	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// tellCut warns about an incomplete run that no process works on.
func tellCut(env *Env, where rundir.Place) {
	dir := filepath.Dir(where.File)
	if where.File == "" || filepath.Base(where.File) != duckstore.FileName {
		return
	}
	info, err := rundir.ReadInfo(dir)
	if err != nil || !info.State.Open() {
		return
	}
	fmt.Fprintf(env.Stderr, "chimbuko: the run is incomplete: %s\n", viewer.WhyStopped(dir, info))
}
