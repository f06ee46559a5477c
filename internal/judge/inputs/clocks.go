package inputs

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/source/profile"
)

// maxLogged limits the number of collective operations in the log of a rank.
const maxLogged = 1 << 17

// maxFollowed is this limit for logs that are followed, between two comparisons. The analyzer keeps far fewer.
const maxFollowed = 1 << 20

// align corrects the clocks of ranks that disagree with others about collective operations of their program.
func (t *Traces) align() {
	t.alignHosts()
	byProgram := make(map[trace.Program][]int)
	for i, in := range t.Inputs {
		t.Inputs[i].Collectives = logOf(t.profiles[i])
		if !t.Inputs[i].Collectives.Empty() {
			byProgram[in.Program] = append(byProgram[in.Program], i)
		}
	}
	for _, inputs := range byProgram {
		var logs []breakdown.RankLog
		ofRank := make(map[trace.Rank]int)
		for _, i := range inputs {
			log := logOf(t.profiles[i]) // a copy, because Align sorts it
			logs = append(logs, log)
			ofRank[log.Rank] = i
		}
		for _, clock := range breakdown.Align(logs) {
			i := ofRank[clock.Rank]
			t.profiles[i].CorrectClock(clock.Offset)
			t.Inputs[i].Collectives = logOf(t.profiles[i])
			t.Inputs[i].Collectives.Corrected = clock.Offset
		}
	}
}

// alignHosts makes all hosts whose clocks count from their start begin at the same time, because nothing in their traces
// relates these clocks.
func (t *Traces) alignHosts() {
	firsts := make(map[string]trace.Ticks)
	earliest := trace.Ticks(0)
	for _, f := range t.profiles {
		first, known := firsts[f.Properties.Host]
		if at := f.First(); f.Properties.SinceBoot && at > 0 && (!known || at < first) {
			firsts[f.Properties.Host] = at
		}
	}
	for _, first := range firsts {
		if earliest == 0 || first < earliest {
			earliest = first
		}
	}
	for _, f := range t.profiles {
		if first := firsts[f.Properties.Host]; f.Properties.SinceBoot && first > earliest {
			f.AssumeClock(first - earliest)
		}
	}
}

// logOf returns the collective operations of a file.
func logOf(f *profile.File) breakdown.RankLog {
	log := breakdown.NewLog(maxLogged)
	list, omitted := f.Collectives()
	for i := range list {
		c := &list[i]
		launch := c.Launch
		if launch == 0 {
			launch = breakdown.NoLaunch
		}
		log.Add(breakdown.Collective{
			Operation: breakdown.Operation{
				Name: c.Name, Group: c.Group, Size: c.Size, Bytes: c.Elements * breakdown.ElementSize(c.DType), DType: c.DType,
			},
			Seq: c.Seq, Unordered: c.Host, Launch: launch, Start: c.Start, End: c.End,
		})
	}
	log.Omit(omitted)
	f.ProfilerSteps(func(number int64, start trace.Ticks) bool {
		log.BeginStep(number, start)
		return true
	})
	return breakdown.RankLog{Rank: f.Ranks[0], Log: log}
}
