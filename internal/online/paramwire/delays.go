package paramwire

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// Delays returns the request with the delays of a run, without the sender.
func Delays(run *blame.Run) *protocol.DelaysRequest {
	req := new(protocol.DelaysRequest)
	numbers := make(map[string]uint32)
	number := func(name string) uint32 {
		n, ok := numbers[name]
		if !ok {
			n = uint32(len(req.Names))
			numbers[name] = n
			req.Names = append(req.Names, []byte(name))
		}
		return n
	}
	for i := range run.Anomalies {
		a := &run.Anomalies[i]
		d := &protocol.Delay{
			Program: uint32(a.Program), Rank: uint32(a.Rank), Thread: uint32(a.Thread), Event: a.Event, Function: number(a.Func),
			OnDevice: a.OnDevice, Calls: a.Calls, Entry: int64(a.Entry), Time: int64(a.Exit - a.Entry), Lost: int64(a.Lost),
			Candidate: a.Candidate, Share: a.Share, LeftAt: int64(a.InStep),
		}
		if a.Left != "" {
			d.Left = number(a.Left)
		}
		if m := a.Last; m != nil {
			d.Last = &protocol.Message{Partner: uint32(m.Partner), Sent: m.Sent, Tag: m.Tag, Time: int64(m.Time)}
		}
		req.Delays = append(req.Delays, d)
	}
	for _, s := range run.Sends {
		req.Sends = append(req.Sends, &protocol.Send{
			Program: uint32(s.Program), From: uint32(s.From), To: uint32(s.To), Tag: s.Tag, Time: int64(s.Time), Until: int64(s.Until),
		})
	}
	return req
}

// AddDelays adds the delays of a request to a run.
func AddDelays(run *blame.Run, req *protocol.DelaysRequest) {
	name := func(n uint32) string {
		if int64(n) < int64(len(req.GetNames())) {
			return string(req.GetNames()[n])
		}
		return ""
	}
	for _, d := range req.GetDelays() {
		entry, function := trace.Ticks(d.GetEntry()), name(d.GetFunction())
		a := blame.Anomaly{
			Program: trace.Program(d.GetProgram()), Rank: trace.Rank(d.GetRank()), Thread: trace.Thread(d.GetThread()), Event: d.GetEvent(),
			Func: function, Wait: run.WaitOf(function), OnDevice: d.GetOnDevice(), Calls: d.GetCalls(), Entry: entry,
			Exit: entry + trace.Ticks(d.GetTime()), Lost: trace.Ticks(d.GetLost()), Candidate: d.GetCandidate(), Share: d.GetShare(),
		}
		if d.GetLeftAt() > 0 {
			a.InStep, a.Left = trace.Ticks(d.GetLeftAt()), name(d.GetLeft())
		}
		if m := d.GetLast(); m != nil {
			a.Last = &blame.Message{Partner: trace.Rank(m.GetPartner()), Sent: m.GetSent(), Tag: m.GetTag(), Time: trace.Ticks(m.GetTime())}
		}
		run.Anomalies = append(run.Anomalies, a)
	}
	for _, s := range req.GetSends() {
		run.Sends = append(run.Sends, blame.Send{
			Program: trace.Program(s.GetProgram()), From: trace.Rank(s.GetFrom()), To: trace.Rank(s.GetTo()), Tag: s.GetTag(),
			Time: trace.Ticks(s.GetTime()), Until: trace.Ticks(s.GetUntil()),
		})
	}
}
