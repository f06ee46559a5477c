// Package sender delivers packets in order: to a web server that may be down,
// slow or refuse them, and to files. Nothing is lost: what cannot be delivered
// yet waits, in memory as far as allowed, else in files.
package legacy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// SenderOptions say where packets go. URL or Dir, or both, are needed.
type SenderOptions struct {
	// URL gets each packet as the body of a POST.
	URL string
	// Dir gets each packet as a file pserver_output_stats_<n>.json.
	Dir string
	// Client makes the requests; nil means one of the Sender's own.
	Client *http.Client
	// Timeout is that of one attempt to deliver to URL; 0 means DefaultTimeout.
	Timeout time.Duration
	// Queue is how many bytes may wait in memory, for URL and for Dir each; 0
	// means DefaultQueue.
	Queue int64
	// Spill is a directory for packets that wait when Queue is full and after
	// Close; "" means waiting in Dir. Two Senders must not use it at a time.
	// Packets in it for a URL wait until a Sender has one, and so for a Dir.
	Spill string
	// Log gets a line when packets begin to wait and when they go on; nil means
	// none.
	Log *slog.Logger
	// First is the number of the first packet. It is raised above that of
	// packets which an earlier Sender left in Spill.
	First int
}

// Usual limits of a Sender.
const (
	DefaultTimeout = 10 * time.Second
	DefaultQueue   = 64 << 20
)

// Sender delivers packets, each at least once and one after the other: a packet
// is sent when the one before was accepted. One whose answer was lost is sent
// again. URL and Dir do not wait for each other. Several goroutines may call it.
type Sender struct {
	opt  SenderOptions
	stop context.CancelFunc
	idle func() // closes connections that are the Sender's own

	receiver, files *lane // nil where there is no URL or Dir

	mu   sync.Mutex
	next int // number of the next packet

	end    sync.Once
	result error // of Close
}

// SenderStats say how a Sender gets on.
type SenderStats struct {
	Receiver Progress `json:"receiver"` // at URL
	Files    Progress `json:"files"`    // in Dir
}

// Progress is how delivery to one place gets on.
type Progress struct {
	Sent         uint64    `json:"sent"`
	Pending      int       `json:"pending"`
	PendingBytes int64     `json:"pending_bytes"`
	Retries      uint64    `json:"retries"`           // attempts that failed
	Lost         uint64    `json:"lost"`              // packets that waited in a file which vanished
	Status       int       `json:"status,omitempty"`  // HTTP status of the last attempt; 0 without an answer
	Error        string    `json:"error,omitempty"`   // of the last attempt; "" if it succeeded
	Refused      bool      `json:"refused,omitempty"` // that error is one that waiting hardly cures, such as 404
	LastSent     time.Time `json:"last_sent,omitzero"`
}

// New returns a Sender that first delivers what an earlier one left in Spill. It
// fails if the options cannot work; a receiver that does not answer is no error.
func NewSender(opt SenderOptions) (*Sender, error) {
	opt.Timeout = cmp.Or(opt.Timeout, DefaultTimeout)
	opt.Queue = cmp.Or(opt.Queue, DefaultQueue)
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if err := opt.prepare(); err != nil {
		return nil, err
	}
	s := &Sender{opt: opt, next: opt.First, idle: func() {}}
	waiting, err := leftovers(opt.Spill)
	if err != nil {
		return nil, err
	}
	for _, items := range waiting {
		for _, p := range items {
			s.next = max(s.next, p.n+1)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	if opt.URL != "" {
		p := newPoster(opt)
		s.idle = p.idle
		s.receiver = startLane(ctx, toReceiver, p.name(), opt, waiting[toReceiver], p.deliver)
	}
	if opt.Dir != "" {
		s.files = startLane(ctx, toFiles, opt.Dir, opt, waiting[toFiles], deliverFile(opt.Dir))
	}
	return s, nil
}

// prepare checks the options and makes the directories.
func (opt *SenderOptions) prepare() error {
	if opt.URL == "" && opt.Dir == "" {
		return errors.New("packets have nowhere to go: give a URL or a directory")
	}
	if opt.URL != "" {
		u, err := url.Parse(opt.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("packets cannot be sent to %q: give a URL such as http://host:port/path", opt.URL)
		}
	}
	if opt.Dir != "" {
		if err := writable(opt.Dir); err != nil {
			return fmt.Errorf("packets cannot be written to %s: %w; give a directory that can be written to", opt.Dir, err)
		}
	}
	if opt.Spill == "" && opt.Dir == "" {
		return errors.New("packets need a directory to wait in while the receiver is down: give one")
	}
	if opt.Spill == "" {
		opt.Spill = filepath.Join(opt.Dir, "waiting")
	}
	if err := writable(opt.Spill); err != nil {
		return fmt.Errorf("packets cannot wait in %s: %w; give a directory that can be written to", opt.Spill, err)
	}
	return nil
}

// Send hands over a packet, which the Sender owns then. It does not wait for the
// receiver nor for Dir, at most for a file in Spill. After Close, packets are left
// in Spill.
func (s *Sender) Send(packet []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes() {
		l.add(s.next, packet)
	}
	s.next++
}

func (s *Sender) lanes() (all []*lane) {
	for _, l := range []*lane{s.receiver, s.files} {
		if l != nil {
			all = append(all, l)
		}
	}
	return all
}

// Close delivers all that waits and returns nil, or stops when ctx ends. Then it
// leaves the rest in Spill for a later Sender and says how many packets that
// are. A second call returns the same.
func (s *Sender) Close(ctx context.Context) error {
	s.end.Do(func() { s.result = s.finish(ctx) })
	return s.result
}

func (s *Sender) finish(ctx context.Context) error {
	for _, l := range s.lanes() {
		l.finish()
	}
	var errs []error
	for _, l := range s.lanes() {
		select {
		case <-l.ended:
		case <-ctx.Done():
			s.stop()
			<-l.ended
		}
		errs = append(errs, l.leave())
	}
	s.stop()
	s.idle()
	if s.opt.Spill == filepath.Join(s.opt.Dir, "waiting") {
		_ = os.Remove(s.opt.Spill) // stays if packets wait there
	}
	return errors.Join(errs...)
}

// SenderStats returns how the Sender gets on.
func (s *Sender) Stats() (st SenderStats) {
	if s.receiver != nil {
		st.Receiver = s.receiver.progress()
	}
	if s.files != nil {
		st.Files = s.files.progress()
	}
	return st
}
