package pgstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// executionColumns are those of encoder.row.
var executionColumns = []string{
	"run", "pid", "rid", "fn", "path", "io_step", "ev_step", "anomalous", "is_gpu_event",
	"lost_time", "outlier_severity", "outlier_score", "entry", "exit", "runtime_exclusive", "status", "hostname", "runtime_total",
	"io_step_tstart", "io_step_tend", "ev_row", "tid", "version", "model", "sample", "ev_text", "detail", "doc", "kind",
}

// encoder turns records into rows of the table executions. It uses its memory
// again for each row.
type encoder struct {
	run    provdb.RunID
	values []any
	detail []byte
	doc    bytes.Buffer
}

// row returns the row of a record, valid until the next call.
func (e *encoder) row(r *provenance.Record, anomalous bool, n refs) ([]any, error) {
	step, row, evText := int32(-1), int64(-1), ""
	if s, w, ok := catalog.ParseID(r.EventID, r.RID); ok {
		step, row = s, int64(w)
	} else {
		evText = storedID(r)
	}
	var err error
	if e.detail, err = appendDetail(e.detail[:0], r); err != nil {
		return nil, err
	}
	var doc any
	if r.PID > math.MaxInt32 || int(int32(r.Version)) != r.Version || evText != "" && evText != r.EventID {
		e.doc.Reset()
		if err := r.WriteJSON(&e.doc); err != nil {
			return nil, err
		}
		doc = e.doc.Bytes()
	}
	e.values = append(e.values[:0],
		int32(e.run), int32(r.PID), int32(r.RID), n.fn, n.path, r.IOStep, step, anomalous, r.IsGPUEvent,
		int64(r.LostTime), r.OutlierSeverity, r.OutlierScore, int64(r.Entry), int64(r.Exit), int64(r.RuntimeExclusive),
		emptyNull(string(r.Status)), r.Hostname, int64(r.RuntimeTotal),
		int64(r.IOStepStart), int64(r.IOStepEnd), row, int64(r.TID), int32(r.Version), zeroNull(n.model), zeroNull(n.sample),
		evText, e.detail, doc, emptyNull(string(r.Kind)))
	return e.values, nil
}

// longestID is about what an index can hold.
const longestID = 1000

// storedID is the event id of a record in tables. One that is too long for them
// is cut, and distinguished from others by its hash.
func storedID(r *provenance.Record) string {
	if len(r.EventID) <= longestID {
		return r.EventID
	}
	sum := sha256.Sum256([]byte(r.EventID))
	return provenance.Text(r.EventID[:longestID/2]) + "…" + hex.EncodeToString(sum[:])
}

func zeroNull(n int32) any {
	if n == 0 {
		return nil
	}
	return n
}

func emptyNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// appendDetail appends the parts of a record's document that have no columns.
func appendDetail(b []byte, r *provenance.Record) ([]byte, error) {
	b = append(b, `{"call_stack":`...)
	b = appendStack(b, r.CallStack)
	b = append(b, `,"counter_events":`...)
	b = appendList(b, r.CounterEvents, appendCounter)
	b = append(b, `,"event_window":{"comm_window":`...)
	b = appendList(b, r.EventWindow.Comms, appendComm)
	b = append(b, `,"exec_window":`...)
	b = appendList(b, r.EventWindow.Execs, appendCall)
	b = append(b, `},"gpu_location":`...)
	if g := r.GPULocation; g == nil {
		b = append(b, "null"...)
	} else {
		b = appendUint(b, `{"context":`, g.Context)
		b = appendUint(b, `,"device":`, g.Device)
		b = appendUint(b, `,"stream":`, g.Stream)
		b = append(appendUint(b, `,"thread":`, uint64(g.Thread)), '}')
	}
	b = append(b, `,"gpu_parent":`...)
	switch p := r.GPUParent.(type) {
	case nil:
		b = append(b, "null"...)
	case string:
		b = appendString(b, "", p)
	case provenance.GPUParent:
		b = append(b, `{"call_stack":`...)
		b = appendStack(b, p.CallStack)
		b = appendString(b, `,"event_id":`, p.EventID)
		b = append(appendUint(b, `,"tid":`, uint64(p.TID)), '}')
	default:
		text, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		b = append(b, provdb.CleanJSON(text)...)
	}
	if r.Why != "" {
		b = appendString(b, `,"why":`, r.Why)
	}
	return append(b, '}'), nil
}

func appendList[T any](b []byte, list []T, item func(b []byte, x *T) []byte) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = item(b, &list[i])
	}
	return append(b, ']')
}

func appendStack(b []byte, stack []provenance.StackEntry) []byte {
	return appendList(b, stack, func(b []byte, f *provenance.StackEntry) []byte {
		b = appendInt(b, `{"entry":`, int64(f.Entry))
		b = appendString(b, `,"event_id":`, f.EventID)
		b = appendInt(b, `,"exit":`, int64(f.Exit))
		b = appendInt(b, `,"fid":`, int64(f.FID))
		b = appendString(b, `,"func":`, f.Func)
		return append(strconv.AppendBool(append(b, `,"is_anomaly":`...), f.IsAnomaly), '}')
	})
}

func appendCall(b []byte, f *provenance.WindowEntry) []byte {
	b = appendInt(b, `{"entry":`, int64(f.Entry))
	b = appendString(b, `,"event_id":`, f.EventID)
	b = appendInt(b, `,"exit":`, int64(f.Exit))
	b = appendInt(b, `,"fid":`, int64(f.FID))
	b = appendString(b, `,"func":`, f.Func)
	b = strconv.AppendBool(append(b, `,"is_anomaly":`...), f.IsAnomaly)
	return append(appendString(b, `,"parent_event_id":`, f.ParentID), '}')
}

func appendComm(b []byte, c *provenance.CommEntry) []byte {
	b = appendUint(b, `{"bytes":`, c.Bytes)
	b = appendString(b, `,"execdata_key":`, c.Exec)
	b = appendUint(b, `,"pid":`, uint64(c.PID))
	b = appendInt(b, `,"rid":`, int64(c.RID))
	b = appendInt(b, `,"src":`, int64(c.Source))
	b = appendInt(b, `,"tag":`, int64(c.Tag))
	b = appendInt(b, `,"tar":`, int64(c.Target))
	b = appendUint(b, `,"tid":`, uint64(c.TID))
	b = appendInt(b, `,"timestamp":`, int64(c.Timestamp))
	return append(appendString(b, `,"type":`, c.Type), '}')
}

func appendCounter(b []byte, c *provenance.CounterEntry) []byte {
	b = appendUint(b, `{"counter_idx":`, uint64(c.Index))
	b = appendString(b, `,"counter_name":`, c.Name)
	b = appendUint(b, `,"counter_value":`, c.Value)
	b = appendUint(b, `,"pid":`, uint64(c.PID))
	b = appendInt(b, `,"rid":`, int64(c.RID))
	b = appendUint(b, `,"tid":`, uint64(c.TID))
	return append(appendInt(b, `,"ts":`, int64(c.Timestamp)), '}')
}

func appendState(b []byte, state []provenance.StateEntry) []byte {
	return appendList(b, state, func(b []byte, s *provenance.StateEntry) []byte {
		return append(appendUint(appendString(b, `{"field":`, s.Field), `,"value":`, s.Value), '}')
	})
}

func appendInt(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(b, key...), n, 10)
}

func appendUint(b []byte, key string, n uint64) []byte {
	return strconv.AppendUint(append(b, key...), n, 10)
}

// appendString appends text, which is UTF-8 without zero bytes.
func appendString(b []byte, key, s string) []byte {
	b = append(append(b, key...), '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		if c >= ' ' {
			b = append(b, '\\', c)
		} else {
			const digits = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}
