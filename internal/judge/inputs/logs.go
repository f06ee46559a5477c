package inputs

import (
	"fmt"
	"os"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/source/nccl"
)

// Logs binds logs of NCCL Inspector to inputs. The zero value is ready to use.
type Logs struct {
	Follow bool // the logs may grow
	jobs   map[trace.Program]*nccl.Job
	inputs map[string][]analyzer.Input // by path
}

// Bind replaces each input that is a log by one input per rank of the log.
func (l *Logs) Bind(inputs []analyzer.Input, logs []string) ([]analyzer.Input, error) {
	if len(logs) == 0 {
		return inputs, nil
	}
	if l.jobs == nil {
		l.jobs, l.inputs = make(map[trace.Program]*nccl.Job), make(map[string][]analyzer.Input)
	}
	added := make(map[trace.Program][]*nccl.File)
	for _, in := range inputs {
		if !slices.Contains(logs, in.Path) || l.inputs[in.Path] != nil {
			continue
		}
		f, err := nccl.ReadHead(in.Path)
		if err != nil {
			return nil, err
		}
		if f == nil { // replaced since it was listed
			return nil, fmt.Errorf("%s: no record of NCCL Inspector", in.Path)
		}
		added[in.Program] = append(added[in.Program], f)
	}
	for program, files := range added {
		job := l.jobs[program]
		if job == nil {
			job = new(nccl.Job)
			l.jobs[program] = job
		}
		job.Add(files)
		for _, f := range files {
			l.inputs[f.Path] = l.ranks(program, job, f)
		}
	}
	var bound []analyzer.Input
	for _, in := range inputs {
		if ranks := l.inputs[in.Path]; ranks != nil {
			bound = append(bound, ranks...)
		} else {
			bound = append(bound, in)
		}
	}
	return bound, nil
}

// ranks returns an input for each rank of a log.
func (l *Logs) ranks(program trace.Program, job *nccl.Job, f *nccl.File) (inputs []analyzer.Input) {
	size := int64(0)
	if info, err := os.Stat(f.Path); err == nil {
		size = info.Size()
	}
	for i, rank := range f.Ranks {
		most := maxLogged
		if l.Follow {
			most = maxFollowed
		}
		log, logged := breakdown.NewLog(most), false
		in := analyzer.Input{
			Path: f.Path, Program: program, Size: size, Collectives: breakdown.RankLog{Rank: rank, Log: log, Untimed: !job.Timed()},
			Steps: func(t *tally.Tally) (trace.Steps, error) {
				opt := nccl.Options{Program: program, Follow: l.Follow, Tally: t}
				if !logged { // not in the second pass
					logged = true
					opt.OnCollective = func(c *nccl.Collective) { logCollective(log, c, job.Timed()) }
				}
				return f.Steps(i, opt), nil
			},
		}
		if i > 0 {
			in.Path, in.Size = fmt.Sprintf("%s (rank %d)", f.Path, rank), 0
		}
		if !job.Named() {
			in.Steps = assumed(in.Steps)
		}
		inputs = append(inputs, in)
	}
	return inputs
}

// assumed counts that the rank of a log is a guess, when open is called.
func assumed(open func(*tally.Tally) (trace.Steps, error)) func(*tally.Tally) (trace.Steps, error) {
	return func(t *tally.Tally) (trace.Steps, error) {
		t.Add(tally.RankAssumed, 1)
		return open(t)
	}
}

// logCollective adds an operation to the log of a rank. Without times, all ranks end an operation at the same time, so the
// rank with the shortest time arrived last, and the others waited for it.
func logCollective(log *breakdown.Log, c *nccl.Collective, timed bool) {
	start, end := -c.Duration, trace.Ticks(0)
	if timed && c.Timed {
		start, end = c.Start, c.Start+c.Duration
	}
	log.Add(breakdown.Collective{
		Operation: breakdown.Operation{Name: c.Name, Group: c.Group, Size: c.Size, Bytes: c.Bytes},
		Seq:       c.Seq, Launch: breakdown.NoLaunch, Start: start, End: end,
	})
}
