package bus

import (
	"context"
	"fmt"
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

func BenchmarkStreamPublish(b *testing.B) {
	s := openStream(b, join(b, startServer(b, ServerOptions{})), StreamOptions{})
	data := bytesOf(1, 4<<10)
	b.SetBytes(4 << 10)
	b.ResetTimer()
	for i := range b.N {
		publish(b, s, fmt.Sprint(i), data)
	}
	rate(b, "messages")
}

// BenchmarkConsume fetches messages of 4 KiB and acknowledges them by the hundred.
func BenchmarkConsume(b *testing.B) {
	s := openStream(b, join(b, startServer(b, ServerOptions{})), StreamOptions{})
	for i := range b.N {
		publish(b, s, fmt.Sprint(i), bytesOf(1, 4<<10))
	}
	c := consume(b, s)
	b.SetBytes(4 << 10)
	b.ResetTimer()
	for left := b.N; left > 0; {
		got, err := c.Fetch(b.Context(), min(left, 100), time.Second)
		if err != nil {
			b.Fatal(err)
		}
		if len(got) > 0 {
			ack(b, c, got[len(got)-1])
		}
		left -= len(got)
	}
	rate(b, "messages")
	if c.made != 1 {
		b.Errorf("made %d consumers at the server, want 1", c.made)
	}
}
