package quality

import (
	"os"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// These tests compare results of much data; those of the analyzer look for races.
func TestMain(m *testing.M) { os.Exit(tracetest.MainWithoutRace(m)) }
