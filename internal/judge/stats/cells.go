package stats

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Counts of bins are encoded as one number each, as most bins follow each other:
// twice the count for the bin after the one before; for a bin that is further away
// twice the distance and one, then the count. Empty bins are not written.

// appendCount appends the count of a bin that is gap bins after the one before, or
// after -1 for the first.
func appendCount(b []byte, gap int, n uint64) []byte {
	if gap == 1 {
		return binary.AppendUvarint(b, n<<1)
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(gap)<<1|1), n)
}

// countSize is about as many bytes as appendCount appends, and fewer only where bins
// are far apart. That of a sum is not more than that of its parts together.
func countSize(n uint64) int { return 1 + (bits.Len64(n<<1|1)+6)/7 }

// reader reads numbers; after one that is too large or missing all are 0.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if r.bad || n <= 0 || v > most {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads what appendCount wrote. The count is at least 1 and at most most.
func (r *reader) count(most uint64) (gap uint64, n uint64) {
	first := r.uint(math.MaxUint64)
	gap, n = 1, first>>1
	if first&1 == 1 {
		gap, n = first>>1, r.uint(most)
		r.bad = r.bad || gap < 2 // there is a shorter way to write it
	}
	if n == 0 || n > most {
		r.bad = true
	}
	return gap, n
}
