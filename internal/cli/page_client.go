package cli

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// pageClient returns what the page of a run shows.
type pageClient struct {
	viewer.Answers

	run   string // its name
	close func() error
}

// openPage finds who can answer what the page of a run shows: the services of a run
// that goes on, those at an address, or else this process from what is stored.
func openPage(ctx context.Context, env *Env, where, run string) (*pageClient, error) {
	if strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://") {
		return pageAt(ctx, new(http.Client), where, "", run)
	}
	dir := rundir.Find(where)
	if dir != "" && run == "" {
		if s, err := rundir.ReadServices(dir); err == nil && s.Web != "" && viewer.Reachable(s) && isOpen(dir) {
			client, err := viewer.Client(s.CA)
			if err != nil {
				return nil, err
			}
			if c, err := pageAt(ctx, client, s.Web, s.Secret, s.Run); err == nil {
				return c, nil
			}
		}
	}
	v, err := viewer.Open(ctx, where, run, env.Version)
	if err != nil {
		return nil, err
	}
	cfg := insight.Config{Source: v, Run: v.Name, ReadOnly: true, Cache: duckstore.NewCache}
	if dir != "" {
		cfg.Labels = rundir.NewLabels(dir)
	}
	return &pageClient{Answers: viewer.NewLocal(cfg), run: v.Name, close: v.Close}, nil
}

// isOpen reports whether a run is still to be ended.
func isOpen(dir string) bool {
	info, err := rundir.ReadInfo(dir)
	return errors.Is(err, os.ErrNotExist) || err == nil && info.State.Open()
}

// pageAt asks the dashboard at an address. Without a name it is the run that it watches.
func pageAt(ctx context.Context, client *http.Client, address, token, run string) (*pageClient, error) {
	c, err := dashboard.NewClient(client, address, token)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, viewer.StatusTimeout)
	defer cancel()
	st, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	if run == "" {
		run = st.Run.Name
	}
	return &pageClient{Answers: c, run: run, close: func() error { client.CloseIdleConnections(); return nil }}, nil
}
