package cli

import (
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
)

func grouped(n int64) string  { return text.Int(n) }
func sizeText(n int64) string { return text.Bytes(n) }
func oneLine(s string) string { return text.SingleSpaced(s) }
func utc(us int64) string     { return time.UnixMicro(us).UTC().Format("2006-01-02 15:04:05.000000 MST") }
