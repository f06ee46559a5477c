package rundir_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

func TestServicesMayStartBeforeTheRun(t *testing.T) {
	dir := t.TempDir()
	if rundir.HasOnlyServices(dir) {
		t.Error("an empty directory has services")
	}
	if err := runfiles.WriteServices(dir, &runfiles.Services{Run: "r", Bus: "nats://127.0.0.1:1", Analyzer: "of analyzers"}); err != nil {
		t.Fatal(err)
	}
	if !rundir.HasOnlyServices(dir) {
		t.Error("a directory with files of services alone has others")
	}
}
