package sqlitetrace_test

import (
	"os"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// The code under test starts no goroutines.
func TestMain(m *testing.M) { os.Exit(tracetest.MainWithoutRace(m)) }
