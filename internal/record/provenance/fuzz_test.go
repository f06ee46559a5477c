package provenance_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// FuzzCapture decodes captures from any bytes. They take no more memory than a small multiple
// of the bytes, and decoded captures can be used and round-trip.
func FuzzCapture(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 5 {
		f.Add(encode(f, randomCapture(rng)))
	}
	f.Add(encode(f, full()))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	gpu := source{gpus: map[trace.Thread]trace.GPU{4: {Device: "0"}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c provenance.Capture
		err := c.ReadCapture(data)
		if got := memory(&c); got > mostMemory(data) {
			t.Fatalf("%d bytes became %d in memory, want no more than %d", len(data), got, mostMemory(data))
		}
		if err != nil {
			return
		}
		once := encode(t, &c)
		var again provenance.Capture
		if err := again.ReadCapture(once); err != nil || !bytes.Equal(encode(t, &again), once) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, again, c)
		}
		bad := math.IsNaN(c.Score) || math.IsInf(c.Score, 0)
		var w bytes.Buffer
		if err := provenance.NewRecord(&c, gpu, nil).WriteJSON(&w); (err != nil) != bad {
			t.Fatalf("score %v: %v", c.Score, err)
		}
		if !bad {
			keys(t, w.String())
		}
	})
}

// mostMemory returns the limit of the memory of a capture decoded from data. A partner
// without a stack is the worst case: two bytes become 32, and a list may have grown to twice
// its length.
func mostMemory(data []byte) int { return 32*len(data) + 1024 }

// memory returns the allocated bytes of the lists of a capture.
func memory(c *provenance.Capture) int {
	n := room(c.Stack) + room(c.Counters) + room(c.Window) + room(c.Comms) + room(c.Partners) + room(c.NodeState)
	for i := range c.Partners {
		n += room(c.Partners[i].Stack)
	}
	return n
}

func room[T any](s []T) int {
	var v T
	return cap(s) * int(unsafe.Sizeof(v))
}
