// Package tracefile writes a record of provenance as a trace that viewers of
// timelines open: Perfetto's own format, and the JSON of Chrome's trace viewer.
// Both show the same: the thread of the execution and its calls, the thread
// that launched a kernel, messages with arrows, counters and the state of the
// node. It reads nothing but the record, and the same record always gives the
// same bytes.
//
// What a record does not say is not made up, with three exceptions, which the
// slices tell of:
//
//   - A call that had not ended when the record was taken stays open, unless a
//     later call shows that it has ended: then it ends where that call begins.
//     Chrome's format wants an end, so there it lasts until the last time of the
//     record.
//   - A call whose exit does not fit the calls around it is cut so that all
//     calls nest.
//   - The other end of a message has no time. It is drawn at the time of the end
//     that has one, on a process of its own, as long as the times are exact: a
//     microsecond.
//
// The numbers of processes and threads are those of the tracks, since viewers
// take the process 0 for an idle one; names tell the rank and the thread.
package tracefile

import (
	"fmt"
	"io"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// WritePerfetto writes r to w as a trace in Perfetto's protocol buffers, with
// times in nanoseconds. It fails, and writes nothing, if r has a time that is
// negative or beyond the nanoseconds of 63 bits, a message that was neither
// sent nor received, or a launch that is none. It only reads r.
func WritePerfetto(w io.Writer, r *provenance.Record) error {
	m, err := newModel(r)
	if err != nil {
		return fmt.Errorf("record %s: %w", r.EventID, err)
	}
	_, err = w.Write(appendPerfetto(nil, m))
	return err
}

// WriteChrome writes r to w as a trace in the JSON object format of Chrome's
// trace events, with times in microseconds. It fails for the same records as
// WritePerfetto. It only reads r.
func WriteChrome(w io.Writer, r *provenance.Record) error {
	m, err := newModel(r)
	if err != nil {
		return fmt.Errorf("record %s: %w", r.EventID, err)
	}
	return writeChrome(w, m)
}
