package breakdown

import (
	"maps"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Programs compares the collective operations of programs whose traces are being written. The zero value has none.
type Programs struct {
	programs map[trace.Program]*Live
	known    *Collectives // the latest comparison
	due      time.Time    // when to compare again
}

const (
	// maxCollectives limits the operations of all ranks of a program that are kept, of about 40 bytes each.
	maxCollectives = 1 << 20
	// collectivesShare is the part of the time that comparisons may take.
	collectivesShare = 20
)

// Add adds the log of a rank of a program. It may grow, but not during the methods of Programs.
func (c *Programs) Add(program trace.Program, log RankLog) {
	if c.programs == nil {
		c.programs = make(map[trace.Program]*Live)
	}
	of := c.programs[program]
	if of == nil {
		of = NewLive(maxCollectives)
		c.programs[program] = of
	}
	of.Add(log)
}

// Latest returns the comparison of the operations so far, or one a little older if comparing takes long. It returns nil
// if there are none.
func (c *Programs) Latest(now time.Time) *Collectives {
	if logged := c.logged(); logged > 0 && !now.Before(c.due) && (c.known == nil || c.known.Logged != logged) {
		start := time.Now()
		c.known = c.compare(logged, false)
		c.due = now.Add(collectivesShare * time.Since(start))
	}
	return c.known
}

// Final returns the comparison when all traces have ended, or nil if there are no operations.
func (c *Programs) Final() *Collectives {
	logged := c.logged()
	if logged == 0 {
		return nil
	}
	return c.compare(logged, true)
}

func (c *Programs) logged() (n int64) {
	for _, of := range c.programs {
		n += of.Logged()
	}
	return n
}

func (c *Programs) compare(logged int64, ended bool) *Collectives {
	all := &Collectives{Logged: logged}
	for _, program := range slices.Sorted(maps.Keys(c.programs)) {
		if of := c.programs[program]; of.Logged() > 0 {
			all.Programs = append(all.Programs, ProgramComparison{Program: program, Comparison: *of.Comparison(ended)})
		}
	}
	return all
}
