package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Bus configures the connection to a message bus. Without a URL, the run directory has the URL and
// the token.
type Bus struct {
	bus.Options
	TokenFile string
}

// Client returns the options of a client. The services may be nil.
func (b *Bus) Client(s *runfiles.Services, name string, log *slog.Logger) (bus.Options, error) {
	opt := b.Options
	opt.Name, opt.Log = name, log
	if s != nil && b.URL == "" {
		opt.URL, opt.Token = s.Bus, s.Token
		opt.CA = cmp.Or(opt.CA, s.CA)
	}
	if b.TokenFile != "" {
		text, err := os.ReadFile(b.TokenFile)
		if err != nil {
			return opt, err
		}
		opt.Token = strings.TrimSpace(string(text))
	}
	return opt, nil
}

// Stop makes the services of a run end it with the current results.
func (b *Bus) Stop(ctx context.Context, s *runfiles.Services) error {
	opt, err := b.Client(s, "chimbuko stop", nil)
	if err != nil {
		return err
	}
	conn, err := bus.Connect(opt)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:contextcheck // Close bounds itself
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := conn.Wait(ctx); err != nil {
		return fmt.Errorf("the services do not respond: %w", err)
	}
	_, err = conn.Request(ctx, paramwire.Subject(s.Run, 0, "stop"), nil)
	return err
}

// connector connects to the services of a run, which may start later and restart at
// another address. Without a connection its methods fail with bus.ErrNotConnected.
type connector struct {
	bus  *Bus
	dir  string // of the run; "" if bus has a URL
	name string
	log  *slog.Logger

	mu     sync.Mutex
	conn   *bus.Conn
	opt    bus.Options
	stream *bus.Stream
	run    string
}

// WatchEvery is the time between checks of the run directory.
const WatchEvery = time.Second

// WatchDir returns ErrRemoved when a run directory has been removed or replaced for two checks. The
// directory may not exist yet. It returns nil when ctx ends.
func WatchDir(ctx context.Context, dir string) error {
	var first os.FileInfo
	for missing := 0; missing < 2; {
		info, err := os.Stat(dir)
		switch {
		case first == nil && err == nil:
			first = info
		case first == nil:
		case err == nil && os.SameFile(first, info):
			missing = 0
		case err == nil || errors.Is(err, os.ErrNotExist): // a part of this process may make it again
			missing++
		}
		if wait.Sleep(ctx, WatchEvery) != nil {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", dir, ErrRemoved)
}

// watch keeps the connection up to date until ctx ends.
func (c *connector) watch(ctx context.Context) {
	logged := ""
	for {
		err := c.reconnect() //nolint:contextcheck // the connection remains
		switch {
		case err == nil || errors.Is(err, os.ErrNotExist):
			logged = ""
		case err.Error() != logged:
			logged = err.Error()
			c.log.Warn("cannot reach the services", "error", err)
		}
		if wait.Sleep(ctx, WatchEvery) != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.conn != nil {
				c.conn.Close() //nolint:contextcheck // ctx has ended, Close bounds itself
			}
			return
		}
	}
}

// reconnect connects to the services if their address has changed.
func (c *connector) reconnect() error {
	var s *runfiles.Services
	if c.bus.URL == "" {
		var err error
		if s, err = runfiles.ReadServices(c.dir); err != nil {
			return err
		}
		s.Token = s.Analyzer // the one for analyzers
		if s.Run != c.run {
			return fmt.Errorf("%s is the directory of run %q, but this analyzer was started for %q (restart it with --name %q)",
				c.dir, s.Run, c.run, s.Run)
		}
	}
	opt, err := c.bus.Client(s, c.name, c.log)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil && opt == c.opt {
		return nil
	}
	conn, err := bus.Connect(opt)
	if err != nil {
		return err
	}
	if c.conn != nil {
		go c.conn.Close()
	}
	c.conn, c.opt, c.stream = conn, opt, nil
	return nil
}

func (c *connector) current() (*bus.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return nil, fmt.Errorf("%w: the services have not started yet", bus.ErrNotConnected)
	}
	return c.conn, nil
}

// Request sends a request to a service.
func (c *connector) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	conn, err := c.current()
	if err != nil {
		return nil, err
	}
	return conn.Request(ctx, subject, data)
}

// Publish stores a message in the stream of records.
func (c *connector) Publish(ctx context.Context, subject, id string, data []byte) error {
	conn, err := c.current()
	if err != nil {
		return err
	}
	c.mu.Lock()
	stream := c.stream
	c.mu.Unlock()
	if stream == nil {
		if stream, err = conn.Stream(ctx, bus.StreamOptions{Name: recordstream.Name(c.run)}); err != nil {
			return err
		}
		c.mu.Lock()
		c.stream = stream
		c.mu.Unlock()
	}
	return stream.Publish(ctx, subject, id, data)
}

// hasEnded reports whether the services have ended the run: they delete its stream, to
// which this analyzer was attached.
func (c *connector) hasEnded(ctx context.Context) bool {
	c.mu.Lock()
	conn, attached := c.conn, c.stream != nil
	c.mu.Unlock()
	if !attached {
		return false
	}
	exists, err := conn.HasStream(ctx, recordstream.Name(c.run))
	return err == nil && !exists
}
