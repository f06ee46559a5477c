package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/lab/quality"
)

// peers measures the comparison of peers on all data sets, in so many runs of each half at most.
func (t *tool) peers(ctx context.Context, fit, report int) ([]*quality.PeerResult, error) {
	sets := quality.PeerScenarios()
	for i := range t.sets {
		if slices.Contains(quality.PeerTraces, t.sets[i].Name) {
			sets = append(sets, quality.PeerTrace(t.sets[i].Dir))
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var (
		mu      sync.Mutex
		results []*quality.PeerResult
	)
	for _, set := range sets {
		if !t.includes(set.Name) {
			continue
		}
		r := &quality.PeerResult{
			Data: set.Name, Fit: make([]*quality.PeerRun, min(fit, len(set.Fit))), Report: make([]*quality.PeerRun, min(report, len(set.Report))),
		}
		results = append(results, r)
		for i := range len(r.Fit) + len(r.Report) {
			run, into := set.Fit, r.Fit
			if i >= len(into) {
				i -= len(into)
				run, into = set.Report, r.Report
			}
			g.Go(func() (err error) {
				began := time.Now()
				if into[i], err = run[i](ctx, t.temp); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(t.progress, "%s, %.1f s\n", into[i].Name, time.Since(began).Seconds())
				return nil
			})
		}
	}
	return results, g.Wait()
}

// includes reports whether a data set is to be measured.
func (t *tool) includes(name string) bool {
	return len(t.only) == 0 || slices.ContainsFunc(t.only, func(part string) bool { return strings.Contains(name, part) })
}

// checkPeers fails if the first run of the fit half of a data set misses a target.
func (t *tool) checkPeers(ctx context.Context) error {
	results, err := t.peers(ctx, 1, 0)
	errs := []error{err}
	for _, r := range results {
		for _, line := range r.Failures(r.Fit) {
			errs = append(errs, errors.New(line))
		}
	}
	return errors.Join(errs...)
}

// printPeers prints the table of slow peers, and what failed.
func (t *tool) printPeers(report int) func(context.Context) error {
	return func(ctx context.Context) error {
		results, err := t.peers(ctx, math.MaxInt, report)
		if err != nil {
			return err
		}
		fmt.Fprintln(t.out, quality.PeerTable(results))
		for _, r := range results {
			for _, line := range append(r.Failures(r.Fit), r.Failures(r.Report)...) {
				fmt.Fprintln(t.out, line)
			}
		}
		return nil
	}
}
