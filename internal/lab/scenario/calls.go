package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseCall splits an entry of a list of calls into the key of the function and
// how many times it is called.
func ParseCall(call string) (key string, times int, err error) {
	number, rest, ok := strings.Cut(call, " ")
	if n, err := strconv.Atoi(number); ok && err == nil {
		if n < 1 || n > maxOps {
			return "", 0, fmt.Errorf("%q: a function can be called from 1 to %d times", call, maxOps)
		}
		return rest, n, nil
	}
	return call, 1, nil
}

// Limits that keep a scenario from asking for more than a machine has.
const (
	maxOps       = 1_000_000 // calls in one iteration
	maxDepth     = 64
	maxRanks     = 1_000_000
	maxRounds    = 1_000_000_000 // steps, and iterations of a step
	maxThreads   = 1024
	maxStreams   = 64
	maxNeighbors = 64
	shortest     = 1e-3 // of what happens in intervals, in seconds
)

// extent is how much a call makes of itself: calls, itself included, and how
// deep they are nested.
type extent struct{ calls, depth int }

// size measures lists of calls, and checks that they name functions that exist
// and not themselves.
type size struct {
	p     *Program
	above []string          // that are being called
	known map[string]extent // of functions that have been measured
}

func (s *size) list(where string, calls []string) (extent, error) {
	var sum extent
	for _, call := range calls {
		key, times, err := ParseCall(call)
		if err != nil {
			return sum, fmt.Errorf("%s: %w", where, err)
		}
		e, err := s.function(where, key)
		if err != nil {
			return sum, err
		}
		if sum.calls += e.calls * times; sum.calls > maxOps {
			return sum, fmt.Errorf("%s: an iteration has more than %d calls", where, maxOps)
		}
		sum.depth = max(sum.depth, e.depth)
	}
	return sum, nil
}

func (s *size) function(where, key string) (extent, error) {
	f, ok := s.p.Functions[key]
	if !ok {
		return extent{}, fmt.Errorf("%s calls %q, which is not among the functions", where, key)
	}
	if slices.Contains(s.above, key) {
		return extent{}, fmt.Errorf("%s: %s calls itself", where, strings.Join(append(s.above, key), " > "))
	}
	e, ok := s.known[key]
	if len(s.above)+max(e.depth, 1) > maxDepth {
		return extent{}, fmt.Errorf("%s: calls are nested more than %d deep", where, maxDepth)
	}
	if ok {
		return e, nil
	}
	s.above = append(s.above, key)
	e, err := s.list("function "+key, f.Calls)
	s.above = s.above[:len(s.above)-1]
	if err != nil {
		return extent{}, err
	}
	switch f.Kind {
	case Parallel:
		e.calls *= f.Threads
	case Exchange:
		e = extent{2*len(f.Neighbors) + 1, 1} // MPI_Irecv and MPI_Isend, and MPI_Waitall
	case Launch:
		e.calls = 1 // the kernel
	}
	e.calls, e.depth = e.calls+1, e.depth+1
	if e.calls > maxOps {
		return extent{}, fmt.Errorf("function %s: an iteration has more than %d calls", key, maxOps)
	}
	s.known[key] = e
	return e, nil
}
