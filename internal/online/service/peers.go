package service

import (
	"context"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
)

// A comparison of peers may take one part in peersShare of a processor, and a store may have to replace peerRows
// rows per second, which is about as much for it. PostgreSQL reclaims the space of replaced rows once a minute.
const (
	peersShare = 12 // a tenth with the garbage collection that follows
	peerRows   = 10_000
)

// storePeers compares the ranks with their peers periodically until ctx ends, and stores the result if
// something changed. The more time that takes, the less often it does so.
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
		id := "peers-" + strconv.FormatInt(begin.UnixNano(), 36)
		sent = recordstream.SendPeers(ctx, stream, run, recordstream.KnownSubject(run), id, p) == nil
	}
	took := time.Since(begin)
	if used = cputime.OfProcess() - used; used > 0 { // with other work, but without waiting for a processor
		took = min(took, used)
	}
	return sent, max((peersShare-1)*took, time.Duration(rows)*time.Second/peerRows)
}
