package paramserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// Analyzer is an analyzer of a run, as its server last stored it.
type Analyzer struct {
	Name    string
	Command *protocol.Command // that starts it again; nil if unknown
	Ranks   []trace.Rank
	Done    bool // it has sent its results
}

// Analyzers returns the analyzers in the snapshot in a directory, by name. Without a snapshot it
// returns none.
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
			continue // others read its ranks now
		}
		all = append(all, Analyzer{Name: n.GetName(), Command: n.GetCommand(), Ranks: ranks[n.GetName()], Done: done[n.GetName()]})
	}
	return all, nil
}
