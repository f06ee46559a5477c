package replay_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/replay"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// BenchmarkReplay copies a trace, or writes it again, as fast as it goes.
func BenchmarkReplay(b *testing.B) {
	f := func(name string, change func(*replay.Config)) {
		b.Run(name, func(b *testing.B) {
			from := tracetest.Recorded(b, "gpu-BP5")
			s := newStage(b)
			s.cfg.Speed, s.cfg.Force = 0, true
			change(&s.cfg)
			b.ReportAllocs()
			for b.Loop() {
				result, err := s.plan(from).Run(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(result.Bytes)
			}
		})
	}
	f("copy", func(*replay.Config) {})
	f("shift-time", func(c *replay.Config) { c.ShiftTime = true })
	f("ranks", func(c *replay.Config) { c.Ranks = 16 })
}
