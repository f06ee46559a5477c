package paramclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// Promote sends the delays of this analyzer after Finish, and waits until all analyzers have sent
// theirs. It returns the indices of the candidates that explain waits. The error is the cause of
// ctx joined with the last error, or the reason why this analyzer must be restarted.
func (c *Client) Promote(ctx context.Context, run *blame.Run) (promoted []int, err error) {
	full, short := paramwire.Delays(run), &protocol.DelaysRequest{Poll: true}
	req := full
	for pause := time.Duration(0); ; {
		var reply *protocol.DelaysReply
		reply, err = c.sendDelays(ctx, req)
		if fatal, ok := errors.AsType[fatalError](err); ok {
			return nil, fatal.error
		}
		switch {
		case err != nil: // try again
		case reply.GetRefused() != "":
			return nil, fmt.Errorf("%w: %s", ErrRefused, reply.GetRefused())
		case reply.GetUnknown():
			req = full
		case reply.GetComplete():
			return indices(reply, len(run.Anomalies))
		default:
			req = short
		}
		pause = min(max(2*pause, endPeriod), c.cfg.Period)
		if stopped := wait.Sleep(ctx, pause); stopped != nil {
			return nil, errors.Join(stopped, err)
		}
	}
}

func (c *Client) sendDelays(ctx context.Context, req *protocol.DelaysRequest) (*protocol.DelaysReply, error) {
	req.Sender = c.sender()
	b, err := proto.Marshal(req)
	if err != nil {
		return nil, fatalError{err}
	}
	reply := new(protocol.DelaysReply)
	return reply, c.request(ctx, 0, "delays", b, reply)
}

// indices returns the promoted delays of a reply to a request with n delays.
func indices(reply *protocol.DelaysReply, n int) (all []int, err error) {
	for _, i := range reply.GetPromoted() {
		if int64(i) >= int64(n) {
			return nil, fmt.Errorf("delays: malformed reply: delay %d of %d", i, n)
		}
		all = append(all, int(i))
	}
	return all, nil
}
