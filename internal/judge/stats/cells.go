package stats

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// binOf returns the bin of v. There is a bin for each number below 2<<sub, and 1<<sub bins of equal width between each power of two
// and the next.
func binOf(v int64, sub int) int {
	if v < 2<<sub {
		return int(max(v, 0))
	}
	e := bits.Len64(uint64(v)) - 1
	return 2<<sub + (e-sub-1)<<sub + int(v>>(e-sub))&(1<<sub-1)
}

// binLow returns the lowest number of a bin.
func binLow(bin, sub int) int64 {
	if bin < 2<<sub {
		return int64(max(bin, 0))
	}
	bin -= 2 << sub
	e := bin>>sub + sub + 1
	if e >= 63 {
		return math.MaxInt64
	}
	return (1<<sub | int64(bin)&(1<<sub-1)) << (e - sub)
}

// Most bins follow each other, so the count of a bin is usually encoded as one number: twice the count if the previous bin is
// adjacent, otherwise twice the distance plus one, followed by the count. Empty bins are not encoded.

// appendCount appends the count of a bin that is gap bins after the previous one, or after -1 for the first.
func appendCount(b []byte, gap int, n uint64) []byte {
	if gap == 1 {
		if n < 0x40 {
			return append(b, byte(n<<1))
		}
		return binary.AppendUvarint(b, n<<1)
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(gap)<<1|1), n)
}

// countSize estimates the number of bytes that appendCount appends. The estimate is too low only for bins that are far apart. The
// size of a sum does not exceed the total size of its parts.
func countSize(n uint64) int { return 1 + (bits.Len64(n<<1|1)+6)/7 }

// appendCounts appends the counts of all nonempty bins. base is the first bin.
func appendCounts(b []byte, base int, counts []uint64) []byte {
	used := 0
	for _, n := range counts {
		if n > 0 {
			used++
		}
	}
	b = binary.AppendUvarint(b, uint64(used))
	last := -1
	for i, n := range counts {
		if n > 0 {
			b = appendCount(b, base+i-last, n)
			last = base + i
		}
	}
	return b
}

// countsSize estimates the number of bytes that appendCounts appends after the first number.
func countsSize(counts []uint64) (size int) {
	for _, n := range counts {
		if n > 0 {
			size += countSize(n)
		}
	}
	return size
}

// reader reads numbers. After a number that is too large or missing, it returns 0.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint(most uint64) uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 && uint64(r.b[0]) <= most && !r.bad { // the most frequent case
		v := uint64(r.b[0])
		r.b = r.b[1:]
		return v
	}
	v, n := binary.Uvarint(r.b)
	if r.bad || n <= 0 || v > most {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a count that appendCount wrote. The count must be from 1 to most.
func (r *reader) count(most uint64) (gap uint64, n uint64) {
	first := r.uint(math.MaxUint64)
	gap, n = 1, first>>1
	if first&1 == 1 {
		gap, n = first>>1, r.uint(most)
		r.bad = r.bad || gap < 2 // otherwise there is a shorter encoding
	}
	if n == 0 || n > most {
		r.bad = true
	}
	return gap, n
}

// next reads the count of the next bin after bin, which must be less than bins. The count must be at most most.
func (r *reader) next(bin, bins, most uint64) (after, n uint64) {
	gap, n := r.count(most)
	if bin += gap; gap > bins || bin >= bins {
		r.bad = true
	}
	return bin, n
}

// counts reads counts that appendCounts wrote, of bins less than bins, and calls add for each. Their sum must be at most most;
// counts returns the difference.
func (r *reader) counts(bins, most uint64, add func(bin int, n uint64)) (left uint64) {
	bin := ^uint64(0) // before the first
	for used := r.uint(bins); used > 0; used-- {
		var n uint64
		if bin, n = r.next(bin, bins, most); r.bad {
			break
		}
		add(int(bin), n)
		most -= n
	}
	return most
}
