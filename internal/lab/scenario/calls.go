package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseCall splits an entry of a list of calls into the key of the function and the
// number of calls.
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

// Limits on the resources that a scenario needs.
const (
	maxOps       = 1_000_000 // calls in one iteration
	maxDepth     = 64
	maxRanks     = 1_000_000
	maxRounds    = 1_000_000_000 // steps, and iterations of a step
	maxThreads   = 1024
	maxStreams   = 64
	maxNeighbors = 64
	shortest     = 1e-3 // least interval, in seconds
)

// extent is the number of calls in a call, including itself, and their depth.
type extent struct{ calls, depth int }

// size measures lists of calls, and rejects unknown functions and recursion.
type size struct {
	p       *Program
	callers []string          // of the current function
	extents map[string]extent // of measured functions
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
	if slices.Contains(s.callers, key) {
		return extent{}, fmt.Errorf("%s: %s calls itself", where, strings.Join(append(s.callers, key), " > "))
	}
	e, ok := s.extents[key]
	if len(s.callers)+max(e.depth, 1) > maxDepth {
		return extent{}, fmt.Errorf("%s: calls are nested more than %d deep", where, maxDepth)
	}
	if ok {
		return e, nil
	}
	s.callers = append(s.callers, key)
	e, err := s.list("function "+key, f.Calls)
	s.callers = s.callers[:len(s.callers)-1]
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
	s.extents[key] = e
	return e, nil
}
