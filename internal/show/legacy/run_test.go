package legacy_test

import (
	"time"

	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/show/legacy"
)

// encode returns the next packet of l and reports whether it has news.
func encode(l *summary.Live, schema int, millis int64) (packet []byte, news bool) {
	p := legacy.NewPacket(l, schema, time.UnixMilli(millis))
	return p.Encode(), p.Anomalies != nil
}
