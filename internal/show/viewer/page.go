// Package viewer serves the page of a run over HTTP: of one that is stored, or of the
// run that the services of this process write. It finds the store of a run, answers
// dashboard's questions about its state, and listens.
package viewer

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/show/compare"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/dashboard/ui"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// Options are what a person chooses about a page.
type Options struct {
	ReadOnly     bool     // refuse labels
	UIDir        string   // directory of the built page; "" is the one in this program
	Compare      []string // runs and baselines to compare with
	Listen       string   // host:port
	AllowedHosts []string // further names in the Host header
	MetricsOpen  bool     // serve /metrics without the token
	Cert, Key    string   // files for TLS; "" serves plain HTTP
}

// Page is a page that is served.
type Page struct {
	Address string // URL
	Token   string
	Labels  bool // whether labels can be stored

	serving *errgroup.Group
}

// Serve serves the page of a stored run until ctx ends.
func (o *Options) Serve(ctx context.Context, r *Run, references []compare.Reference, log *slog.Logger) (*Page, error) {
	cfg := dashboard.Config{
		Source: r, Run: r.Name, Version: r.version, Place: r.Place.String(), Token: rand.Text(), References: references, Log: log,
	}
	if r.dir != "" {
		cfg.Token, _ = rundir.Secret(r.dir) // a directory that is read-only gets another token each time
	}
	before := ""
	if s, err := rundir.ReadServices(r.dir); err == nil && Reachable(s) {
		before = s.Web
	}
	return o.ServeConfig(ctx, cfg, r.dir, before)
}

// ServeConfig serves a dashboard until ctx ends. dir is the run directory, for labels, or
// "". before is the URL at which the page was served earlier, or "": if Listen leaves the
// port open, Serve tries that port first.
func (o *Options) ServeConfig(ctx context.Context, cfg dashboard.Config, dir, before string) (*Page, error) {
	cfg.AllowedHosts, cfg.MetricsOpen = o.AllowedHosts, o.MetricsOpen
	if err := o.configure(&cfg, dir); err != nil {
		return nil, err
	}
	listener, err := listen(ctx, o.Listen, before)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // only shown
	p := &Page{Address: addressOf(listener.Addr(), host, o.Cert != ""), Token: cfg.Token, Labels: cfg.Labels != nil}
	p.serving = new(errgroup.Group)
	cfg.AllowedHosts = append(slices.Clone(cfg.AllowedHosts), hostOf(p.Address))
	p.serving.Go(func() error { return serveHTTP(ctx, listener, dashboard.New(cfg), o.Cert, o.Key, cfg.Log) })
	return p, nil
}

// configure adds the files of the page and the labels.
func (o *Options) configure(cfg *dashboard.Config, dir string) error {
	site, err := o.site()
	if err != nil {
		return err
	}
	cfg.Page, cfg.ReadOnly, cfg.Parquet, cfg.Cache = site, o.ReadOnly, duckstore.WriteParquet, duckstore.NewCache
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

// Wait waits until the page has ended.
func (p *Page) Wait() error { return p.serving.Wait() }

// URL returns the address that a browser opens first, with the token.
func (p *Page) URL() string { return WithToken(p.Address, p.Token) }
