package rundir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
	"github.com/chimbuko/chimbuko/internal/testkit/faultdisk"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// writeFiles writes version i of the files of a run directory.
func writeFiles(t *testing.T, path string, i int) error {
	t.Helper()
	dir, err := rundir.Join(path)
	if err != nil {
		return err
	}
	info := provdb.NewInfo("", strconv.Itoa(i), nil)
	if err := dir.WriteInfo(info); err != nil {
		return err
	}
	if err := runfiles.WriteServices(path, &runfiles.Services{Run: "run", Bus: "nats://x", Analyzer: "token", PID: i}); err != nil {
		return err
	}
	if err := runfiles.WritePrograms(path, map[string]trace.Program{"a": trace.Program(i)}); err != nil {
		return err
	}
	return rundir.NewLabels(path).SetLabel(t.Context(), "run", api.Label{Key: "k", State: api.LabelMuted, Note: strconv.Itoa(i)})
}

// readFiles returns the versions of the files.
func readFiles(t *testing.T, path string) (versions [4]int) {
	t.Helper()
	ignoreMissing := func(err error) {
		t.Helper()
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	}
	info, err := runfiles.ReadInfo(path)
	if ignoreMissing(err); err == nil {
		versions[0], _ = strconv.Atoi(info.Commit) // 0 if it is damaged
	}
	services, err := runfiles.ReadServices(path)
	if ignoreMissing(err); err == nil {
		versions[1] = services.PID
	}
	versions[2] = int(runfiles.ReadPrograms(path)["a"])
	labels, err := rundir.NewLabels(path).Labels(t.Context(), "run")
	ignoreMissing(err)
	versions[3], _ = strconv.Atoi(labels["k"].Note) // 0 without labels
	return versions
}

func TestFilesOfRunSurviveFailingDisk(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	const versions = 3
	if dir := faultdisk.Dir(); dir != "" {
		for i := 1; i <= versions; i++ {
			if err := writeFiles(t, dir, i); err != nil {
				t.Fatal(err)
			}
			fmt.Printf("wrote %d\n", i)
		}
		return
	}
	faultdisk.Torture(t, 10, faultdisk.Arbitrary, func(t *testing.T, after faultdisk.Aftermath) {
		wrote := strings.Count(after.Output, "wrote ")
		for i, got := range readFiles(t, after.Dir) {
			if got < wrote || got > wrote+1 {
				t.Errorf("file %d has version %d, and %d was written", i, got, wrote)
			}
		}
		if err := writeFiles(t, after.Dir, versions+1); err != nil {
			t.Error(err)
		}
	})
}

// keepRun creates or resumes a run, and finishes it.
func keepRun(t *testing.T, path string) error {
	t.Helper()
	info := provdb.NewInfo("", "", nil)
	info.Online = true
	k, err := rundir.NewOrResume(t.Context(), &rundir.Config{Dir: path, Database: true}, info)
	if err != nil {
		return err
	}
	defer k.Close() //nolint:errcheck // closed below unless another error is the cause
	info.State = provdb.Finished
	if err := k.End(t.Context(), info); err != nil {
		return err
	}
	return k.Close()
}

func TestRunCanStartAgainAfterDiskFailed(t *testing.T) {
	faultdisk.Long(t)
	tracetest.SkipShort(t, "starts processes")
	if dir := faultdisk.Dir(); dir != "" {
		if err := keepRun(t, filepath.Join(dir, "run")); err != nil {
			t.Fatal(err)
		}
		return
	}
	faultdisk.Torture(t, 5, faultdisk.Ordered, func(t *testing.T, after faultdisk.Aftermath) {
		path := filepath.Join(after.Dir, "run")
		if !runfiles.HasFinished(path) {
			if err := keepRun(t, path); err != nil {
				t.Fatal(err)
			}
		}
		if err := new(rundir.Places).Query(t.Context(), path, "", func(a *query.Queries) error {
			if a.Run.State != provdb.Finished {
				t.Errorf("the run is %s in the store", a.Run.State)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}
