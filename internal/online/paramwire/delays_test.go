package paramwire_test

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

func TestDelaysArriveUnchanged(t *testing.T) {
	want := &blame.Run{
		Anomalies: []blame.Anomaly{
			{
				Event: "3:1:7", Program: 1, Rank: 3, Thread: 2, Func: "MPI_Recv()", Wait: blame.Ranks, Entry: 1_000, Exit: 5_000, Lost: 3_000,
				InStep: 900, Left: "MPI_Barrier()", Last: &blame.Message{Partner: 2, Tag: -5, Time: 4_990},
			},
			{Event: "0:0:1", Func: "kernel\xff", OnDevice: true, Calls: true, Entry: -10, Exit: 20, Lost: 30, Candidate: true, Share: 0.01},
			{Event: "1:0:1", Rank: 1, Func: "MPI_Barrier()", Wait: blame.Group, Entry: 1, Exit: 2, Last: &blame.Message{Partner: -1, Sent: true}},
		},
		Sends: []blame.Send{{Program: 1, From: 2, To: 3, Tag: -5, Time: 4_000, Until: 6_000}},
	}
	b, err := proto.Marshal(paramwire.Delays(want))
	if err != nil {
		t.Fatal(err)
	}
	req := new(protocol.DelaysRequest)
	if err := proto.Unmarshal(b, req); err != nil {
		t.Fatal(err)
	}
	got := new(blame.Run)
	paramwire.AddDelays(got, req)
	if !reflect.DeepEqual(got.Anomalies, want.Anomalies) || !reflect.DeepEqual(got.Sends, want.Sends) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDelaysWithUnknownFunctions(t *testing.T) {
	var run blame.Run
	paramwire.AddDelays(&run, &protocol.DelaysRequest{Delays: []*protocol.Delay{{Function: 1 << 31, LeftAt: 1, Left: 7}}})
	if a := run.Anomalies[0]; a.Func != "" || a.Left != "" || a.Wait != blame.Nothing {
		t.Errorf("got %+v", a)
	}
}
