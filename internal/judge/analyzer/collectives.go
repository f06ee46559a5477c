package analyzer

import (
	"maps"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
)

// collectives compares the collective operations of traces that are being written.
type collectives struct {
	programs map[trace.Program]*breakdown.Live
	known    *breakdown.Collectives // the latest comparison
	due      time.Time              // when to compare again
}

const (
	// maxCollectives limits the operations of all ranks of a program that are kept, of about 40 bytes each.
	maxCollectives = 1 << 20
	// collectivesShare is the part of the time that comparisons may take.
	collectivesShare = 20
)

// add adds the collective operations of a trace, if its reader knows them.
func (c *collectives) add(in *Input) {
	if in.Collectives.Log == nil {
		return
	}
	if c.programs == nil {
		c.programs = make(map[trace.Program]*breakdown.Live)
	}
	of := c.programs[in.Program]
	if of == nil {
		of = breakdown.NewLive(maxCollectives)
		c.programs[in.Program] = of
	}
	of.Add(in.Collectives)
}

// latest returns the comparison of the operations so far, or one a little older if comparing takes long. It returns nil
// if there are none.
func (c *collectives) latest(now time.Time) *breakdown.Collectives {
	if logged := c.logged(); logged > 0 && !now.Before(c.due) && (c.known == nil || c.known.Logged != logged) {
		start := time.Now()
		c.known = c.compare(logged, false)
		c.due = now.Add(collectivesShare * time.Since(start))
	}
	return c.known
}

// final returns the comparison when all traces have ended, or nil if there are no operations.
func (c *collectives) final() *breakdown.Collectives {
	logged := c.logged()
	if logged == 0 {
		return nil
	}
	return c.compare(logged, true)
}

func (c *collectives) logged() (n int64) {
	for _, of := range c.programs {
		n += of.Logged()
	}
	return n
}

func (c *collectives) compare(logged int64, ended bool) *breakdown.Collectives {
	all := &breakdown.Collectives{Logged: logged}
	for _, program := range slices.Sorted(maps.Keys(c.programs)) {
		if of := c.programs[program]; of.Logged() > 0 {
			all.Programs = append(all.Programs, breakdown.ProgramComparison{Program: program, Comparison: *of.Comparison(ended)})
		}
	}
	return all
}
