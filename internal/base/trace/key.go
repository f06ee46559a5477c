package trace

import (
	"cmp"
	"fmt"
	"strings"
)

// RankKey identifies a rank of a run.
type RankKey struct {
	Program Program
	Rank    Rank
}

// Compare orders keys by program and rank.
func (k RankKey) Compare(o RankKey) int {
	return cmp.Or(cmp.Compare(k.Program, o.Program), cmp.Compare(k.Rank, o.Rank))
}

// FuncKey identifies a function or a counter of a run.
type FuncKey struct {
	Program Program
	Name    string
}

// Compare orders keys by program and name.
func (k FuncKey) Compare(o FuncKey) int {
	return cmp.Or(cmp.Compare(k.Program, o.Program), strings.Compare(k.Name, o.Name))
}

// EventKey identifies an execution of a run by the id in its record, which is
// EventID.String for records of this program and any text for others.
type EventKey struct {
	Program Program
	ID      string
}

// StepKey identifies the output of a rank in a step.
type StepKey struct {
	RankKey
	Step int
}

// RankConflict is the error for two traces that contain the same rank.
type RankConflict struct {
	Paths [2]string
	Rank  RankKey
}

// Error describes the conflict.
func (c *RankConflict) Error() string {
	return fmt.Sprintf("%s and %s both contain rank %d of program %d (if they are of two programs, assign these with --program: only "+
		"names that differ before the rank are recognized)", c.Paths[0], c.Paths[1], c.Rank.Rank, c.Rank.Program)
}
