package cli

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// pageClient asks what the page of a run shows.
type pageClient struct {
	*dashboard.Client

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
		if s, err := rundir.ReadServices(dir); err == nil && s.Web != "" && reachable(s) && isOpen(dir) {
			client, err := trusting(s.CA)
			if err != nil {
				return nil, err
			}
			if c, err := pageAt(ctx, client, s.Web, s.Secret, s.Run); err == nil {
				return c, nil
			}
		}
	}
	v := &viewRun{dir: dir, run: run, version: env.Version}
	var err error
	if v.place, err = rundir.FindStore(where); err != nil {
		return nil, err
	}
	if err := v.find(ctx); err != nil {
		return nil, errors.Join(err, v.close())
	}
	cfg := dashboard.Config{Source: v, Run: v.name, Version: env.Version, ReadOnly: true}
	if dir != "" {
		cfg.Labels = rundir.NewLabels(dir)
	}
	return &pageClient{Client: dashboard.Within(dashboard.New(cfg)), run: v.name, close: v.close}, nil
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
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	st, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	if run == "" {
		run = st.Run.Name
	}
	return &pageClient{Client: c, run: run, close: func() error { client.CloseIdleConnections(); return nil }}, nil
}
