package stats

import (
	"encoding/binary"
	"encoding/json"
	"math/big"
	"math/bits"
)

// Sums contains the count, the extremes and the sums of the first four powers of a sample of integers, all exact. Merging is
// therefore exact, too, and gives the same bits in any order and grouping. The zero value is the empty sample and the identity of
// Merge.
type Sums struct {
	n        uint64
	min, max uint64
	// Numbers of several words, the lowest first, large enough for 2^64 values of 64 bits.
	p1 [2]uint64
	p2 [3]uint64
	p3 [4]uint64
	p4 [5]uint64
}

// Add adds one value.
func (s *Sums) Add(v uint64) {
	if s.n == 0 {
		s.min, s.max = v, v
	}
	s.n++
	s.min, s.max = min(s.min, v), max(s.max, v)
	var c uint64
	s.p1[0], c = bits.Add64(s.p1[0], v, 0)
	s.p1[1] += c
	if v>>32 != 0 {
		s.addPowers(v)
		return
	}
	square := v * v
	hi, lo := bits.Mul64(square, v)
	s.p2[0], c = bits.Add64(s.p2[0], square, 0)
	carry(s.p2[1:], c)
	s.p3[0], c = bits.Add64(s.p3[0], lo, 0)
	s.p3[1], c = bits.Add64(s.p3[1], hi, c)
	carry(s.p3[2:], c)
	hi, lo = bits.Mul64(square, square)
	s.p4[0], c = bits.Add64(s.p4[0], lo, 0)
	s.p4[1], c = bits.Add64(s.p4[1], hi, c)
	carry(s.p4[2:], c)
}

// AddShort adds a value below 256 n times.
func (s *Sums) AddShort(v, n uint32) {
	if n == 0 {
		return
	}
	value, count := uint64(v), uint64(n)
	square := value * value
	s.Merge(&Sums{
		n: count, min: value, max: value, p1: [2]uint64{count * value}, p2: [3]uint64{count * square},
		p3: [4]uint64{count * square * value}, p4: [5]uint64{count * square * square}, // below 2^64
	})
}

// carry adds c, which is 0 or 1, to a number.
func carry(words []uint64, c uint64) {
	for i := 0; c != 0 && i < len(words); i++ {
		words[i], c = bits.Add64(words[i], 0, c)
	}
}

// addPowers adds the second to fourth power of a large value.
func (s *Sums) addPowers(v uint64) {
	var square, cube, fourth [4]uint64
	square[1], square[0] = bits.Mul64(v, v)
	times(&cube, &square, v)
	times(&fourth, &cube, v)
	add(s.p2[:], square[:2])
	add(s.p3[:], cube[:3])
	add(s.p4[:], fourth[:])
}

// times sets to to x*v, which must not overflow.
func times(to, x *[4]uint64, v uint64) {
	var over uint64
	for i, w := range x {
		hi, lo := bits.Mul64(w, v)
		var c uint64
		to[i], c = bits.Add64(lo, over, 0)
		over = hi + c
	}
}

// add adds x to a number that has at least the same number of words.
func add(to, x []uint64) {
	var c uint64
	for i, w := range x {
		to[i], c = bits.Add64(to[i], w, c)
	}
	carry(to[len(x):], c)
}

// Merge adds all values of o.
func (s *Sums) Merge(o *Sums) {
	if o.n == 0 {
		return
	}
	if s.n == 0 {
		*s = *o
		return
	}
	s.n += o.n
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	add(s.p1[:], o.p1[:])
	add(s.p2[:], o.p2[:])
	add(s.p3[:], o.p3[:])
	add(s.p4[:], o.p4[:])
}

// Count returns the number of values.
func (s *Sums) Count() uint64 { return s.n }

// RunStats returns the moments, each rounded once. Equal Sums give the same bits.
func (s *Sums) RunStats() RunStats {
	if s.n == 0 {
		return RunStats{}
	}
	r := RunStats{N: float64(s.n), Min: float64(s.min), Max: float64(s.max)}
	if s.min == s.max { // frequent: a step without anomalies, or a single one
		r.Mean = r.Min
		return r
	}
	n := new(big.Int).SetUint64(s.n)
	p1, p2, p3, p4 := bigInt(s.p1[:]), bigInt(s.p2[:]), bigInt(s.p3[:]), bigInt(s.p4[:])
	product := func(factor int64, all ...*big.Int) *big.Int {
		x := big.NewInt(factor)
		for _, y := range all {
			x.Mul(x, y)
		}
		return x
	}
	sum := func(all ...*big.Int) *big.Int {
		x := new(big.Int)
		for _, y := range all {
			x.Add(x, y)
		}
		return x
	}
	r.Mean = quotient(p1, n)
	r.M2 = max(0, quotient(sum(product(1, n, p2), product(-1, p1, p1)), n))
	r.M3 = quotient(sum(product(1, n, n, p3), product(-3, n, p1, p2), product(2, p1, p1, p1)), product(1, n, n))
	r.M4 = max(0, quotient(sum(product(1, n, n, n, p4), product(-4, n, n, p1, p3), product(6, n, p1, p1, p2), product(-3, p1, p1, p1, p1)),
		product(1, n, n, n)))
	return r
}

// bigInt converts words to a number.
func bigInt(words []uint64) *big.Int {
	b := make([]byte, 8*len(words))
	for i, w := range words {
		binary.BigEndian.PutUint64(b[8*(len(words)-1-i):], w)
	}
	return new(big.Int).SetBytes(b)
}

// quotientBits is far more than the precision of a float64, so that rounding twice has no effect.
const quotientBits = 192

func quotient(x, y *big.Int) float64 {
	q := new(big.Float).SetPrec(quotientBits).SetInt(x)
	v, _ := q.Quo(q, new(big.Float).SetPrec(quotientBits).SetInt(y)).Float64()
	return v
}

// Summary returns the representation of the provenance schema.
func (s *Sums) Summary() Summary {
	r := s.RunStats()
	sum := r.Summary()
	sum.Accumulate = float64(s.p1[0])
	if s.p1[1] != 0 {
		sum.Accumulate, _ = new(big.Float).SetInt(bigInt(s.p1[:])).Float64()
	}
	return sum
}

// MarshalJSON returns the Summary as JSON.
func (s Sums) MarshalJSON() ([]byte, error) { return json.Marshal(s.Summary()) }

// AppendBinary appends a compact encoding of the sums to b.
func (s *Sums) AppendBinary(b []byte) []byte {
	b = binary.AppendUvarint(b, s.n)
	if s.n == 0 {
		return b
	}
	b = binary.AppendUvarint(b, s.min)
	b = binary.AppendUvarint(b, s.max-s.min)
	for _, words := range [...][]uint64{s.p1[:], s.p2[:], s.p3[:], s.p4[:]} {
		b = appendWords(b, words)
	}
	return b
}

// appendWords appends the length of a number in bytes, and its bytes, the lowest first.
func appendWords(b []byte, words []uint64) []byte {
	at := len(b)
	b = append(b, 0)
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	for len(b) > at+1 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	b[at] = byte(len(b) - at - 1)
	return b
}

// readWords reads a number that appendWords wrote.
func readWords(words []uint64, b []byte) (rest []byte, err error) {
	if len(b) == 0 || int(b[0]) > 8*len(words) || len(b) <= int(b[0]) {
		return nil, ErrEncoding
	}
	n := int(b[0])
	if n > 0 && b[n] == 0 { // otherwise there is a shorter encoding
		return nil, ErrEncoding
	}
	rest = b[n+1:]
	b = b[1 : n+1]
	for len(b) >= 8 {
		words[0], words, b = binary.LittleEndian.Uint64(b), words[1:], b[8:]
	}
	for i, c := range b {
		words[0] |= uint64(c) << (8 * i)
	}
	return rest, nil
}

// Decode replaces the sums by those encoded at the start of b, and returns the rest of b. After an error the sums are empty.
func (s *Sums) Decode(b []byte) (rest []byte, err error) {
	*s = Sums{}
	n, used := binary.Uvarint(b)
	if used <= 0 {
		return nil, ErrEncoding
	}
	b = b[used:]
	if n == 0 {
		return b, nil
	}
	low, used := binary.Uvarint(b)
	width, more := binary.Uvarint(b[max(used, 0):])
	if used <= 0 || more <= 0 || low+width < low {
		return nil, ErrEncoding
	}
	b = b[used+more:]
	s.n, s.min, s.max = n, low, low+width
	for _, words := range [...][]uint64{s.p1[:], s.p2[:], s.p3[:], s.p4[:]} {
		if b, err = readWords(words, b); err != nil {
			break
		}
	}
	if err != nil || !s.plausible() {
		*s = Sums{}
		return nil, ErrEncoding
	}
	return b, nil
}

// plausible reports whether the mean can lie between the extremes.
func (s *Sums) plausible() bool {
	within := func(v uint64, sign int) bool {
		hi, lo := bits.Mul64(s.n, v)
		_, under := bits.Sub64(s.p1[0], lo, 0)
		diff, under := bits.Sub64(s.p1[1], hi, under)
		equal := s.p1[0] == lo && diff == 0
		return equal || (under == 0) == (sign > 0)
	}
	return within(s.min, 1) && within(s.max, -1)
}
