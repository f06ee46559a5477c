package service

import (
	"context"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
)

// A comparison of peers may take at most one part in peersShare of the time. A store may have to
// replace peerRows rows per second, which takes it about as long.
const (
	peersShare = 10
	peerRows   = 20_000
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
		begin := time.Now()
		p := peers.Compare(s.state.Load())
		rows := len(p.Loads)
		for i := range p.Loads {
			rows += len(p.Loads[i].Windows)
		}
		if rows > 0 {
			id := "peers-" + strconv.FormatInt(begin.UnixNano(), 36)
			if recordstream.SendPeers(ctx, s.stream, s.run, knownSubject(s.run), id, p) == nil {
				compared = changes
			}
		}
		pause = max((peersShare-1)*time.Since(begin), time.Duration(rows)*time.Second/peerRows)
	}
}
