package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	queueBytes     = 64 << 20 // of requests that wait for a worker; more get no answer
	queueLength    = 64 << 10 // requests that wait for a worker
	longestError   = 64 << 10
	extraReplies   = 4                // large replies that may be sent while all workers are busy
	collectTimeout = 30 * time.Second // for a large request to arrive
)

// Handler answers a request. It owns the data, and must not change the reply after it returns. The
// requester gets an error as a RemoteError. ctx ends at the time limit of Conn.Close.
type Handler func(ctx context.Context, data []byte) ([]byte, error)

// Service answers requests until Close.
type Service struct {
	conn    *Conn
	handler Handler
	sub     *nats.Subscription
	stopped chan struct{} // closed when no more requests arrive

	ctx     context.Context // of handlers
	cancel  context.CancelFunc
	running sync.WaitGroup
	workers chan struct{} // semaphore; nil for a single worker
	replies chan struct{} // semaphore for large replies
}

// Serve answers requests for a subject, now or as soon as there is a connection.
// Services with the same queue share the requests; with queue "" each gets all. It
// handles up to workers requests at once; a single worker handles them in order of
// arrival.
func (c *Conn) Serve(subject, queue string, workers int, h Handler) (*Service, error) {
	if err := checkName("subject", subject); err != nil {
		return nil, err
	}
	if workers < 1 {
		return nil, fmt.Errorf("serve %s: %d workers", subject, workers)
	}
	s := &Service{conn: c, handler: h, stopped: make(chan struct{}), replies: make(chan struct{}, workers+extraReplies)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if workers > 1 {
		s.workers = make(chan struct{}, workers)
	}
	var err error
	if s.sub, err = c.nc.QueueSubscribe(subject, queue, s.take); err != nil {
		s.cancel()
		return nil, fmt.Errorf("serve %s: %w", subject, err)
	}
	s.sub.SetClosedHandler(func(string) { close(s.stopped) })
	if err := s.sub.SetPendingLimits(queueLength, queueBytes); err != nil {
		s.cancel()
		return nil, fmt.Errorf("serve %s: %w", subject, err)
	}
	if c.Connected() { // requests must work once Serve returns
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		_ = c.nc.FlushWithContext(ctx) // otherwise the server receives the subscription later
		cancel()
	}
	c.mu.Lock()
	c.services[s] = struct{}{}
	c.mu.Unlock()
	return s, nil
}

// take handles one request after the other. It ignores messages without an inbox for
// the reply: a client could otherwise make the service publish for it.
func (s *Service) take(m *nats.Msg) {
	if !isInbox(m.Reply) {
		return
	}
	if s.workers == nil {
		s.handle(m)
		return
	}
	s.workers <- struct{}{}
	s.running.Go(func() {
		s.handle(m)
		<-s.workers
	})
}

func (s *Service) handle(m *nats.Msg) {
	reply, err := s.answer(m)
	if err == nil {
		err = checkSize(len(reply))
	}
	out := &nats.Msg{Subject: m.Reply}
	var more *rest
	if err == nil {
		more, err = s.conn.fill(out, reply)
	}
	if err != nil {
		text := err.Error()
		out.Data = []byte(text[:min(len(text), longestError)])
		setHeader(out, errorHeader, "1")
	}
	if more != nil {
		s.replies <- struct{}{}
		s.running.Go(func() {
			more.wait(s.ctx, func() bool { return len(s.replies) == cap(s.replies) })
			more.close()
			<-s.replies
		})
	}
	if err := s.conn.nc.PublishMsg(out); err != nil && !isDisconnected(err) { // the requester has lost the connection, too
		s.conn.log.Warn("cannot reply", "subject", m.Subject, "reason", err)
	}
}

func (s *Service) answer(m *nats.Msg) ([]byte, error) {
	ctx, cancel := context.WithTimeout(s.ctx, collectTimeout)
	data, err := collect(ctx, m, s.conn.requestRest)
	cancel()
	if err != nil {
		return nil, fmt.Errorf("incomplete request: %w", err)
	}
	return s.handler(s.ctx, data)
}

// Close accepts no more requests and returns when all received ones are answered. Further calls do
// nothing. A handler must not call it.
func (s *Service) Close() { s.close(context.Background()) }

// close cancels the handlers and gives up when ctx ends.
func (s *Service) close(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	defer s.cancel()
	end := s.sub.Unsubscribe
	if s.conn.Connected() {
		end = s.sub.Drain
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		if err := end(); err == nil || errors.Is(err, nats.ErrBadSubscription) {
			<-s.stopped
		}
		s.running.Wait()
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		_ = s.sub.Unsubscribe() // it may be closed by now
	}
	s.conn.mu.Lock()
	delete(s.conn.services, s)
	s.conn.mu.Unlock()
}
