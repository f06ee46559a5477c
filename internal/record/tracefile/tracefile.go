// Package tracefile writes a record as a trace for timeline viewers: in Perfetto's format
// and in the JSON of Chrome's trace viewer. Both show the same: the thread of the execution
// and its calls, the thread that launched a kernel, messages with arrows, counters and the
// state of the node. The output depends on the record only.
//
// The trace shows only data of the record, with three exceptions, which the slices mention:
//
//   - A call that had not ended when the record was taken stays open, unless a later call
//     shows that it has ended: then it ends where that call begins. Chrome's format requires
//     an end: the last time of the record.
//   - A call whose exit does not fit the surrounding calls is cut, so that all calls nest.
//   - The other end of a message has no time. It appears at the time of the known end, on
//     a separate process, and lasts a microsecond, the resolution of times.
//
// Processes and threads have the numbers of their tracks, because viewers treat process 0 as
// idle; names have the rank and the thread.
package tracefile

import (
	"fmt"
	"io"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// WritePerfetto writes r to w as a trace in Perfetto's protocol buffers, with times in
// nanoseconds. It fails without writing if r has a time that is negative or does not fit
// into 63 bits as nanoseconds, a message that was neither sent nor received, or an invalid
// launch. It does not change r.
func WritePerfetto(w io.Writer, r *provenance.Record) error {
	m, err := newModel(r)
	if err != nil {
		return fmt.Errorf("record %s: %w", r.EventID, err)
	}
	_, err = w.Write(appendPerfetto(nil, m))
	return err
}

// WriteChrome writes r to w as a trace in the JSON object format of Chrome's trace events,
// with times in microseconds. It fails for the same records as WritePerfetto. It does not
// change r.
func WriteChrome(w io.Writer, r *provenance.Record) error {
	m, err := newModel(r)
	if err != nil {
		return fmt.Errorf("record %s: %w", r.EventID, err)
	}
	return writeChrome(w, m)
}
