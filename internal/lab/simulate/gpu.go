package simulate

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
	w.st.correlation++
	w.leaf(o)
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
	w.onThread(w.e.p.streamThread(int(o.thread)))
	w.leaf(o.kernel)
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
