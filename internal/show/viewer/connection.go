package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/report"
	"github.com/chimbuko/chimbuko/internal/show/terminal"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Answers returns the data of the page of a run: an insight.Insight computes it, a
// dashboard.Client requests it from another process.
type Answers interface {
	report.Source
	Status(ctx context.Context) (*api.Status, error)
}

// Connection answers queries about a run as its page does.
type Connection struct {
	Answers
	Run   string // its name
	Close func() error
}

// Connect returns a connection to the page at an address, to the services of an open run,
// or else to the store of a run in this process.
func Connect(ctx context.Context, where, run, version string) (*Connection, error) {
	if isAddress(where) {
		return connectPage(ctx, new(http.Client), where, "", run)
	}
	dir := rundir.Find(where)
	if dir != "" && run == "" {
		if s, err := runfiles.ReadServices(dir); err == nil && s.Web != "" && Reachable(s) && isOpen(dir) {
			client, err := Client(s.CA)
			if err != nil {
				return nil, err
			}
			if c, err := connectPage(ctx, client, s.Web, s.Secret, s.Run); err == nil {
				return c, nil
			}
		}
	}
	v, err := Open(ctx, where, run, version)
	if err != nil {
		return nil, err
	}
	cfg := insight.Config{Source: v, Run: v.Name, ReadOnly: true}
	if dir != "" {
		cfg.Labels = rundir.NewLabels(dir)
	}
	return &Connection{Answers: insight.New(cfg), Run: v.Name, Close: v.Close}, nil
}

func isAddress(where string) bool {
	return strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://")
}

// isOpen reports whether a run has not ended.
func isOpen(dir string) bool {
	info, err := runfiles.ReadInfo(dir)
	return errors.Is(err, os.ErrNotExist) || err == nil && info.State.Open()
}

// connectPage connects to a dashboard. Without a name the run is the watched one.
func connectPage(ctx context.Context, client *http.Client, address, token, run string) (*Connection, error) {
	c, err := dashboard.NewClient(client, address, token)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	st, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	return &Connection{Answers: c, Run: cmp.Or(run, st.Run.Name), Close: func() error { client.CloseIdleConnections(); return nil }}, nil
}

// StatusAt requests the status of the services of a run, with its verdict: of a run directory, or
// at the address of a page.
func StatusAt(ctx context.Context, where string) (*api.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	s := &runfiles.Services{Web: where}
	if _, err := os.Stat(where); err == nil {
		s, err = runfiles.ReadServices(where)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("%s: no services were started for this run (for an ended run try chimbuko top %s)", where, where)
		case err != nil:
			return nil, err
		case s.Web == "":
			return nil, fmt.Errorf("%s: no process of the run has the role web", where)
		}
	}
	st, err := fetchStatus(ctx, s)
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" && s.Web != where {
		return nil, fmt.Errorf("%s: the services of this run have ended or were killed: nothing answers at %s (results: chimbuko top %s; "+
			"if the run is not finished: chimbuko finish %s)", where, dial.Addr, where, where)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (if the run has ended, try chimbuko top %s)", err, where)
	}
	st.Verdict = fetchVerdict(ctx, s, st.Run.Name)
	return st, nil
}

// verdictTimeout is how long the page may take to report a verdict.
const verdictTimeout = 2 * time.Second

// fetchVerdict requests the verdict about a run. It returns nil if that is not available soon.
func fetchVerdict(ctx context.Context, s *runfiles.Services, run string) *api.Verdict {
	ctx, cancel := context.WithTimeout(ctx, verdictTimeout)
	defer cancel()
	client, err := Client(s.CA)
	if err != nil {
		return nil
	}
	defer client.CloseIdleConnections()
	c, err := dashboard.NewClient(client, s.Web, s.Secret)
	if err != nil {
		return nil
	}
	o, err := c.Overview(ctx, run, insight.OverviewParams{Columns: insight.DefaultColumns})
	if err != nil {
		return nil
	}
	return &o.Verdict
}

// Live is the source of the terminal view of a run: its services while they run, then its
// store.
type Live struct {
	where, run, version string

	mu   sync.Mutex
	page *Connection // nil: to be connected
}

// NewLive connects to a run. The caller must close it.
func NewLive(ctx context.Context, where, run, version string) (*Live, error) {
	l := &Live{where: where, run: run, version: version}
	return l, l.connect(ctx)
}

func (l *Live) connect(ctx context.Context) (err error) {
	l.page, err = Connect(ctx, l.where, l.run, l.version)
	return err
}

// Close closes the connection.
func (l *Live) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.page == nil {
		return nil
	}
	return l.page.Close()
}

// read calls f with the connection. If that fails, because the services ended with their
// run, it connects again.
func (l *Live) read(ctx context.Context, f func(ctx context.Context, page *Connection) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.page != nil {
		err := f(ctx, l.page)
		if err == nil || ctx.Err() != nil || isAddress(l.where) {
			return err
		}
		_ = l.page.Close() // it does not answer
	}
	if err := l.connect(ctx); err != nil {
		return err
	}
	return f(ctx, l.page)
}

// Picture returns the current state of the run.
func (l *Live) Picture(ctx context.Context, columns, rows int) (*terminal.Picture, error) {
	p := new(terminal.Picture)
	return p, l.read(ctx, func(ctx context.Context, page *Connection) (err error) {
		params := insight.OverviewParams{Columns: insight.DefaultColumns, Findings: terminal.Findings}
		if p.Overview, err = page.Overview(ctx, page.Run, params); err != nil {
			return err
		}
		// The view can do without these.
		heat := heatmap.Params{Metric: heatmap.MetricOwn, Columns: columns, Rows: rows}
		if p.Heatmap, err = page.Heatmap(ctx, page.Run, heat); err != nil {
			p.Heatmap = nil
		}
		if p.Status, err = page.Status(ctx); err != nil || p.Status.Run.Name != page.Run {
			p.Status = nil
		}
		return nil
	})
}

// Evidence returns the details of an execution.
func (l *Live) Evidence(ctx context.Context, program int64, event string) (e *api.Evidence, err error) {
	err = l.read(ctx, func(ctx context.Context, page *Connection) (err error) {
		e, err = page.Evidence(ctx, page.Run, insight.EventParams{ID: event, Program: new(trace.Program(program))})
		return err
	})
	return e, err
}
