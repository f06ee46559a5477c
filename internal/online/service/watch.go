package service

import (
	"context"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/online/alert"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// The run is searched for findings every findingsEvery, but for at most 1/findingsCost of the time.
const (
	findingsEvery = 2 * time.Second
	findingsCost  = 10
)

// watchFindings runs the command of the user for each new finding until live ends, and again with
// the final findings. It returns when all commands have ended.
func (s *server) watchFindings(ctx, live context.Context) {
	r := &alert.Runner{
		Command: s.cfg.OnFinding, Environ: append(slices.Clip(s.cfg.Environ), "CHIMBUKO_RUN="+s.cfg.Store.Dir),
		TimeLimit: time.Minute, Log: s.log,
	}
	defer r.Wait()
	pause := findingsEvery
	for last := false; !last; {
		last = wait.Sleep(live, pause) != nil
		began := time.Now()
		if err := s.checkFindings(ctx, r); err != nil && last && ctx.Err() == nil {
			s.log.Warn("cannot read the final findings for --on-finding", "error", err)
		}
		pause = max(findingsEvery, findingsCost*time.Since(began))
	}
}

func (s *server) checkFindings(ctx context.Context, r *alert.Runner) error {
	a, err := query.New(ctx, s.Reader(), s.run)
	if err != nil {
		return err
	}
	result, err := a.Findings(ctx)
	if err != nil {
		return err
	}
	r.Check(ctx, result.Findings)
	return nil
}
