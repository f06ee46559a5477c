package service

import (
	"context"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

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

// messageID returns an ID for a message with run-level data created at a time.
func messageID(kind string, at time.Time) string {
	return kind + "-" + strconv.FormatInt(at.UnixNano(), 36)
}

// pathsEvery is the greatest number of packets of statistics between stored call paths.
const pathsEvery = 10

// storePaths stores the calls by call path periodically until ctx ends, at first more often, because
// findings need them. It skips failures, because the end of the run stores the paths as well.
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
		id := messageID("paths", time.Now())
		if recordstream.SendPaths(ctx, s.stream, s.run, recordstream.RunSubject(s.run), id, provenance.NewPathStats(paths)) == nil {
			stored = calls
		}
	}
}

// storeCollectives stores the collective operations that the analyzers compare, whenever there are new ones, until ctx
// ends. The end of the run stores them as well.
func (s *server) storeCollectives(ctx context.Context) {
	stored, pause := int64(0), s.cfg.StatsPeriod
	for ; wait.Sleep(ctx, pause) == nil; pause = max(pause, s.cfg.StatsPeriod) {
		all, logged := s.state.Collectives()
		if logged == stored || !s.storeKeepsUp(ctx) {
			continue
		}
		b := provenance.NewBreakdown(trace.Microsecond, &breakdown.Run{Collectives: all})
		if b.Len() == 0 {
			continue
		}
		id := messageID("collectives", time.Now())
		if recordstream.SendBreakdown(ctx, s.stream, s.run, recordstream.RunSubject(s.run), id, b) == nil {
			stored = logged
		}
		pause = time.Duration(b.Len()) * time.Second / peerRows
	}
}

// A comparison of peers may take one part in peersShare of a processor, and may make a store replace peerRows
// rows per second, which is about as much work for it. PostgreSQL reclaims the space of replaced rows once a
// minute.
const (
	peersShare = 12 // a tenth with the garbage collection that follows
	peerRows   = 10_000
)

// storePeers compares the ranks with their peers periodically until ctx ends, and stores the result if
// something changed. It does so less often if it takes long.
func (s *server) storePeers(ctx context.Context) {
	compared, pause := uint64(0), s.cfg.StatsPeriod
	for ; wait.Sleep(ctx, pause) == nil; pause = max(pause, s.cfg.StatsPeriod) {
		changes := s.state.Changes()
		if changes == compared || !s.storeKeepsUp(ctx) {
			continue
		}
		stored := false
		if stored, pause = sendPeers(ctx, s.stream, s.run, s.state.Load); stored {
			compared = changes
		}
	}
}

// sendPeers compares the ranks of a load and sends the result, unless it is empty. It returns how long to wait
// before the next time.
func sendPeers(
	ctx context.Context, stream recordstream.Stream, run string, load func() (*workload.Load, func(trace.Program, uint32) string),
) (sent bool, pause time.Duration) {
	begin, used := time.Now(), cputime.OfProcess()
	p := peers.Compare(load())
	rows := len(p.Loads)
	for i := range p.Loads {
		rows += len(p.Loads[i].Windows)
	}
	if rows > 0 {
		id := messageID("peers", begin)
		sent = recordstream.SendPeers(ctx, stream, run, recordstream.RunSubject(run), id, p) == nil
	}
	took := time.Since(begin)
	if used = cputime.OfProcess() - used; used > 0 { // with other work, but without waiting for a processor
		took = min(took, used)
	}
	return sent, max((peersShare-1)*took, time.Duration(rows)*time.Second/peerRows)
}
