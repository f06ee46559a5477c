package simulate

import "github.com/chimbuko/chimbuko/internal/base/trace"

// stream is the state of a GPU stream: when it will be free, with and without troubles,
// and the trouble and rank that delayed it.
type stream struct{ free, clean, late *int64 }

func (w *walker) stream(i int) stream {
	at := w.vars[len(w.e.p.troubles)+3*i:]
	return stream{&at[0], &at[1], &at[2]}
}

// blame and blamed encode and decode a trouble, or -1, and a rank as one number; 0 is
// none.
func (s *stream) blame(trouble, culprit int32) { *s.late = int64(culprit)<<32 | int64(trouble+1) }

func (s *stream) blamed() (trouble, culprit int32) { return int32(*s.late) - 1, int32(*s.late >> 32) }

func (w *walker) launch(o *op) {
	own, clean, blame := w.drawn(o, &w.hits)
	w.late(blame)
	entry := w.st.clock
	row := w.enter(o, own)
	w.st.correlation++
	if w.out != nil {
		w.lane.count(w.e.p.correlation, w.st.correlation, w.inside(own))
	}
	w.pass(own, clean, &w.hits)
	w.event(trace.Exit, o.fn)
	w.record(o, row, entry, w.st.bytes, w.hits)
	w.kernel(o)
}

// kernel runs the launched kernel on its stream, while the host continues.
func (w *walker) kernel(o *op) {
	host, thread := w.st, w.thread
	s := w.stream(int(o.thread))
	w.st.clock = host.clock + launchLag
	if *s.free > w.st.clock {
		w.st.clock = *s.free
		w.st.blame, w.st.culprit = s.blamed()
	}
	w.st.clean = max(host.clean+launchLag, *s.clean)
	own, clean, blame := w.drawn(o.kernel, &w.hits)
	w.late(blame)
	w.onThread(w.e.p.streamThread(int(o.thread)))
	entry := w.st.clock
	row := w.enter(o.kernel, own)
	if w.out != nil {
		w.lane.count(w.e.p.correlation, w.st.correlation, w.inside(own))
	}
	w.st.clock += own
	w.st.clean += clean
	w.event(trace.Exit, o.kernel.fn)
	w.record(o.kernel, row, entry, w.st.bytes, w.hits)
	*s.free, *s.clean = w.st.clock, w.st.clean
	s.blame(w.st.blame, w.st.culprit)
	w.st.clock, w.st.clean, w.st.blame, w.st.culprit = host.clock, host.clean, host.blame, host.culprit
	w.onThread(thread)
}

func (p *program) streamThread(stream int) int { return p.threads + threadPerStream + stream }

func (w *walker) deviceSync(o *op) {
	r := outcome{end: w.st.clock, clean: w.st.clean, blame: -1}
	for i := range w.e.p.streams {
		s := w.stream(i)
		if *s.free > r.end {
			r.end = *s.free
			r.blame, r.culprit = s.blamed()
		}
		r.clean = max(r.clean, *s.clean)
	}
	w.waitUntil(o, r)
}
