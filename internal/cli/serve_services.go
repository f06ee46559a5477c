package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/chimbuko/chimbuko/internal/rundir"
)

// findServices returns what the run directory tells of the services; nil if this
// process is the first. One that has no message bus of its own waits until
// another tells where it is.
func (s *serveRun) findServices(ctx context.Context) (*rundir.Services, error) {
	for said := false; ; said = true {
		found, err := rundir.ReadServices(s.flags.out)
		switch {
		case err == nil:
			return found, nil
		case !errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("%w; remove it if no process of the run is left, they write it anew", err)
		case s.flags.has(roleBus) || s.flags.url != "":
			return nil, nil //nolint:nilnil // the first
		case !said:
			fmt.Fprintf(s.env.Stderr, "chimbuko: waiting for the process with the role nats to start in %s; a server that is there already is given with --nats\n", s.flags.out)
		}
		if err := sleep(ctx, watchEvery/4); err != nil {
			return nil, err
		}
	}
}

// announce tells in the run directory how to reach the parts that are in this
// process, beside what others told there.
func (s *serveRun) announce() error {
	own, all := s.services, *s.services
	there, err := rundir.ReadServices(s.flags.out)
	if err == nil && there.Run == s.run {
		all = *there
		if s.flags.has(roleBus) {
			all.Host, all.PID, all.Started = own.Host, own.PID, own.Started
		}
		if s.flags.has(roleBus) || s.flags.url != "" {
			all.Bus, all.Token, all.CA = own.Bus, own.Token, own.CA
		}
		if s.flags.has(roleWeb) {
			all.Web, all.Secret = own.Web, own.Secret
		}
		if s.flags.has(roleParams) {
			all.Shards = own.Shards
		}
		if all.Started.Equal(there.Started) {
			all.Started = there.Started
		}
		if all == *there {
			return nil
		}
	}
	return rundir.WriteServices(s.flags.out, &all)
}

// keepAnnounced announces again what another process, which was started at the
// same time, wrote over.
func (s *serveRun) keepAnnounced(ctx context.Context) {
	for sleep(ctx, watchEvery) == nil {
		if err := s.announce(); err != nil {
			s.log.Warn("analysers cannot be told where the services are", "error", err)
		}
	}
}

// shards is how many processes share the parameter server.
func (s *serveRun) shards() int {
	if !s.flags.has(roleParams) {
		if there, err := rundir.ReadServices(s.flags.out); err == nil {
			return there.Shards
		}
	}
	return s.services.Shards
}

// ofServices are the names of what a run directory holds before the store has made
// the run.
var ofServices = []string{"services.json", "services.json.new", "nats", "parameters", "stats-waiting", "spool"}

// joinServices lets a run be made in a directory where other services of it were
// started before the store: there is a run to go on with then.
func joinServices(path string, sum *runSummary) error {
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) == 0 {
		return nil // made anew, or reported, by who comes next
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !slices.Contains(ofServices, e.Name()) }) {
		return nil
	}
	text, err := json.MarshalIndent(sum, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(path, "run.json"), append(text, '\n'), 0o644) //nolint:gosec // meant to be read by all
}
