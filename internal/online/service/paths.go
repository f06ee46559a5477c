package service

import (
	"context"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// pathsEvery is the greatest number of packets of statistics between stored call paths.
const pathsEvery = 10

// maxBehind is the number of messages in the stream above which run-level data is not stored.
const maxBehind = 100

// storeKeepsUp reports whether the store keeps up with the stream, so that run-level data can be sent
// before the end of the run.
func (s *server) storeKeepsUp(ctx context.Context) bool {
	if s.openStream(ctx) != nil {
		return false
	}
	waiting, _, err := s.stream.Pending(ctx)
	return err == nil && waiting <= maxBehind
}

// storePaths stores the calls by call path periodically until ctx ends, at first more often, because
// findings need them. It skips those that cannot be stored: the end of the run stores them, too.
func (s *server) storePaths(ctx context.Context) {
	stored, pause := uint64(0), s.cfg.StatsPeriod
	for ; wait.Sleep(ctx, pause) == nil; pause = min(2*pause, pathsEvery*s.cfg.StatsPeriod) {
		paths, calls := s.state.Paths(), uint64(0)
		for i := range paths {
			calls += paths[i].Calls
		}
		if calls == stored || !s.storeKeepsUp(ctx) {
			continue
		}
		id := "paths-" + strconv.FormatInt(time.Now().UnixNano(), 36)
		if recordstream.SendPaths(ctx, s.stream, s.run, recordstream.KnownSubject(s.run), id, provenance.NewPathStats(paths)) == nil {
			stored = calls
		}
	}
}
