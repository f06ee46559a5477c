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
	waitingBytes = 64 << 20 // of requests that wait for a worker; who sends more is not answered
	waitingMost  = 64 << 10 // requests
	longestError = 64 << 10
	moreHeld     = 4                // replies that are fetched while the workers go on
	collecting   = 30 * time.Second // for a large request to come in
)

// Handler answers a request. The data are its own; what it returns must not change
// any more. An error goes to the requester as a RemoteError. ctx ends when Close of
// the Conn has waited long enough.
type Handler func(ctx context.Context, data []byte) ([]byte, error)

// Service answers requests until Close.
type Service struct {
	conn    *Conn
	handler Handler
	sub     *nats.Subscription
	stopped chan struct{} // closed when no more requests come

	ctx     context.Context // ends when handlers are to give up
	cancel  context.CancelFunc
	running sync.WaitGroup
	workers chan struct{} // one for each that is busy; nil for a single one
	held    chan struct{} // one for each reply whose parts are being fetched
}

// Serve answers requests for a subject, now or as soon as there is a connection.
// Of all services with the same queue one gets a request; with queue "" each gets
// all. Up to workers requests are handled at once; a single worker handles them
// strictly in order of arrival.
func (c *Conn) Serve(subject, queue string, workers int, h Handler) (*Service, error) {
	if err := checkName("subject", subject); err != nil {
		return nil, err
	}
	if workers < 1 {
		return nil, fmt.Errorf("serve %s: %d workers", subject, workers)
	}
	s := &Service{conn: c, handler: h, stopped: make(chan struct{}), held: make(chan struct{}, workers+moreHeld)}
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
	if err := s.sub.SetPendingLimits(waitingMost, waitingBytes); err != nil {
		s.cancel()
		return nil, fmt.Errorf("serve %s: %w", subject, err)
	}
	if c.Connected() { // others may ask as soon as we return
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		_ = c.nc.FlushWithContext(ctx) // otherwise the server learns of it later
		cancel()
	}
	c.mu.Lock()
	c.services[s] = struct{}{}
	c.mu.Unlock()
	return s, nil
}

// take is called for one request after the other. What nobody can be told the answer
// of is no request: who may not ask could otherwise have a server send it as an answer.
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
		err = tooLarge(len(reply))
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
		s.held <- struct{}{}
		s.running.Go(func() {
			more.wait(s.ctx, func() bool { return len(s.held) == cap(s.held) })
			more.close()
			<-s.held
		})
	}
	if err := s.conn.nc.PublishMsg(out); err != nil && !isAway(err) { // the requester has lost the connection, too
		s.conn.log.Warn("cannot reply", "subject", m.Subject, "reason", err)
	}
}

func (s *Service) answer(m *nats.Msg) ([]byte, error) {
	ctx, cancel := context.WithTimeout(s.ctx, collecting)
	data, err := s.conn.collect(ctx, m)
	cancel()
	if err != nil {
		return nil, fmt.Errorf("the request did not come whole: %w", err)
	}
	return s.handler(s.ctx, data)
}

// Close takes no more requests and returns when those that arrived are answered.
// More calls do nothing. A handler must not call it.
func (s *Service) Close() { s.close(context.Background()) }

// close gives up when ctx ends, and makes handlers give up.
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
		_ = s.sub.Unsubscribe() // it may be over in the meantime
	}
	s.conn.mu.Lock()
	delete(s.conn.services, s)
	s.conn.mu.Unlock()
}
