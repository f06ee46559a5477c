package bus

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func echo(_ context.Context, data []byte) ([]byte, error) { return data, nil }

// serve answers requests until the test ends.
func serve(t *testing.T, c *Conn, subject, queue string, workers int, h Handler) *Service {
	t.Helper()
	s, err := c.Serve(subject, queue, workers, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestRequestAndReplyOfAnySize(t *testing.T) {
	noLeaks(t)
	s := startServer(t, ServerOptions{})
	serve(t, join(t, s), "echo", "", 4, echo)
	client := join(t, s)
	var all sync.WaitGroup
	limit := largestPart - headerRoom
	for i, size := range []int{0, 1, limit - 1, limit, limit + 1, 5 << 20, 5<<20 + 1} {
		all.Go(func() {
			data := bytesOf(uint64(i), size)
			if got, err := client.Request(soon(t), "echo", data); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes came back as %d, error %v", size, len(got), err)
			}
		})
	}
	all.Wait()
}

func TestOversizedMessagesAreRejected(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{})
	huge := make([]byte, MaxMessage+1)
	c := join(t, s)
	serve(t, c, "huge", "", 1, func(context.Context, []byte) ([]byte, error) { return huge, nil })
	if _, err := c.Request(soon(t), "huge", huge); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a request got %v, want ErrTooLarge", err)
	}
	_, err := c.Request(soon(t), "huge", nil)
	if _, ok := errors.AsType[*RemoteError](err); !ok {
		t.Errorf("got %v, want a RemoteError", err)
	}
	wantText(t, err, "too large", "256 MiB")
	if err := openStream(t, c, StreamOptions{}).Publish(soon(t), "s.x", "1", huge); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a stream got %v, want ErrTooLarge", err)
	}
}

func TestHandlerErrorArrivesAsText(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{})
	c := join(t, s)
	serve(t, c, "fail", "", 1, func(_ context.Context, data []byte) ([]byte, error) { return nil, errors.New(string(data)) })
	for _, text := range []string{"no such\nrun", ""} {
		_, err := c.Request(soon(t), "fail", []byte(text))
		if remote, ok := errors.AsType[*RemoteError](err); !ok || remote.Text != text {
			t.Errorf("got %v, want a RemoteError with %q", err, text)
		}
	}
	_, err := c.Request(soon(t), "fail", bytes.Repeat([]byte("long"), 1<<20))
	if remote, ok := errors.AsType[*RemoteError](err); !ok || !strings.HasPrefix(remote.Text, "longlong") {
		t.Errorf("got %.100v, want a RemoteError", err)
	}
}

func TestUnansweredRequests(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{})
	c := join(t, s)
	service := serve(t, c, "echo", "", 1, echo)
	service.Close()
	service.Close()
	for _, subject := range []string{"nobody", "echo"} {
		if _, err := c.Request(soon(t), subject, nil); !errors.Is(err, ErrNoService) {
			t.Errorf("%s got %v, want ErrNoService", subject, err)
		}
	}
	entered := make(chan struct{}, 1)
	leave := make(chan struct{})
	serve(t, c, "slow", "", 1, func(context.Context, []byte) ([]byte, error) {
		entered <- struct{}{}
		<-leave
		return nil, nil
	})
	defer close(leave)
	canceled, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if _, err := c.Request(canceled, "slow", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	expired, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Request(expired, "slow", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	if _, err := c.Request(t.Context(), "two words", nil); err == nil {
		t.Error("a subject with a space was sent")
	}
}

func TestRequestFailsWhenConnectionIsLost(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{})
	c := join(t, s)
	entered := make(chan struct{})
	leave := make(chan struct{})
	serve(t, c, "slow", "", 1, func(context.Context, []byte) ([]byte, error) {
		close(entered)
		<-leave
		return nil, nil
	})
	defer close(leave)
	result := make(chan error)
	go func() {
		_, err := c.Request(soon(t), "slow", nil)
		result <- err
	}()
	<-entered
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, ErrNotConnected) {
		t.Errorf("got %v, want ErrAway", err)
	}
}

// FuzzCollect collects a message from parts of any size. It must return exactly the
// announced number of bytes, in order, or an error.
func FuzzCollect(f *testing.F) {
	f.Add("11", "_INBOX.x.rest.y", []byte("hello"), []byte(" world"), uint8(2))
	f.Add("", "", []byte("complete"), []byte(nil), uint8(1))
	f.Add("268435457", "_INBOX.x", []byte(nil), []byte(nil), uint8(1))
	f.Add("5", "chimbuko.run.ps.0.stop", []byte("abc"), []byte("de"), uint8(1))
	f.Add("-1", "_R_.x", []byte("abc"), []byte("de"), uint8(0))
	f.Fuzz(func(t *testing.T, size, from string, head, rest []byte, part uint8) {
		m := &nats.Msg{Data: head, Header: nats.Header{sizeHeader: {size}, restHeader: {from}}}
		whole := append(bytes.Clone(head), rest...)
		got, err := collect(t.Context(), m, func(_ context.Context, subject string, offset int) (*nats.Msg, error) {
			if subject != from || !isInbox(subject) {
				t.Fatalf("requested %q", subject)
			}
			if offset > len(whole) {
				t.Fatalf("requested byte %d of %d", offset, len(whole))
			}
			return &nats.Msg{Data: whole[offset:min(offset+int(part), len(whole))]}, nil
		})
		switch {
		case err != nil:
		case size == "" && !bytes.Equal(got, head):
			t.Errorf("got %q of a complete message %q", got, head)
		case size != "" && (strconv.Itoa(len(got)) != strings.TrimLeft(size, "0") && len(got) > 0 || !bytes.HasPrefix(whole, got)):
			t.Errorf("got %q, want %s bytes of %q", got, size, whole)
		}
	})
}
