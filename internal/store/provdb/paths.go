package provdb

import (
	"errors"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// checkPaths returns why call paths are no tree.
func checkPaths(all []provenance.PathStats) error {
	for i := range all {
		p := &all[i]
		err := checkProgram(p.PID)
		switch {
		case p.Node != i+1 || p.Parent < 0 || p.Parent > i:
			err = errors.New("they are to be numbered from 1, and each is to follow on its parent")
		case p.Parent > 0 && all[p.Parent-1].PID != p.PID:
			err = errors.New("it is of another program than its parent")
		case p.Calls < 0 || p.Exclusive < 0:
			err = errors.New("numbers of calls and times are not negative")
		}
		if err != nil {
			return fmt.Errorf("call path %d: %w", i+1, err)
		}
	}
	return nil
}

// cleanPaths returns call paths with valid names. Those whose names become equal are merged.
func cleanPaths(all []provenance.PathStats) []provenance.PathStats {
	type key struct {
		program trace.Program
		parent  int
		fid     int
		name    string
	}
	known := make(map[key]int, len(all))
	nodes := make([]int, len(all)+1) // in fit
	fit := make([]provenance.PathStats, 0, len(all))
	for i := range all {
		p := all[i]
		p.Func, p.Parent = provenance.Text(p.Func), nodes[p.Parent]
		k := key{p.PID, p.Parent, p.FID, p.Func}
		if known[k] == 0 {
			p.Node = len(fit) + 1
			known[k] = p.Node
			fit = append(fit, p)
		} else {
			same := &fit[known[k]-1]
			same.Calls += p.Calls
			same.Exclusive += p.Exclusive
		}
		nodes[i+1] = known[k]
	}
	return fit
}
