package storetest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// unusual is an unusual record.
type unusual struct {
	what   string
	record *provenance.Record
}

// unusualRecords returns records that a store must return like any other. name converts all
// names, so that stored and expected records can have different ones.
func unusualRecords(name func(string) string) []unusual {
	var all []unusual
	fresh := Records(200, 99)
	add := func(what string, change func(r *provenance.Record)) {
		r := fresh[0]
		fresh = fresh[1:]
		change(r)
		all = append(all, unusual{what, r})
	}
	addGPUs(add)
	addCalls(add)
	addIDs(add)
	addNumbers(add)
	addModels(add)
	addNames(add, name)
	return all
}

type adder func(what string, change func(r *provenance.Record))

func addGPUs(add adder) {
	location := &provenance.GPULocation{Context: 1, Device: 2, Stream: 3, Thread: 4}
	parent := func(r *provenance.Record) provenance.GPUParent {
		stack := []provenance.StackEntry{
			{Entry: r.Entry - 50, EventID: id(r.RID, r.IOStep, 7), Exit: r.Entry - 20, FID: 3, Func: "cudaLaunchKernel", IsAnomaly: true},
			{Entry: r.Entry - 5_000_000, EventID: id(r.RID, 0, 0), FID: 0, Func: "main"},
		}
		return provenance.GPUParent{CallStack: stack, EventID: stack[0].EventID, TID: 9}
	}
	add("a kernel with its parent", func(r *provenance.Record) {
		r.IsGPUEvent, r.GPULocation, r.GPUParent, r.TID = true, location, parent(r), 4
	})
	add("a kernel without a parent", func(r *provenance.Record) {
		r.IsGPUEvent, r.GPULocation, r.GPUParent = true, location, `Chimbuko error: no "launch" was recorded`
	})
	add("a kernel in an unknown context", func(r *provenance.Record) {
		r.IsGPUEvent = true
		r.GPULocation = &provenance.GPULocation{Context: math.MaxUint64, Device: math.MaxUint64, Stream: math.MaxUint64, Thread: math.MaxUint32}
	})
	add("a kernel whose parent has no stack", func(r *provenance.Record) {
		r.IsGPUEvent, r.GPULocation = true, location
		r.GPUParent = provenance.GPUParent{CallStack: []provenance.StackEntry{}, EventID: id(r.RID, 1, 2)}
	})
	add("a kernel whose parent is not the first of its stack", func(r *provenance.Record) {
		p := parent(r)
		p.EventID = p.CallStack[1].EventID
		r.IsGPUEvent, r.GPULocation, r.GPUParent = true, location, p
	})
}

func addCalls(add adder) {
	add("no stack, no window, no counters", func(r *provenance.Record) {
		r.CallStack, r.CounterEvents = []provenance.StackEntry{}, []provenance.CounterEntry{}
		r.EventWindow = provenance.EventWindow{Comms: []provenance.CommEntry{}, Execs: []provenance.WindowEntry{}}
	})
	add("calls that are open", func(r *provenance.Record) {
		for i := range r.CallStack[1:] {
			r.CallStack[1+i].Exit = 0
		}
		r.EventWindow.Execs[20].Exit = 0
	})
	add("calls that take no time, at 0", func(r *provenance.Record) {
		r.Entry, r.Exit = 0, 0
		r.CallStack[0].Entry, r.CallStack[0].Exit = 0, 0
		r.EventWindow.Execs[0].Exit = r.EventWindow.Execs[0].Entry
	})
	add("calls without a parent", func(r *provenance.Record) {
		for i := range r.EventWindow.Execs {
			r.EventWindow.Execs[i].ParentID = "root"
		}
	})
	add("a deep stack and a wide window", func(r *provenance.Record) {
		for i := range uint32(500) {
			r.CallStack = append(r.CallStack, provenance.StackEntry{
				Entry: r.Entry - 1 - trace.Ticks(i), EventID: id(r.RID, 0, i), FID: int(i),
				Func: fmt.Sprint("f", i),
			})
			e := r.EventWindow.Execs[i%21]
			e.EventID = id(r.RID, 7, i)
			r.EventWindow.Execs = append(r.EventWindow.Execs, e)
		}
	})
	add("messages of other threads, ranks and programs", func(r *provenance.Record) {
		c := r.EventWindow.Comms
		c[0].TID++
		c[1].RID++
		c[2].PID++
		c[3].Type = "BARRIER"
	})
	add("messages between other ranks", func(r *provenance.Record) {
		r.EventWindow.Comms[0].Source += 5
		r.EventWindow.Comms[1].Target += 5
	})
	add("messages from and to no rank", func(r *provenance.Record) {
		r.EventWindow.Comms[0].Target, r.EventWindow.Comms[1].Source = -2, -1
	})
	add("counters of other threads", func(r *provenance.Record) { r.CounterEvents[0].TID += 3 })
	add("counters of other ranks", func(r *provenance.Record) { r.CounterEvents[0].RID += 3 })
	add("counters of other programs", func(r *provenance.Record) { r.CounterEvents[0].PID += 3 })
}

func addIDs(add adder) {
	for _, text := range []string{
		"an event", "3:4", "3:4:5:6", "3:4:5:", ":3:4", "03:4:5", "3:04:5", "3:4:05", "-0:4:5", "+3:4:5", "3:-4:5", "3:4:-5",
		"3:4:4294967296", "3:2147483648:5", "3:99999999999999999999:5", " 3:4:5", "٣:4:5", "it's \"3\":4\\5",
	} {
		add("the event id "+text, func(r *provenance.Record) {
			r.RID = 3
			r.EventID, r.CallStack[0].EventID, r.EventWindow.Execs[10].EventID = text, text, text
			if text[0] == '-' {
				r.RID = 0
			}
		})
	}
	add("the event id of another rank", func(r *provenance.Record) { r.EventID = id(r.RID+1, 5, 6) })
	add("an unusual id in the stack", func(r *provenance.Record) { r.CallStack[2].EventID = "a frame" })
	add("an unusual id in the window", func(r *provenance.Record) { r.EventWindow.Execs[2].EventID = "a call" })
	add("an unusual parent in the window", func(r *provenance.Record) { r.EventWindow.Execs[3].ParentID = "a parent" })
	add("an unusual id of a message", func(r *provenance.Record) { r.EventWindow.Comms[0].Exec = "" })
	add("the largest ids", func(r *provenance.Record) { r.EventID = id(r.RID, math.MaxInt32, math.MaxUint32) })
	add("a rank below zero", func(r *provenance.Record) { r.RID, r.EventID = -1, id(-1, 2, 3) })
}

func addNumbers(add adder) {
	add("a message of unknown size", func(r *provenance.Record) { r.EventWindow.Comms[1].Bytes = nil })
	add("the largest counters and messages", func(r *provenance.Record) {
		r.CounterEvents[0].Value, r.CounterEvents[0].Index = math.MaxUint64, math.MaxUint32
		r.EventWindow.Comms[0].Bytes, r.EventWindow.Comms[0].Tag = new(uint64(math.MaxUint64)), math.MinInt32
		r.NodeState = &provenance.NodeState{Timestamp: -1, Data: []provenance.StateEntry{
			{Field: "a", Value: math.MaxUint64},
			{Field: "a", Value: 1 << 63},
		}}
		r.TID = math.MaxUint32
		r.CounterEvents[0].TID = r.TID
		for i := range r.EventWindow.Comms {
			r.EventWindow.Comms[i].TID = r.TID
		}
	})
	add("times that a float64 cannot hold", func(r *provenance.Record) {
		r.Entry, r.Exit, r.RuntimeTotal, r.IOStepEnd = 1<<53+1, 1<<62+1, 1<<62-1<<53, math.MaxInt64
	})
	add("times before the epoch", func(r *provenance.Record) { r.Entry, r.LostTime = -123_456_789, -5 })
	add("scores of all sizes", func(r *provenance.Record) { r.OutlierScore, r.OutlierSeverity = 5e-324, math.MaxFloat64 })
	add("a score with many digits", func(r *provenance.Record) { r.OutlierScore, r.OutlierSeverity = 0.1+0.2, -1.0/3 })
	add("no state of the node", func(r *provenance.Record) { r.NodeState = nil })
	add("an empty state of the node", func(r *provenance.Record) {
		r.NodeState = &provenance.NodeState{Data: []provenance.StateEntry{}, Timestamp: 5}
	})
	add("neither status nor lost time", func(r *provenance.Record) { r.Status, r.LostTime = "", 0 })
	add("neither kind nor why", func(r *provenance.Record) { r.Kind, r.Why = "", "" })
	add("unknown kind", func(r *provenance.Record) { r.Kind = `"new"` })
	add("unknown status", func(r *provenance.Record) { r.Status = `"new"` })
	add("an older version", func(r *provenance.Record) { r.Version = 1 })
	add("another program", func(r *provenance.Record) {
		r.PID = 7
		r.CounterEvents[0].PID = 7
		for i := range r.EventWindow.Comms {
			r.EventWindow.Comms[i].PID = 7
		}
	})
	add("a function with the number of another", func(r *provenance.Record) { r.Func, r.CallStack[0].Func = "another", "another" })
	add("a function with the name of another", func(r *provenance.Record) { r.FID, r.CallStack[0].FID = 1_000_000, 1_000_000 })
}

func addModels(add adder) {
	for _, text := range []string{
		"null", `"text"`, "[]", "{}", "0", "-1.5e-7", "true", `[[[[[[[[]]]]]]]]`, `{"": {"a b": [null, false]}}`,
		"{ \"spaces\" :\t[ 1 ,\n2 ] }", `{"large": 123456789012345678901234567890, "unsigned": 18446744073709551615, "small": 1e-300}`,
		`{"escaped": "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00<>&'", "plain": "é😀"}`, `{"beyond": 1e400}`,
	} {
		add("the model "+text, func(r *provenance.Record) { r.AlgoParams = json.RawMessage(text) })
	}
	add("no model", func(r *provenance.Record) { r.AlgoParams = nil })
	add("a model in a record that columns cannot hold", func(r *provenance.Record) {
		r.EventID, r.AlgoParams = "modeled", json.RawMessage(`{"unsigned": 18446744073709551615, "text": "it's"}`)
	})
}

func addNames(add adder, name func(string) string) {
	for i, text := range []string{
		`it's`, `a "quoted" name`, `back\slash \n \u0041 \x00`, "😀 µs 名前", "tab\tnew\nline", "$1 %s ' OR 1=1; --", "",
		"not \xff\xfe UTF-8", "zero\x00byte", "cut \xe2\x82", strings.Repeat("long name ", 1024),
	} {
		text = name(text)
		add(fmt.Sprintf("the name %.30q", text), func(r *provenance.Record) {
			r.Func, r.Hostname, r.CounterEvents[0].Name = text, text, text
			r.CallStack[0].Func, r.CallStack[1].Func, r.EventWindow.Execs[4].Func = text, text, text
			r.NodeState = &provenance.NodeState{Data: []provenance.StateEntry{{Field: text, Value: 1}}}
			r.Status, r.Kind, r.Why = provenance.Status(text), provenance.AnomalyKind(text), text
			if i%2 == 0 {
				r.GPUParent = text
			}
		})
	}
	add("a name in an id", func(r *provenance.Record) { r.EventID = name("zero\x00 \xff") })
	add("a name in a parent's stack", func(r *provenance.Record) {
		r.GPUParent = provenance.GPUParent{EventID: name("\xff"), CallStack: []provenance.StackEntry{{Func: name("\xfe"), EventID: name("\xff")}}}
	})
}
