// Package viewer serves the page of a run over HTTP: of a stored run, or of the run that the
// services of this process write. It opens the store of a run and reports its state.
package viewer

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/dashboard/ui"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Options are the settings of a page.
type Options struct {
	ReadOnly     bool     // refuse labels
	UIDir        string   // directory of the built page; "" is the one in this program
	Compare      []string // runs and baselines to compare with
	Runs         string   // directory of further runs to choose from; NoRuns: none
	Beside       bool     // if Runs is "" and only this machine reaches the page, choose from the directory that contains the run
	Listen       string   // host:port
	AllowedHosts []string // further names in the Host header
	MetricsOpen  bool     // serve /metrics without the token
	Cert, Key    string   // files for TLS; "" serves plain HTTP
	SQLMemory    int64    // megabytes that an SQL query may use; 0: the default of the store
}

// Page is a running server of a page.
type Page struct {
	Address string // URL
	Token   string
	Labels  bool // whether labels can be stored

	serving *errgroup.Group
}

// Serve serves the page of a stored run until ctx ends.
func (o *Options) Serve(ctx context.Context, r *Run, with *References, log *slog.Logger) (*Page, error) {
	cfg := dashboard.Config{
		Config:  insight.Config{Source: r, Run: r.Name, Place: r.Place.String()},
		Version: r.version, Token: rand.Text(), References: with.List, Neighbors: with.Neighbors, Log: log,
	}
	if r.dir != "" {
		cfg.Token, _ = rundir.Secret(r.dir) // a new token each time if the directory is read-only
	}
	before := ""
	if s, err := runfiles.ReadServices(r.dir); err == nil && Reachable(s) {
		before = s.Web
	}
	return o.ServeConfig(ctx, cfg, r.dir, before)
}

// ServeConfig serves a dashboard until ctx ends. dir is the run directory, for labels, or "". If
// Listen has port 0, it listens on the port of before, the earlier URL of the page, or else on the
// usual port of the run, if it is free.
func (o *Options) ServeConfig(ctx context.Context, cfg dashboard.Config, dir, before string) (*Page, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.SQLMemory = o.SQLMemory * 1e6
	cfg.AllowedHosts, cfg.MetricsOpen = o.AllowedHosts, o.MetricsOpen
	if err := o.configure(&cfg, dir); err != nil {
		return nil, err
	}
	listener, err := listen(ctx, o.Listen, before, cfg.Place+"\n"+cfg.Run, cfg.Log)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // only shown
	cfg.Host = host
	p := &Page{Address: addressOf(listener.Addr(), host, o.Cert != ""), Token: cfg.Token, Labels: cfg.Labels != nil}
	p.serving = new(errgroup.Group)
	own, _, _ := net.SplitHostPort(HostPort(p.Address)) // it always has a port
	cfg.AllowedHosts = append(slices.Clone(cfg.AllowedHosts), own)
	handler := dashboard.New(cfg) //nolint:contextcheck // requests have their own
	p.serving.Go(func() error { return serveHTTP(ctx, listener, handler, o.Cert, o.Key, cfg.Log) })
	return p, nil
}

// configure adds the files of the page and the labels.
func (o *Options) configure(cfg *dashboard.Config, dir string) error {
	site, err := o.site()
	if err != nil {
		return err
	}
	cfg.Page, cfg.ReadOnly, cfg.Parquet = site, o.ReadOnly, duckstore.WriteParquet
	if dir != "" {
		cfg.Labels, cfg.Place = rundir.NewLabels(dir), dir
		if full, err := filepath.Abs(dir); err == nil {
			cfg.Place = full
		}
	}
	return cfg.Validate()
}

func (o *Options) site() (*ui.Site, error) {
	if o.UIDir == "" {
		return ui.New()
	}
	site, err := ui.FromDir(o.UIDir)
	if err != nil {
		return nil, fmt.Errorf("--ui-dir: %w", err)
	}
	return site, nil
}

// Wait waits until the server has ended.
func (p *Page) Wait() error { return p.serving.Wait() }

// URL returns the address of the page with its token.
func (p *Page) URL() string { return WithToken(p.Address, p.Token) }
