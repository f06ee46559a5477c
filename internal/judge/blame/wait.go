package blame

import (
	"strings"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// WaitOf returns what a function waits for, by its name in traces. It covers the functions of provenance.WaitOf, of which
// ADIOS2's BeginStep waits for another program, OpenMP regions and barriers as TAU, Score-P and compilers name them, and joins
// and barriers of threads.
func WaitOf(name string) Wait {
	plain := strings.ToLower(name)
	if at := strings.IndexAny(plain, "([{"); at > 0 {
		plain = plain[:at]
	}
	if strings.HasPrefix(plain, "adios2") && strings.HasSuffix(strings.ReplaceAll(plain, "_", ""), "beginstep") {
		return Program
	}
	switch provenance.WaitOf(name) {
	case provenance.PointToPoint:
		return Ranks
	case provenance.Collective:
		return Group
	case provenance.Device:
		return Device
	}
	for _, p := range threadWaits {
		if strings.HasPrefix(plain, p) {
			return Threads
		}
	}
	return Nothing
}

// threadWaits are prefixes of the names of functions that end when the last of several threads does.
var threadWaits = []string{
	"openmp_parallel", "openmp_implicit_barrier", "openmp_explicit_barrier", "openmp_barrier", "openmp_sync", "openmp_taskwait",
	"openmp_taskgroup",
	"omp_parallel", "omp parallel", "!$omp parallel", "!$omp implicit barrier", "!$omp barrier", "omp_barrier", "parallel fork/join",
	"gomp_parallel", "gomp_barrier", "gomp_team_barrier", "__kmpc_fork_call", "__kmpc_barrier", "pthread_join", "pthread_barrier_wait",
}
