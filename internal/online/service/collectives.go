package service

import (
	"context"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// storeCollectives stores the collective operations that the analyzers compare, whenever there are new ones, until ctx
// ends. The end of the run stores them, too.
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
		id := "collectives-" + strconv.FormatInt(time.Now().UnixNano(), 36)
		if recordstream.SendBreakdown(ctx, s.stream, s.run, recordstream.KnownSubject(s.run), id, b) == nil {
			stored = logged
		}
		pause = time.Duration(b.Len()) * time.Second / peerRows
	}
}
