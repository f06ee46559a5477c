package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func TestSingleWorkerKeepsOrder(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{})
	var busy atomic.Int32
	var got []string
	serve(t, join(t, s), "count", "", 1, func(_ context.Context, data []byte) ([]byte, error) {
		if busy.Add(1) != 1 {
			t.Error("two requests at once")
		}
		defer busy.Add(-1)
		got = append(got, string(data[:3]))
		return nil, nil
	})
	c, observer := join(t, s), join(t, s)
	var sent atomic.Int64 // requests without their other parts
	_, err := observer.nc.Subscribe("count", func(*nats.Msg) { sent.Add(1) })
	if err = errors.Join(err, observer.nc.FlushWithContext(soon(t))); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var want []string
	for i := range 50 {
		data := fmt.Appendf(nil, "%3d", i)
		want = append(want, string(data))
		if i%10 == 5 {
			data = append(data, make([]byte, 3<<20)...) // larger than a message
		}
		// Send the next request after this one, but before its reply.
		all.Go(func() {
			if _, err := c.Request(soon(t), "count", data); err != nil {
				t.Error(err)
			}
		})
		eventually(t, "the request is sent", func() bool { return sent.Load() > int64(i) })
	}
	all.Wait()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v", got)
	}
}

func TestWorkersRunConcurrently(t *testing.T) {
	t.Parallel()
	const workers = 3
	s := startServer(t, ServerOptions{})
	var busy atomic.Int32
	full := make(chan struct{}) // closed when all are busy
	isFull := sync.OnceFunc(func() { close(full) })
	serve(t, join(t, s), "work", "", workers, func(context.Context, []byte) ([]byte, error) {
		defer busy.Add(-1)
		switch n := busy.Add(1); {
		case n == workers:
			isFull()
		case n > workers:
			t.Errorf("%d work at once, want %d", n, workers)
		}
		<-full
		return nil, nil
	})
	c := join(t, s)
	var all sync.WaitGroup
	for range 3 * workers {
		all.Go(func() {
			if _, err := c.Request(soon(t), "work", nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestQueueSharesRequests(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{})
	c := join(t, s)
	var calls [2]atomic.Int64
	for i := range calls {
		serve(t, join(t, s), "work", "workers", 2, func(_ context.Context, data []byte) ([]byte, error) {
			calls[i].Add(1)
			return data, nil
		})
	}
	for i := range 40 {
		data := bytesOf(1, 10)
		if i%10 == 0 {
			data = bytesOf(1, 3<<20) // the rest must reach the same service
		}
		if got, err := c.Request(soon(t), "work", data); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("got %d bytes and %v", len(got), err)
		}
	}
	if a, b := calls[0].Load(), calls[1].Load(); a+b != 40 || a == 0 || b == 0 {
		t.Errorf("one handled %d requests and the other %d, want 40 together", a, b)
	}
}

func TestServiceCloseWaitsForHandlers(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{})
	entered := make(chan struct{})
	leave := make(chan struct{})
	service := serve(t, join(t, s), "slow", "", 2, func(context.Context, []byte) ([]byte, error) {
		close(entered)
		<-leave
		return bytesOf(1, 3<<20), nil
	})
	result := make(chan error)
	c := join(t, s)
	go func() {
		got, err := c.Request(soon(t), "slow", nil)
		if !bytes.Equal(got, bytesOf(1, 3<<20)) {
			t.Error("the reply is incomplete")
		}
		result <- err
	}()
	<-entered
	closed := make(chan struct{})
	go func() {
		service.Close()
		close(closed)
	}()
	select {
	case <-closed:
		t.Error("Close did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	if err := <-result; err != nil {
		t.Error(err)
	}
	<-closed
}
