package analyzer

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// pendingCapture is a capture whose window ends in the next step.
type pendingCapture struct {
	thread  *callstack.Thread
	missing int // number of calls missing at the end of the window
	capture provenance.Capture
}

// complete extends the windows of captures of the previous step into this one and stores these captures before those of this step.
func (r *rank) complete() error {
	for _, p := range r.pending {
		p.capture.Extend(p.thread, p.missing)
		if err := r.put(p); err != nil {
			return err
		}
	}
	r.pending = r.pending[:0]
	return nil
}

// maxHeld is the number of captures of a rank that wait in memory until their functions have enough samples. More captures
// wait in the spool until the end of the run.
const maxHeld = 1 << 10

// put stores a complete capture.
func (r *rank) put(p *pendingCapture) error {
	if p.capture.Kind == provenance.Unjudged && len(r.unjudged) < maxHeld {
		r.unjudged = append(r.unjudged, p)
		return nil
	}
	defer captures.Put(p)
	r.provisional(&p.capture)
	return r.spool.Add(&p.capture)
}

// captures recycles captures that have been stored.
var captures = sync.Pool{New: func() any { return new(pendingCapture) }}

// judgeHeld judges held captures whose functions now have enough samples.
func (r *rank) judgeHeld() error {
	left := r.unjudged[:0]
	for _, p := range r.unjudged {
		c := &p.capture
		f := r.all[c.Context]
		j := f.judge()
		if f.model == nil || j != nil && !j.Enough() {
			left = append(left, p)
			continue
		}
		if j == nil { // the function is ignored
			continue
		}
		score, verdict := j.JudgeCall(r.timeOf(c), r.capturedWork(f, c))
		switch {
		case verdict >= outlier.Recurring:
			c.Kind = provenance.Anomaly
			c.Mark(true)
			r.flag(f, c.Thread, score, int32(r.step), c.Call().Entry, c.Call().Exit, c.Exclusive)
		case r.keepsCandidates(): // with few samples, even a normal call may become an outlier
			c.Kind = provenance.Candidate
		default:
			continue
		}
		c.Score = score
		r.provisional(c)
		if err := r.late.Add(c); err != nil {
			return err
		}
		captures.Put(p)
	}
	clear(r.unjudged[len(left):])
	r.unjudged = left
	return nil
}

// keepsCandidates reports whether to keep calls that are almost outliers.
func (r *rank) keepsCandidates() bool { return r.cfg.Review && r.cfg.Passes == 1 }

// timeOf returns the time by which a captured call is judged.
func (r *rank) timeOf(c *provenance.Capture) int64 {
	if r.cfg.Inclusive {
		return int64(c.Call().Exit - c.Call().Entry)
	}
	return int64(c.Exclusive)
}

// settle stores all captures that are still pending when the rank's trace has ended.
func (r *rank) settle() error {
	if err := r.complete(); err != nil {
		return err
	}
	for _, p := range r.unjudged {
		if err := r.late.Add(&p.capture); err != nil {
			return err
		}
	}
	r.unjudged = nil
	return nil
}

// keep captures the suspects of the step after all calls are labeled.
func (r *rank) keep() error {
	for _, s := range r.flagged {
		c := &s.thread.Calls[s.call]
		if c.Exclusive() < r.cfg.MinTime {
			continue
		}
		if s.kind == provenance.Anomaly {
			r.flag(s.of, s.thread.ID, s.score, int32(r.step), c.Entry, c.Exit, c.Exclusive())
		}
		if err := r.spoolCall(s); err != nil {
			return err
		}
	}
	if r.missingTypicals > 0 {
		return r.keepTypical()
	}
	return nil
}

// flag counts an anomaly and requests a typical execution of its function.
func (r *rank) flag(f *localFunc, thread trace.Thread, score float64, step int32, entry, exit, exclusive trace.Ticks) {
	r.counts.Flagged++
	r.want(f.peers(), thread)
	if r.online {
		f.delta().Anomalies.Add(step, entry, exit, score, exclusive)
		r.note(f)
	}
}

// provisional creates the record of an anomaly or typical execution while the trace is being written. Of anomalies that are alike
// it creates those of a sample. The store has those that earlier processes of this analyzer sent.
func (r *rank) provisional(c *provenance.Capture) {
	if !r.online || c.Kind != provenance.Anomaly && c.Kind != provenance.Typical {
		return
	}
	f, isStored := r.all[c.Context], int(c.IOStep) < r.stored
	if c.Kind == provenance.Typical {
		if !isStored {
			r.normal = append(r.normal, r.typical(f, c))
		}
		return
	}
	like, keep := r.alike.Keep(f.peers().number, r.lost(f, f.judge(), c), r.number(keyOf(c)))
	if c.Sent = keep; keep && !isStored {
		record := r.anomaly(f, c, provenance.Provisional)
		record.StandsFor(like)
		r.anomalies = append(r.anomalies, record)
	}
}

// lost returns the time that a captured call lost by a judge.
func (r *rank) lost(f *localFunc, j *outlier.Judge, c *provenance.Capture) int64 {
	excess, _ := j.Excess(r.capturedWork(f, c))
	return max(r.timeOf(c)-f.model.by.usual, excess)
}

// typical returns the record of a typical execution.
func (r *rank) typical(f *localFunc, c *provenance.Capture) *provenance.Record {
	return r.record(c, f.model.by.params())
}

// record returns the record of a capture with the model that judged it.
func (r *rank) record(c *provenance.Capture, model json.RawMessage) *provenance.Record {
	record := provenance.NewRecord(c, r, model)
	record.Unit = r.cfg.Unit.Canonical()
	return record
}

// anomaly returns the record of an anomaly with the model that judged it.
func (r *rank) anomaly(f *localFunc, c *provenance.Capture, status provenance.Status) *provenance.Record {
	time := r.timeOf(c)
	if _, rare := r.judgeOf(f, c); rare != nil {
		return r.rareAnomaly(rare, c, time, status)
	}
	record := r.record(c, f.model.by.params())
	usual, onPath := &f.model.by.model, f.peers() != f.allPaths
	if !onPath {
		usual = f.allPaths.models.function.Learned() // over all ranks
	}
	work := r.capturedWork(f, c)
	_, verdict := f.judge().JudgeCall(time, work)
	record.LostTime = trace.Ticks(max(0, time-usual.UsualTime(verdict)))
	record.ExplainCall(f.judge(), time, work, onPath, status)
	return record
}

// publish passes the provisional records of a step to the sink.
func (r *rank) publish(ctx context.Context, sink RecordSink, step int) error {
	if len(r.anomalies)+len(r.normal) == 0 {
		return nil
	}
	err := sink.Records(ctx, trace.StepKey{RankKey: r.key, Step: step}, r.anomalies, r.normal)
	r.anomalies, r.normal = nil, nil
	return err
}

// want requests a typical execution of a function on a thread.
func (r *rank) want(f *localFunc, thread trace.Thread) {
	if !slices.Contains(f.missingTypicals, thread) {
		f.missingTypicals = append(f.missingTypicals, thread)
		r.missingTypicals++
	}
}

func (r *rank) spoolCall(s suspect) error {
	p := captures.Get().(*pendingCapture)
	c := &p.capture
	c.Take(s.thread, s.call, r.cfg.Window)
	c.Kind, c.Context, c.Score, c.IOStep, c.Sent = s.kind, s.of.number, s.score, int32(r.step), false
	c.StepStart, c.StepEnd = r.start, r.end
	c.NodeTime, c.NodeState = r.state.At(c.Call().Exit, c.NodeState[:0])
	p.thread, p.missing = s.thread, int(s.call)+r.cfg.Window+1-len(s.thread.Calls)
	if p.missing > 0 {
		r.pending = append(r.pending, p)
		return nil
	}
	return r.put(p)
}
