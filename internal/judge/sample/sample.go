// Package sample chooses which of many calls to keep. A smaller sample of the same calls is part of a larger one. The package is
// pure.
package sample

import "math/bits"

// Has reports whether a call, identified by a number, is in the sample that has a share of all calls.
func Has(share float64, number uint64) bool {
	number += 0x9e3779b97f4a7c15 // splitmix64
	number = (number ^ number>>30) * 0xbf58476d1ce4e5b9
	number = (number ^ number>>27) * 0x94d049bb133111eb
	return share >= 1 || float64((number^number>>31)>>11) < share*(1<<53)
}

// Few is the number of calls that are alike of which Alike keeps all.
const Few = 250

// Alike chooses calls of a rank as they are flagged. Calls are alike if they are of the same kind and the times that they lost lie
// between the same powers of two. Of calls that are alike it keeps the first Few, those that lost more than all before, and a
// sample that becomes smaller with each call: about Few for each factor of e in their number. The zero value is ready to use.
type Alike struct {
	groups map[group]Sum
	left   int64
}

type group struct {
	kind int32
	lost int8 // number of binary digits
}

// Sum counts calls that are alike.
type Sum struct {
	Calls   int64
	Lost    int64 // time that they lost
	longest int64 // time that one of them lost
}

// Keep counts a call of a kind. It returns the sum of the calls so far that are like it, and whether to keep it. number identifies
// the call.
func (a *Alike) Keep(kind int32, lost int64, number uint64) (like Sum, keep bool) {
	if a.groups == nil {
		a.groups = make(map[group]Sum)
	}
	lost = max(lost, 0)
	key := group{kind, int8(bits.Len64(uint64(lost)))}
	s := a.groups[key]
	s.Calls++
	s.Lost += lost
	longest := lost > s.longest
	s.longest = max(s.longest, lost)
	a.groups[key] = s
	if keep = longest || Has(Few/float64(s.Calls), number); !keep {
		a.left++
	}
	return s, keep
}

// Left returns the number of calls that Keep did not keep.
func (a *Alike) Left() int64 { return a.left }
