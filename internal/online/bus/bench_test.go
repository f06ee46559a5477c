package bus

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

func rate(b *testing.B, unit string) {
	b.Helper()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), unit+"/s")
}

// BenchmarkRequest sends 16 KiB to a service in the same process, which returns
// them, over TCP.
func BenchmarkRequest(b *testing.B) {
	s := startServer(b, ServerOptions{})
	service, err := join(b, s).Serve("echo", "", 1, func(_ context.Context, data []byte) ([]byte, error) { return data, nil })
	if err != nil {
		b.Fatal(err)
	}
	defer service.Close()
	c := join(b, s)
	data := bytesOf(1, 16<<10)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := c.Request(b.Context(), "echo", data); err != nil {
			b.Fatal(err)
		}
	}
	rate(b, "requests")
}

// publishAsync publishes messages of 4 KiB and waits for all.
func publishAsync(b *testing.B, s *Stream, prefix string, n int) {
	b.Helper()
	data := bytesOf(1, 4<<10)
	var all sync.WaitGroup
	all.Add(n)
	for i := range n {
		s.PublishAsync(b.Context(), "s.x", fmt.Sprint(prefix, i), data, func(err error) {
			if err != nil {
				b.Error(err)
			}
			all.Done()
		})
	}
	all.Wait()
}

func BenchmarkStreamPublish(b *testing.B) {
	run := func(b *testing.B, f func(s *Stream)) {
		s := openStream(b, join(b, startServer(b, ServerOptions{})), StreamOptions{})
		b.SetBytes(4 << 10)
		b.ResetTimer()
		f(s)
		rate(b, "messages")
	}
	b.Run("async", func(b *testing.B) {
		run(b, func(s *Stream) { publishAsync(b, s, "", b.N) })
	})
	b.Run("sync", func(b *testing.B) {
		data := bytesOf(1, 4<<10)
		run(b, func(s *Stream) {
			for i := range b.N {
				publish(b, s, fmt.Sprint(i), data)
			}
		})
	})
}

// consumeAll fetches and acknowledges messages by the hundred.
func consumeAll(b *testing.B, c *Consumer, n int) {
	b.Helper()
	for left := n; left > 0; {
		got, err := c.Fetch(b.Context(), min(left, 100), time.Second)
		if err != nil {
			b.Fatal(err)
		}
		if len(got) > 0 {
			ack(b, c, got[len(got)-1])
		}
		left -= len(got)
	}
}

// BenchmarkConsume fetches messages of 4 KiB and acknowledges them by the hundred.
func BenchmarkConsume(b *testing.B) {
	s := openStream(b, join(b, startServer(b, ServerOptions{})), StreamOptions{})
	publishAsync(b, s, "", b.N)
	c := consume(b, s)
	b.SetBytes(4 << 10)
	b.ResetTimer()
	consumeAll(b, c, b.N)
	rate(b, "messages")
	if c.feed.made != 1 {
		b.Errorf("%d consumers were made at the server, want 1", c.feed.made)
	}
}

// BenchmarkConsumeBehindAPart is BenchmarkConsume while a large message is not
// whole, so that what follows its first part is deleted one by one.
func BenchmarkConsumeBehindAPart(b *testing.B) {
	s := openStream(b, join(b, startServer(b, ServerOptions{})), StreamOptions{})
	sendPart(b, s, "open", make([]byte, 2<<20), 0)
	publishAsync(b, s, "", b.N)
	c := consume(b, s)
	b.SetBytes(4 << 10)
	b.ResetTimer()
	consumeAll(b, c, b.N)
	rate(b, "messages")
}
