package catalog

import (
	"math"
	"slices"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/provenance"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// Knows tells whether all that the batch refers to has a number. It numbers
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
		delete(c.funcs, funcKey{f.Program, f.FID, f.Name})
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
		delete(c.samples, sampleKey{x.Program, string(c.stateBytes(&x.State))})
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

// Latest returns the records of a batch without those that a later one of the
// same program and event id replaces. Anomalies replace typical executions.
func Latest(b *provdb.Batch) (anomalies, typical []*provenance.Record) {
	type key struct {
		program trace.Program
		id      string
	}
	seen := make(map[key]bool, len(b.Anomalies)+len(b.Typical))
	latest := func(records []*provenance.Record) []*provenance.Record {
		kept := make([]*provenance.Record, 0, len(records))
		for _, r := range slices.Backward(records) {
			if k := (key{r.PID, r.EventID}); !seen[k] {
				seen[k] = true
				kept = append(kept, r)
			}
		}
		slices.Reverse(kept)
		return kept
	}
	return latest(b.Anomalies), latest(b.Typical)
}

// ParseID reads an id of a rank's event as trace.EventID writes it. Step and row
// fit into 32 bits.
func ParseID(id string, rank trace.Rank) (step int32, row uint32, ok bool) {
	var part [3]int64
	rest := id
	for i := range part {
		n := 0
		for n < len(rest) && rest[n] != ':' {
			n++
		}
		v, err := strconv.ParseInt(rest[:n], 10, 64)
		if err != nil || strconv.FormatInt(v, 10) != rest[:n] || i > 0 && v < 0 || i < 2 && n == len(rest) {
			return 0, 0, false
		}
		part[i], rest = v, rest[min(n+1, len(rest)):]
	}
	ok = rest == "" && id[len(id)-1] != ':' && part[0] == int64(rank) && part[1] <= math.MaxInt32 && part[2] <= math.MaxUint32
	return int32(part[1]), uint32(part[2]), ok
}
