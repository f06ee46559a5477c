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

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// SenderOptions are the destinations of packets. URL or Dir is required.
type SenderOptions struct {
	// URL receives each packet as the body of a POST.
	URL string
	// Dir receives each packet as a file pserver_output_stats_<n>.json. Numbers continue after those
	// of its files.
	Dir string
	// Client makes the requests; nil: a new one.
	Client *http.Client
	// Timeout limits a request; 0 means DefaultTimeout.
	Timeout time.Duration
	// Queue is the number of bytes that may wait in memory, for each destination; 0 means
	// DefaultQueue.
	Queue int64
	// Spill is a directory for packets that wait when Queue is full and after Close; "" is a
	// directory in Dir. Only one Sender at a time may use it. Packets for a destination that a later
	// Sender does not have remain there.
	Spill string
	// Log receives a line when a destination fails and when it recovers; nil discards them.
	Log *slog.Logger
}

// Defaults of a Sender.
const (
	DefaultTimeout = 10 * time.Second
	DefaultQueue   = 64 << 20
)

// Sender delivers packets in order, each at least once: a packet is sent after the previous one was
// accepted, and sent again if its answer was lost. A destination that fails is retried; its packets
// wait in memory, then in files. URL and Dir do not wait for each other. A Sender is safe for
// concurrent use.
type Sender struct {
	opt  SenderOptions
	stop context.CancelFunc
	idle func() // closes the Sender's own connections

	receiver, files *lane // nil without URL or Dir

	mu   sync.Mutex
	next int // number of the next packet

	end    sync.Once
	result error // of Close
}

// SenderStats are the deliveries of a Sender.
type SenderStats struct {
	Receiver Progress // at URL
	Files    Progress // in Dir
}

// Progress counts the deliveries to one destination.
type Progress struct {
	api.Sender
	PendingBytes int64
	Lost         uint64 // packets whose files vanished
	Refused      bool   // the error is likely to persist, such as 404
}

// NewSender returns a Sender that first delivers the packets that an earlier one left in Spill. It
// fails if the options are invalid, not if the receiver does not answer.
func NewSender(opt SenderOptions) (*Sender, error) {
	opt.Timeout = cmp.Or(opt.Timeout, DefaultTimeout)
	opt.Queue = cmp.Or(opt.Queue, DefaultQueue)
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if err := opt.prepare(); err != nil {
		return nil, err
	}
	s := &Sender{opt: opt, idle: func() {}}
	var err error
	if opt.URL != "" {
		p := newPoster(opt)
		s.idle = p.idle
		s.receiver = newLane("receiver", p.name(), opt, p.deliver)
	}
	if opt.Dir != "" {
		s.files = newLane("files", opt.Dir, opt, func(_ context.Context, n int, packet []byte) (int, error) {
			return 0, writeFile(filepath.Join(opt.Dir, fileName(n)), packet)
		})
		var numbers map[string]int
		numbers, err = packetNumbers(opt.Dir)
		for _, n := range numbers {
			s.next = max(s.next, n+1)
		}
	}
	for _, l := range s.lanes() {
		last, loadErr := l.load()
		s.next, err = max(s.next, last+1), errors.Join(err, loadErr)
	}
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	for _, l := range s.lanes() {
		go l.run(ctx)
	}
	return s, nil
}

// prepare checks the options and creates the directories.
func (opt *SenderOptions) prepare() error {
	if opt.URL == "" && opt.Dir == "" {
		return errors.New("packets have no destination (give a URL or a directory)")
	}
	if opt.URL != "" {
		u, err := url.Parse(opt.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("invalid URL of packets %q (want for example http://host:port/path)", opt.URL)
		}
	}
	if opt.Dir != "" {
		if err := makeWritable(opt.Dir); err != nil {
			return fmt.Errorf("packets cannot be written to %s: %w (give a writable directory)", opt.Dir, err)
		}
		opt.Spill = cmp.Or(opt.Spill, filepath.Join(opt.Dir, "waiting"))
	}
	if opt.Spill == "" {
		return errors.New("packets need a directory to wait in while the receiver is down")
	}
	if err := makeWritable(opt.Spill); err != nil {
		return fmt.Errorf("packets cannot wait in %s: %w (give a writable directory)", opt.Spill, err)
	}
	return nil
}

// Send takes ownership of a packet and queues it. It waits for no destination, at most for a file
// in Spill. After Close, packets remain in Spill.
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

// Close delivers all packets and returns nil. If ctx ends first, it leaves the rest in Spill for a
// later Sender and returns an error with their number. A second call returns the same.
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
		_ = os.Remove(s.opt.Spill) // fails if packets wait there
	}
	return errors.Join(errs...)
}

// Stats returns the progress of all destinations.
func (s *Sender) Stats() (st SenderStats) {
	if s.receiver != nil {
		st.Receiver = s.receiver.progress()
	}
	if s.files != nil {
		st.Files = s.files.progress()
	}
	return st
}

// unfinishedSuffix is the suffix of files being written.
const unfinishedSuffix = ".tmp"

// writeFile writes a file completely or not at all.
func writeFile(path string, data []byte) error {
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+unfinishedSuffix)
	err := os.WriteFile(temp, data, 0o644)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

// makeWritable creates a directory if necessary, and tries to write to it.
func makeWritable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-*"+unfinishedSuffix)
	if err != nil {
		return err
	}
	_ = os.Remove(f.Name())
	return f.Close()
}
