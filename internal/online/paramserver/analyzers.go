package paramserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// Analyzer is what a server that has ended knew of an analyzer.
type Analyzer struct {
	Name    string
	Command *protocol.Command // how it was started; nil: that is not known
	Ranks   []trace.Rank
	Done    bool // it has handed over all
}

// Analyzers returns those of the run whose server kept its state in a directory,
// ordered by their names. Without a state there are none.
func Analyzers(dir string) ([]Analyzer, error) {
	path := StatePath(dir, 0)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := readSnapshot(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	done := make(map[string]bool)
	for _, o := range m.GetOutcomes() {
		done[o.GetSender().GetNode()] = true
	}
	ranks := make(map[string][]trace.Rank)
	for _, r := range m.GetRanks() {
		ranks[r.GetNode()] = append(ranks[r.GetNode()], trace.Rank(r.GetRank()))
	}
	var all []Analyzer
	for _, n := range m.GetNodes() {
		if n.GetClaimed() && len(ranks[n.GetName()]) == 0 {
			continue // others read all its ranks
		}
		all = append(all, Analyzer{Name: n.GetName(), Command: n.GetCommand(), Ranks: ranks[n.GetName()], Done: done[n.GetName()]})
	}
	return all, nil
}
