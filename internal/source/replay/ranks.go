package replay

import (
	"errors"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// addSinks adds the datasets to write, and returns their paths.
func (p *Replay) addSinks() (targets []string, err error) {
	if p.cfg.Ranks > 0 {
		return p.addCopies()
	}
	for _, s := range p.streams {
		if p.cfg.rewrites() {
			s.sinks = []sink{&rewriter{p: p, src: s.src, to: s.to}}
		} else {
			s.sinks = []sink{&copier{p: p, src: s.src, to: s.to}}
		}
		targets = append(targets, s.to)
	}
	return targets, nil
}

// addCopies adds copies of each recorded rank, Config.Ranks in total.
func (p *Replay) addCopies() (targets []string, err error) {
	if err := errors.Join(p.failed...); err != nil {
		return nil, fmt.Errorf("adding ranks needs all recorded ranks: %w", err)
	}
	owner := make(map[trace.Rank]*stream)
	for _, s := range p.streams {
		rank, err := s.rank()
		if err != nil {
			return nil, err
		}
		if other := owner[rank]; other != nil {
			return nil, fmt.Errorf("%s and %s both contain rank %d (adding ranks needs the ranks of one program)",
				other.src.Path(), s.src.Path(), rank)
		}
		owner[rank] = s
	}
	recorded := len(p.streams)
	if p.cfg.Ranks < recorded {
		return nil, fmt.Errorf("%d ranks are fewer than the %d recorded", p.cfg.Ranks, recorded)
	}
	for rank := range recorded {
		s := owner[trace.Rank(rank)]
		if s == nil {
			return nil, fmt.Errorf("rank %d is missing among the %d datasets (adding ranks needs all recorded ranks)", rank, recorded)
		}
		for c := 0; c*recorded+rank < p.cfg.Ranks; c++ {
			to := s.to
			if c > 0 {
				to = copyPath(s.to, rank, c*recorded+rank)
			}
			names := renamer{ranks: c * recorded, copy: c, world: p.cfg.Ranks}
			s.sinks = append(s.sinks, &rewriter{p: p, src: s.src, to: to, renamer: names})
			targets = append(targets, to)
		}
	}
	return targets, nil
}

// rank returns the rank of the rows of the first step, or of its metadata if it has no
// rows.
func (s *stream) rank() (trace.Rank, error) {
	ranks := s.clock.ranks
	if len(ranks) == 0 && s.step != nil {
		for i := range s.step.Attributes {
			if m, ok := tau.ParseMetadata(s.step.Attributes[i].Name); ok {
				ranks[m.Rank] = true
			}
		}
	}
	if len(ranks) != 1 {
		return 0, fmt.Errorf("%s contains the events of %d ranks (adding ranks needs one dataset for each recorded rank)",
			s.src.Path(), len(ranks))
	}
	for r := range ranks {
		return r, nil
	}
	return 0, nil
}
