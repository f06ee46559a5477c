package service

import (
	"context"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

const (
	pathsEvery  = 10  // packets of statistics between stored call paths, at most
	pathsBehind = 100 // messages in the stream above which they are not stored
)

// storePaths stores the calls by call path periodically until ctx ends, at first more often, because
// findings need them. It skips those that cannot be stored: the end of the run stores them, too.
func (s *server) storePaths(ctx context.Context) {
	stored, pause := uint64(0), s.cfg.StatsPeriod
	for ; wait.Sleep(ctx, pause) == nil; pause = min(2*pause, pathsEvery*s.cfg.StatsPeriod) {
		paths, calls := s.state.Paths(), uint64(0)
		for i := range paths {
			calls += paths[i].Calls
		}
		if calls == stored {
			continue
		}
		if s.openStream(ctx) != nil {
			continue
		}
		if waiting, _, err := s.stream.Pending(ctx); err != nil || waiting > pathsBehind {
			continue
		}
		id := "paths-" + strconv.FormatInt(time.Now().UnixNano(), 36)
		if recordstream.SendPaths(ctx, s.stream, s.run, knownSubject(s.run), id, provenance.NewPathStats(paths)) == nil {
			stored = calls
		}
	}
}
