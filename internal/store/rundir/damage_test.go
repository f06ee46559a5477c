package rundir_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
)

// TestDamagedRunDirectory reads mutations of the JSON files of a run directory. Errors name the file.
func TestDamagedRunDirectory(t *testing.T) {
	dir := t.TempDir()
	d, err := rundir.Join(dir)
	if err == nil {
		err = d.WriteInfo(&provdb.Info{State: provdb.Finished})
	}
	if err == nil {
		err = runfiles.WriteServices(dir, &runfiles.Services{Bus: "nats://127.0.0.1:4222", Run: "run", Analyzer: "token"})
	}
	if err == nil {
		err = rundir.NewLabels(dir).SetLabel(t.Context(), "run", api.Label{Key: "finding", State: "muted", At: time.Unix(1, 0)})
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := damage.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	damage.Run(t, damage.Format{Files: files, Read: func(bad damage.Files) error {
		if err := bad.Write(dir); err != nil {
			return err
		}
		_, infoErr := runfiles.ReadInfo(dir)
		_, servicesErr := runfiles.ReadServices(dir)
		_, labelsErr := rundir.NewLabels(dir).Labels(t.Context(), "run")
		for _, err := range []error{infoErr, servicesErr, labelsErr} {
			if err != nil && !strings.Contains(err.Error(), dir) {
				return fmt.Errorf("the error %w names no file", err)
			}
		}
		runfiles.HasFinished(dir)
		runfiles.ReadPrograms(dir)
		return nil
	}})
}
