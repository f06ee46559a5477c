package catalog

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Knows reports whether all that the batch refers to has a number. It numbers
// nothing, and must not be called while there is something Fresh.
func (c *Catalog) Knows(b *provdb.Batch) bool {
	c.Add(b)
	known := c.fresh.Len() == 0
	c.forget()
	return known
}

// forget takes the numbers of all that is fresh back.
func (c *Catalog) forget() {
	fresh := c.Fresh()
	for _, f := range fresh.Functions {
		delete(c.funcs, funcKey{trace.FuncKey{Program: f.Program, Name: f.Name}, f.FID})
		c.recent = [len(c.recent)]recentFunc{}
		c.numFuncs[f.Program]--
	}
	for _, p := range fresh.Paths {
		delete(c.paths, pathKey{p.Program, string(c.pathBytes(p.Funcs))})
		c.numPaths[p.Program]--
	}
	for _, m := range fresh.Models {
		v := version{m.Program, m.Func}
		delete(c.models, modelKey{m.Program, m.Func, hash(m.Params)})
		delete(c.last, v)
		c.versions[v]--
	}
	for _, x := range fresh.Samples {
		for _, half := range c.samples {
			delete(half, c.sampleKey(x.Program, &x.State))
		}
		c.numSamples[x.Program]--
	}
}

// Mark is the highest number of a kind of entries, 0 for none.
type Mark struct {
	Program trace.Program
	Func    int32 // for models: whose
	N       int32
}

// Marks tell how far the numbers of a catalog go: what others added has higher
// ones.
type Marks struct {
	Functions, Paths, Samples []Mark // for each program
	Models                    []Mark // for each function
}

// Marks returns those of the catalog, in no order.
func (c *Catalog) Marks() Marks {
	programs := func(highest map[trace.Program]int32) (marks []Mark) {
		for p, n := range highest {
			marks = append(marks, Mark{Program: p, N: n})
		}
		return marks
	}
	m := Marks{Functions: programs(c.numFuncs), Paths: programs(c.numPaths), Samples: programs(c.numSamples)}
	for p, n := range c.numFuncs {
		for fn := int32(1); fn <= n; fn++ {
			m.Models = append(m.Models, Mark{p, fn, c.versions[version{p, fn}]})
		}
	}
	return m
}

// ParseID reads an id of a rank's event as trace.EventID writes it. Step and row
// fit into 32 bits.
func ParseID(id string, rank trace.Rank) (step int32, row uint32, ok bool) {
	r, rest, ok1 := number(id)
	s, rest, ok2 := number(rest)
	w, rest, ok3 := number(rest)
	ok = ok1 && ok2 && ok3 && rest == "" && id[len(id)-1] != ':' && r == int64(rank) && s >= 0 && s <= math.MaxInt32 && w >= 0 &&
		w <= math.MaxUint32
	return int32(s), uint32(w), ok
}

// number reads a whole number as strconv writes it, and the colon after it.
func number(text string) (n int64, rest string, ok bool) {
	digits := 0
	i := 0
	negative := text != "" && text[0] == '-'
	if negative {
		i++
	}
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9' && digits < 18; i++ {
		if digits == 1 && n == 0 {
			return 0, "", false // begins with a zero
		}
		n = 10*n + int64(text[i]-'0')
		digits++
	}
	if digits == 0 || negative && n == 0 {
		return 0, "", false
	}
	if negative {
		n = -n
	}
	if i < len(text) {
		if text[i] != ':' {
			return 0, "", false
		}
		i++
	}
	return n, text[i:], true
}
