package bus

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/testkit/faultdisk"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// Messages of the stream on a failing disk: their number, how many the consumer acknowledges, and
// the time for each operation before the program gives up.
const (
	faultMessages = 10
	faultAcks     = 4
	faultPatience = 2 * time.Second
)

func faultData(i int) []byte { return bytesOf(uint64(i), 3000) }

// streamMessages publishes the messages and acknowledges the first ones. It prints what the server confirms.
func streamMessages(t *testing.T, dir string) error {
	t.Helper()
	srv, err := StartServer(t.Context(), ServerOptions{Dir: dir})
	if err != nil {
		return err
	}
	defer srv.Close() //nolint:errcheck // always nil
	client := connect(t, Options{URL: srv.URL()})
	within := func(f func(ctx context.Context) error) (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), faultPatience)
		defer cancel()
		for err = f(ctx); err != nil && ctx.Err() == nil; err = f(ctx) {
			_ = wait.Sleep(ctx, 20*time.Millisecond) // the loop ends with ctx
		}
		return err
	}
	var s *Stream
	err = within(func(ctx context.Context) (err error) {
		s, err = client.Stream(ctx, StreamOptions{Name: "S", Subjects: []string{"s.>"}})
		return err
	})
	for i := range faultMessages {
		if err == nil {
			err = within(func(ctx context.Context) error { return s.Publish(ctx, "s.x", fmt.Sprint(i), faultData(i)) })
		}
		if err != nil {
			return err
		}
		fmt.Printf("published %d\n", i)
		if i == faultAcks {
			err = within(func(ctx context.Context) error { return ackSome(ctx, s) })
		}
	}
	return err
}

// ackSome acknowledges the first messages.
func ackSome(ctx context.Context, s *Stream) error {
	c, err := s.Consumer(ctx)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:contextcheck // bounds itself
	all, err := c.Fetch(ctx, faultAcks, faultPatience)
	if err != nil || len(all) < faultAcks {
		return fmt.Errorf("fetched %d messages: %w", len(all), err)
	}
	fmt.Println("acknowledging")
	return c.Ack(ctx, all[faultAcks-1])
}

func TestStreamSurvivesFailingDisk(t *testing.T) {
	faultdisk.Long(t)
	tracetest.SkipShort(t, "starts processes")
	if dir := faultdisk.Dir(); dir != "" {
		if err := streamMessages(t, dir); err != nil {
			t.Error(err)
		}
		return
	}
	faultdisk.Torture(t, 5, faultdisk.Journal, func(t *testing.T, after faultdisk.Aftermath) {
		s := openStream(t, join(t, startServer(t, ServerOptions{Dir: after.Dir})), StreamOptions{})
		c := consume(t, s)
		received := map[string]int{}
		fetchAll := func() {
			t.Helper()
			pending, _, err := s.Pending(soon(t))
			if err != nil {
				t.Fatal(err)
			}
			for got := 0; got < int(pending); {
				messages := fetch(t, c, 1)
				got++
				m := messages[0]
				var i int
				if _, err := fmt.Sscan(m.ID, &i); err != nil || !bytes.Equal(m.Data, faultData(i)) {
					t.Errorf("message %q has %d other bytes", m.ID, len(m.Data))
				}
				received[m.ID]++
				ack(t, c, m)
			}
		}
		fetchAll()
		acknowledged := strings.Contains(after.Output, "acknowledging")
		for i := range faultMessages {
			published := strings.Contains(after.Output, fmt.Sprintf("published %d\n", i))
			if published && !after.Power && received[fmt.Sprint(i)] == 0 && (i >= faultAcks || !acknowledged) {
				t.Errorf("message %d is lost", i)
			}
			publish(t, s, fmt.Sprint(i), faultData(i)) // again, as after a lost confirmation
		}
		fetchAll()
		for i := range faultMessages {
			if n := received[fmt.Sprint(i)]; n == 0 && (i >= faultAcks || !acknowledged) || n > 2 {
				t.Errorf("message %d was received %d times", i, n)
			}
		}
	})
}
