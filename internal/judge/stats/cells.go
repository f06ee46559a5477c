package stats

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Most bins follow each other, so the count of a bin is usually encoded as one number:
// twice the count if the previous bin is adjacent, otherwise twice the distance plus
// one, followed by the count. Empty bins are not encoded.

// appendCount appends the count of a bin that is gap bins after the previous one, or
// after -1 for the first.
func appendCount(b []byte, gap int, n uint64) []byte {
	if gap == 1 {
		return binary.AppendUvarint(b, n<<1)
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(gap)<<1|1), n)
}

// countSize estimates the number of bytes that appendCount appends; the estimate is too
// low only for bins that are far apart. The size of a sum does not exceed the total size
// of its parts.
func countSize(n uint64) int { return 1 + (bits.Len64(n<<1|1)+6)/7 }

// reader reads numbers. After a number that is too large or missing it returns 0.
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

// count reads a count that appendCount wrote. It must be at least 1 and at most most.
func (r *reader) count(most uint64) (gap uint64, n uint64) {
	first := r.uint(math.MaxUint64)
	gap, n = 1, first>>1
	if first&1 == 1 {
		gap, n = first>>1, r.uint(most)
		r.bad = r.bad || gap < 2 // not the shortest encoding
	}
	if n == 0 || n > most {
		r.bad = true
	}
	return gap, n
}
