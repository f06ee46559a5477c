package breakdown

import (
	"maps"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Programs compares the collective operations of programs while their traces are being written. The zero value is empty.
type Programs struct {
	programs map[trace.Program]*Live
	latest   *Collectives // latest comparison
	due      time.Time    // time of the next comparison
}

const (
	// maxCollectives limits the number of operations to keep for all ranks of a program. Each takes about 40 bytes.
	maxCollectives = 1 << 20
	// collectivesShare limits comparisons to one part in collectivesShare of the time.
	collectivesShare = 20
)

// Add adds the log of a rank of a program. The log may grow, but not during calls of methods of Programs.
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

// Latest returns the comparison of the operations so far, or a slightly older one if comparing takes long. It returns nil if
// there are no operations.
func (c *Programs) Latest(now time.Time) *Collectives {
	if logged := c.logged(); logged > 0 && !now.Before(c.due) && (c.latest == nil || c.latest.Logged != logged) {
		start := time.Now()
		c.latest = c.compare(logged, false)
		c.due = now.Add(collectivesShare * time.Since(start))
	}
	return c.latest
}

// Final returns the comparison after all traces have ended, or nil if there are no operations.
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
