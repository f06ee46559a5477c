// Package upgrade converts run directories and stores of earlier formats to those that this program reads.
package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// ErrNotEnded reports a run that has not ended. Only the chimbuko that began a run can finish it.
var ErrNotEnded = errors.New("the run has not ended (finish it with the chimbuko that began it, or analyze the traces again)")

// Change is the conversion of a file or store.
type Change struct {
	Name     string // the file, or the server without its password
	From, To int    // formats
}

// Run converts a run directory, a database file or a server to the formats that this program reads, and returns its changes or,
// with dryRun, the necessary ones. Each file is replaced or left as it was; the number in run.json changes last. Run may be
// repeated after an error.
func Run(ctx context.Context, where string, dryRun bool) (changes []Change, err error) {
	if rundir.IsServer(where) {
		return server(ctx, where, dryRun)
	}
	info, err := os.Stat(where)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return database(ctx, where, dryRun)
	}
	return directory(ctx, where, dryRun)
}

func server(ctx context.Context, url string, dryRun bool) ([]Change, error) {
	from, err := pgstore.Upgrade(ctx, url, dryRun)
	return changed(rundir.Place{Server: url}.String(), from, pgstore.Schema, err)
}

func database(ctx context.Context, path string, dryRun bool) ([]Change, error) {
	from, err := duckstore.Upgrade(ctx, path, dryRun)
	return changed(path, from, provdb.Schema, err)
}

// changed returns the change of a file or store that had the format from.
func changed(name string, from int, to fileformat.Format, err error) ([]Change, error) {
	if err != nil || from == to.Number {
		return nil, err
	}
	return []Change{{name, from, to.Number}}, nil
}

// directory converts the store of a run, then run.json.
func directory(ctx context.Context, dir string, dryRun bool) (changes []Change, err error) {
	run, err := readInfo(filepath.Join(dir, runfiles.Info))
	if err != nil {
		return nil, err
	}
	switch file := filepath.Join(dir, duckstore.FileName); {
	case run.store != "":
		changes, err = server(ctx, run.store, dryRun)
	case isFile(file):
		changes, err = database(ctx, file, dryRun)
	case run.fields == nil:
		err = fmt.Errorf("%s is not a run directory: it has neither %s nor %s", dir, runfiles.Info, duckstore.FileName)
	}
	if err != nil || run.fields == nil {
		return changes, err
	}
	if !dryRun {
		err = run.convert()
	}
	more, err := changed(run.path, run.format, provdb.InfoFormat, err)
	return append(changes, more...), err
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// infoSteps convert run.json to the next format, the last one to provdb.InfoFormat. The number is set after them.
var infoSteps = []func(fields map[string]json.RawMessage) error{
	func(map[string]json.RawMessage) error { return nil }, // before 1.0 it had the same fields without the number
}

// infoFile is run.json in any format that Run can convert.
type infoFile struct {
	path   string
	fields map[string]json.RawMessage // nil without a file
	format int
	store  string // URL of the server, or ""
}

// readInfo reads run.json of a run that has ended. It may be missing, because a copy of a database has its own
// directory.
func readInfo(path string) (*infoFile, error) {
	f := &infoFile{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	var head struct {
		Format int
		State  provdb.State
		Store  string
	}
	err = json.Unmarshal(text, &head)
	if err == nil {
		err = json.Unmarshal(text, &f.fields)
	}
	switch to := provdb.InfoFormat; {
	case err != nil:
	case f.fields == nil || head.State == "":
		err = errors.New("the file is damaged: no state")
	case head.Format != to.Number && !to.Converts(head.Format):
		err = to.Check(head.Format)
	case head.State.Open():
		err = ErrNotEnded
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.format, f.store = head.Format, head.Store
	return f, nil
}

// convert replaces run.json by one of the current format.
func (f *infoFile) convert() error {
	if f.format == provdb.InfoFormat.Number {
		return nil
	}
	for _, step := range fileformat.Steps(provdb.InfoFormat, infoSteps, f.format) {
		if err := step(f.fields); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	f.fields["format"] = fmt.Append(nil, provdb.InfoFormat.Number)
	text, err := json.MarshalIndent(f.fields, "", "  ")
	if err == nil {
		err = json.Unmarshal(text, new(provdb.Info)) // the result is readable
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return atomicfile.Write(f.path, append(text, '\n'), 0o644)
}
