package sqlitefile_test

import (
	"os"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// Nothing here has goroutines that could race.
func TestMain(m *testing.M) { os.Exit(tracetest.MainWithoutRace(m)) }
