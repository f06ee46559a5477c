package duckstore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

// TestSmallStoresHaveTheSameContent writes the same records to both kinds of store, and reads them after reopening the files.
func TestSmallStoresHaveTheSameContent(t *testing.T) {
	var docs [2][]string
	for i, small := range []bool{false, true} {
		path := file(t)
		s, err := duckstore.Open(t.Context(), path, duckstore.Options{Small: small})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := query(s, t, `SELECT current_setting('threads'), current_setting('disabled_compression_methods'),
			current_setting('lock_configuration'), current_setting('enable_external_access'), current_setting('checkpoint_threshold'),
			current_setting('temp_directory'), current_setting('allocator_background_threads')`)
		if err != nil {
			t.Fatal(err)
		}
		threads, compressions := rows[0][0].(int64), rows[0][1].(string)
		if small != strings.Contains(strings.ToLower(compressions), "fsst") || small && threads != 1 {
			t.Errorf("small %v: %d threads, without the compressions %q", small, threads, compressions)
		}
		if locked, external, threshold := rows[0][2], rows[0][3], rows[0][4]; locked != true || external != false || threshold != "61.0 MiB" {
			t.Errorf("small %v: locked %v, external access %v, checkpoint at %v", small, locked, external, threshold)
		}
		if spill, background := rows[0][5], rows[0][6]; spill != path+".tmp" || background != true {
			t.Errorf("small %v: temporary files in %v, background threads %v", small, spill, background)
		}
		write(t, s, createRun(t, s, "run"), storetest.Records(100, 4)...)
		closeStore(t, s)
		docs[i] = documents(t, open(t, path, true))
	}
	if len(docs[0]) == 0 || !slices.Equal(docs[0], docs[1]) {
		t.Errorf("%d and %d documents, or some differ", len(docs[0]), len(docs[1]))
	}
}
