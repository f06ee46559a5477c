package service

import (
	"context"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
)

// peersShare bounds the time for comparing peers: at most one part in that many.
const peersShare = 10

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
		if p := peers.Compare(s.state.Load()); len(p.Loads) > 0 {
			id := "peers-" + strconv.FormatInt(begin.UnixNano(), 36)
			if recordstream.SendPeers(ctx, s.stream, s.run, knownSubject(s.run), id, p) == nil {
				compared = changes
			}
		}
		pause = (peersShare - 1) * time.Since(begin)
	}
}
