package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// ErrExists means that the path of a dataset to write exists.
var ErrExists = errors.New("it exists already")

// Plan opens the datasets, finds their first event, and checks the paths to write. It
// removes old datasets if Config.Force is set, but writes nothing. It leaves out datasets
// that cannot be opened, which Run reports, and fails if none can.
func Plan(ctx context.Context, sets []Dataset, cfg Config) (*Replay, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Replay{cfg: cfg}
	for _, d := range sets {
		s, err := p.source(ctx, d)
		if err == nil {
			p.streams = append(p.streams, s)
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		} else {
			p.failed = append(p.failed, err)
		}
	}
	if len(p.streams) == 0 {
		return nil, errors.Join(p.failed...)
	}
	targets, err := p.addSinks()
	if err != nil {
		return nil, err
	}
	if err := p.clear(sets, targets); err != nil {
		return nil, err
	}
	return p, nil
}

// source opens a recorded dataset and reads its first step.
func (p *Replay) source(ctx context.Context, d Dataset) (*stream, error) {
	r, err := bp.Open(d.From, bp.Default())
	if err != nil {
		return nil, err
	}
	if r.Engine() == "BP3" && !p.cfg.rewrites() {
		r.Close()
		return nil, fmt.Errorf("%s: cannot replay BP3, which stays empty until its program ends (rewrite it as BP4)", d.From)
	}
	s := &stream{src: r, to: d.To, steps: countSteps(d.From, r.Engine() == "BP5")}
	if p.cfg.Ranks > 0 {
		s.clock.ranks = make(map[trace.Rank]bool)
	}
	if err := s.begin(ctx, p); err != nil {
		return nil, err
	}
	if first := s.clock.first; first > 0 && (p.first == 0 || first < p.first) {
		p.first = first
	}
	return s, nil
}

// clear checks that the datasets can be written, and removes old ones.
func (p *Replay) clear(sets []Dataset, targets []string) error {
	seen := make(map[string]bool)
	for _, to := range targets {
		if seen[to] {
			return fmt.Errorf("two datasets would become %s", to)
		}
		seen[to] = true
		info, err := os.Stat(to)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, d := range sets {
			if from, err := os.Stat(d.From); err == nil && os.SameFile(from, info) {
				return fmt.Errorf("%s would be written over itself", to)
			}
		}
		if !p.cfg.Force || !info.IsDir() {
			return fmt.Errorf("%s: %w", to, ErrExists)
		}
	}
	for to := range seen {
		if err := removeDataset(to); err != nil {
			return err
		}
	}
	return nil
}

// datasetFile matches the files of a dataset.
var datasetFile = regexp.MustCompile(`^(md\.idx|mm?d\.[0-9]+|data\.[0-9]+|profiling\.json)$`)

// removeDataset removes the files of an old dataset, the index first, and keeps other
// files.
func removeDataset(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, "md.idx")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name != "md.idx" && e.Type().IsRegular() && datasetFile.MatchString(name) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
