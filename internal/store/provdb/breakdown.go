package provdb

import (
	"errors"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// checkBreakdown returns an error if a breakdown has values that no store can hold.
func checkBreakdown(b *provenance.Breakdown) error {
	if b == nil {
		return nil
	}
	for i := range b.Times {
		if err := checkProgram(b.Times[i].PID); err != nil {
			return fmt.Errorf("GPU time of rank %d: %w", b.Times[i].RID, err)
		}
	}
	for i := range b.Collectives {
		c := &b.Collectives[i]
		if err := errors.Join(checkProgram(c.PID), checkNumbers(c.Bandwidth)); err != nil {
			return fmt.Errorf("collective %d: %w", i+1, err)
		}
	}
	for i := range b.Clocks {
		if err := checkProgram(b.Clocks[i].PID); err != nil {
			return fmt.Errorf("clock of rank %d: %w", b.Clocks[i].RID, err)
		}
	}
	return nil
}

// cleanBreakdown returns a breakdown with valid texts, and only the last clock of each rank.
// A rank may have several steps with the same number.
func cleanBreakdown(b *provenance.Breakdown) *provenance.Breakdown {
	if b == nil {
		return nil
	}
	c := &provenance.Breakdown{
		Unit: b.Unit, Times: b.Times, Collectives: copied(b.Collectives),
		Clocks: latest(b.Clocks, map[trace.RankKey]bool{}, func(*provenance.RankClock) {},
			func(c *provenance.RankClock) trace.RankKey { return trace.RankKey{Program: c.PID, Rank: c.RID} }),
	}
	for i := range c.Collectives {
		cleanTexts(&c.Collectives[i].Operation, &c.Collectives[i].Group, &c.Collectives[i].DType)
	}
	return c
}
