package provdb

import (
	"errors"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// checkPaths returns an error if call paths do not form a tree.
func checkPaths(all []provenance.PathStats) error {
	for i := range all {
		p := &all[i]
		err := checkProgram(p.PID)
		switch {
		case p.Node != i+1 || p.Parent < 0 || p.Parent > i:
			err = errors.New("paths must be numbered from 1 and follow their parents")
		case p.Parent > 0 && all[p.Parent-1].PID != p.PID:
			err = errors.New("program differs from that of its parent")
		case p.Calls < 0 || p.Exclusive < 0:
			err = errors.New("calls and times must be ≥ 0")
		}
		if err != nil {
			return fmt.Errorf("call path %d: %w", i+1, err)
		}
	}
	return nil
}

// cleanPaths returns call paths with valid names. It merges paths whose names become equal.
func cleanPaths(all []provenance.PathStats) []provenance.PathStats {
	type key struct {
		program trace.Program
		parent  int
		fid     int
		name    string
	}
	numbers := make(map[key]int, len(all))
	nodes := make([]int, len(all)+1) // numbers in merged
	merged := make([]provenance.PathStats, 0, len(all))
	for i := range all {
		p := all[i]
		p.Func, p.Parent = provenance.Text(p.Func), nodes[p.Parent]
		k := key{p.PID, p.Parent, p.FID, p.Func}
		if numbers[k] == 0 {
			p.Node = len(merged) + 1
			numbers[k] = p.Node
			merged = append(merged, p)
		} else {
			same := &merged[numbers[k]-1]
			same.Calls += p.Calls
			same.Exclusive += p.Exclusive
		}
		nodes[i+1] = numbers[k]
	}
	return merged
}
