package node

import (
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/inputs"
	"github.com/chimbuko/chimbuko/internal/source/nccl"
)

// logSuffix is the end of the names of logs of NCCL Inspector.
const logSuffix = ".log"

// logFinder finds logs of NCCL Inspector. It follows them only when no other has appeared for some time, because
// their ranks depend on all logs together.
type logFinder struct {
	known  map[string]bool
	count  int
	latest time.Time // when count changed
	ranks  inputs.Logs
	bound  bool
}

// filter removes files that are not logs, or not yet: they have no record. It reports whether there are any.
func (l *logFinder) filter(paths []string) (kept []string, removed bool) {
	kept = slices.DeleteFunc(paths, func(p string) bool {
		if !strings.HasSuffix(p, logSuffix) || l.known[p] {
			return false
		}
		if !nccl.IsLog(p) {
			removed = true
			return true
		}
		if l.known == nil {
			l.known = make(map[string]bool)
		}
		l.known[p] = true
		return false
	})
	return kept, removed
}

// bind replaces logs by the inputs of their ranks, or removes them until these are known.
func (l *logFinder) bind(all []analyzer.Input, complete bool, now time.Time, linger time.Duration) ([]analyzer.Input, error) {
	var logs []string
	for i := range all {
		if l.known[all[i].Path] {
			logs = append(logs, all[i].Path)
		}
	}
	if len(logs) != l.count {
		l.count, l.latest = len(logs), now
	}
	if !l.bound && !complete && now.Sub(l.latest) < linger {
		return slices.DeleteFunc(all, func(in analyzer.Input) bool { return l.known[in.Path] }), nil
	}
	l.bound, l.ranks.Follow = l.bound || len(logs) > 0, true
	return l.ranks.Bind(all, logs)
}
