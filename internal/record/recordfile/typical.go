package recordfile

import (
	"encoding/json"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// lostTime is how much longer than is typical an execution took that the model in
// params judged. It is 0 where the model does not tell.
func lostTime(time trace.Micros, params json.RawMessage) (lost trace.Micros, ok bool) {
	m := provenance.ReadModel(params)
	usual, _, ok := m.Typical()
	if !ok {
		return 0, false
	}
	const most = 1 << 62 // what is more cannot be a time
	return max(0, time-trace.Micros(min(max(usual, 0), most))), true
}
