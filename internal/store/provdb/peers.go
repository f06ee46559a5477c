package provdb

import (
	"errors"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// checkPeers returns an error if a comparison of peers has values that no store can hold.
func checkPeers(p *provenance.Peers) error {
	if p == nil {
		return nil
	}
	for i := range p.Loads {
		l := &p.Loads[i]
		err := errors.Join(checkProgram(l.PID), checkNumbers(l.Share), checkOptional(l.Ratio, l.From, l.To), checkWindows(l.Windows))
		if err != nil {
			return fmt.Errorf("load of rank %d: %w", l.RID, err)
		}
	}
	for i := range p.Efficiency {
		e := &p.Efficiency[i]
		err := errors.Join(checkProgram(e.PID), checkNumbers(e.From, e.To, e.Parallel, e.LoadBalance, e.Communication),
			checkOptional(e.DeviceParallel, e.DeviceLoadBalance))
		if err != nil {
			return fmt.Errorf("efficiency of program %d: %w", e.PID, err)
		}
	}
	for i := range p.Slow {
		s := &p.Slow[i]
		err := errors.Join(checkProgram(s.PID), checkNumbers(s.Ratio, s.From, s.Share, s.Confidence, s.SyncShare, s.PeerSync),
			checkOptional(s.To), checkWindows(s.Windows))
		for k := range s.Functions {
			err = errors.Join(err, checkNumbers(s.Functions[k].Mean, s.Functions[k].Peers))
		}
		for k := range s.Counters {
			c := &s.Counters[k]
			err = errors.Join(err, checkNumbers(c.Value, c.Peers, c.Spreads), checkOptional(c.Past))
		}
		if err != nil {
			return fmt.Errorf("slow peer %d: %w", i+1, err)
		}
	}
	return nil
}

func checkWindows(all []provenance.LoadWindow) error {
	for i := range all {
		w := &all[i]
		err := errors.Join(checkNumbers(w.From, w.To), checkOptional(w.Ratio))
		if i > 0 && w.From <= all[i-1].From {
			err = errors.New("windows must be in order of time")
		}
		if err != nil {
			return fmt.Errorf("window %d: %w", i+1, err)
		}
	}
	return nil
}

func checkOptional(all ...*float64) error {
	for _, x := range all {
		if x == nil {
			continue
		}
		if err := checkNumbers(*x); err != nil {
			return err
		}
	}
	return nil
}

// cleanPeers returns a comparison with valid texts, and only the last of the loads and efficiencies
// with the same key.
func cleanPeers(p *provenance.Peers) *provenance.Peers {
	if p == nil {
		return nil
	}
	type lane struct {
		program trace.Program
		rank    trace.Rank
		thread  int64
		device  bool
	}
	type period struct {
		program trace.Program
		entire  bool
		from    float64
	}
	return &provenance.Peers{
		Loads: latest(p.Loads, map[lane]bool{}, cleanLoad, func(l *provenance.RankLoad) lane { return lane{l.PID, l.RID, l.TID, l.Device} }),
		Efficiency: latest(p.Efficiency, map[period]bool{}, func(*provenance.Efficiency) {},
			func(e *provenance.Efficiency) period { return period{e.PID, e.Entire, e.From} }),
		Slow: cleanSlow(p.Slow), Activity: p.Activity,
	}
}

func cleanLoad(l *provenance.RankLoad) {
	cleanTexts(&l.Host, (*string)(&l.Pattern))
	l.Functions = copied(l.Functions)
	for i := range l.Functions {
		cleanTexts(&l.Functions[i].Func)
	}
}

func cleanSlow(all []provenance.SlowPeer) []provenance.SlowPeer {
	all = copied(all)
	for i := range all {
		s := &all[i]
		cleanTexts(&s.Host, (*string)(&s.Pattern))
		s.Hosts, s.Functions, s.Counters = copied(s.Hosts), copied(s.Functions), copied(s.Counters)
		for k := range s.Hosts {
			cleanTexts(&s.Hosts[k])
		}
		for k := range s.Functions {
			cleanTexts(&s.Functions[k].Func)
		}
		for k := range s.Counters {
			cleanTexts(&s.Counters[k].Counter)
		}
	}
	return all
}
