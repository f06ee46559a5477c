package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/dashboard/ui"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// configure adds the page to what is served. dir is that of the run, where labels
// are kept; "" if there is none.
func (p *pageFlags) configure(cfg *dashboard.Config, dir string) error {
	site, err := p.site()
	if err != nil {
		return err
	}
	cfg.Page, cfg.ReadOnly, cfg.Parquet = site, p.readOnly, duckstore.WriteParquet
	if dir != "" {
		cfg.Labels, cfg.Place = rundir.NewLabels(dir), dir
		if full, err := filepath.Abs(dir); err == nil {
			cfg.Place = full
		}
	}
	return cfg.Validate()
}

func (p *pageFlags) site() (*ui.Site, error) {
	if p.dir == "" {
		return ui.New()
	}
	site, err := ui.FromDir(p.dir)
	if err != nil {
		return nil, fmt.Errorf("--ui-dir: %w", err)
	}
	return site, nil
}

// viewPage is the page of a run that somebody else, or nobody, is at work on.
type viewPage struct {
	pageFlags
	listen      string // host:port
	hosts       []string
	metricsOpen bool
	cert, key   string // files; "": without TLS
	log         *slog.Logger
	references  []dashboard.Reference

	address string // URL
	token   string
	labels  dashboard.Labels
	serving *errgroup.Group
}

// start serves the page until ctx ends.
func (p *viewPage) start(ctx context.Context, v *viewRun) error {
	p.token = rand.Text()
	if v.dir != "" {
		p.token, _ = rundir.Secret(v.dir) // in a directory that is only read it holds for this once
	}
	before := ""
	if s, err := rundir.ReadServices(v.dir); err == nil && reachable(s) {
		before = s.Web
	}
	return p.serve(ctx, dashboard.Config{Source: v, Run: v.name, Version: v.version, Place: v.place.String()}, v.dir, before)
}

// serve serves what a configuration shows until ctx ends. dir is that of the run, or "";
// before is where it was served before.
func (p *viewPage) serve(ctx context.Context, cfg dashboard.Config, dir, before string) error {
	cfg.Token, cfg.AllowedHosts, cfg.MetricsOpen, cfg.Log, cfg.References = p.token, p.hosts, p.metricsOpen, p.log, p.references
	if err := p.configure(&cfg, dir); err != nil {
		return err
	}
	p.labels = cfg.Labels
	listener, err := listenAgain(ctx, p.listen, before)
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // only shown
	p.address = webAddress(listener.Addr(), host, p.cert != "")
	cfg.AllowedHosts = append(slices.Clone(cfg.AllowedHosts), hostOf(p.address))
	p.serving = new(errgroup.Group)
	p.serving.Go(func() error { return serveHTTP(ctx, listener, dashboard.New(cfg), p.cert, p.key, cfg.Log) })
	return nil
}

// wait waits until the page has ended.
func (p *viewPage) wait() error { return p.serving.Wait() }

// visit is the address that a browser opens first.
func (p *viewPage) visit() string { return visitOf(p.address, p.token) }

func visitOf(address, token string) string {
	return address + "/?" + url.Values{"token": {token}}.Encode()
}

// listenAgain listens at host:port. Where the port is left open it is the one of a URL
// that was used before, if that can be had: pages that are still open find it there.
func listenAgain(ctx context.Context, address, before string) (net.Listener, error) {
	var config net.ListenConfig
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, old, err := net.SplitHostPort(hostPort(before)); err == nil && port == "0" {
		if l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, old)); err == nil {
			return l, nil
		}
	}
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address with --http", err)
	}
	return l, nil
}

// serveHTTP answers until ctx ends, with TLS where a certificate is given.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, cert, key string, log *slog.Logger) error {
	lines := newWebLog(log)
	server := newWebServer(ctx, h, lines)
	l = newBoundedListener(l, webConnections, lines)
	g, over := errgroup.WithContext(ctx)
	g.Go(func() error {
		serve := server.Serve
		if cert != "" {
			serve = func(l net.Listener) error { return server.ServeTLS(l, cert, key) }
		}
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-over.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(last) != nil {
			return server.Close()
		}
		return nil
	})
	return g.Wait()
}

// hostOf is the name in a URL. It may be one that leads over the loopback interface.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// webAddress is the URL of what listens at an address, as others can use it.
func webAddress(addr net.Addr, hostname string, secure bool) string {
	scheme, host := "http", addr.String()
	if secure {
		scheme = "https"
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		host = net.JoinHostPort(hostname, fmt.Sprint(tcp.Port))
	}
	return scheme + "://" + host
}
