package bp

import "fmt"

// Extents returns the number of bytes of each file, by name, that the steps returned so far from a
// BP4 or BP5 dataset need. A copy of the files up to there has exactly these steps. It is valid
// until the next call of Next.
func (r *Reader) Extents() map[string]int64 {
	switch e := r.engine.(type) {
	case *bp4:
		return e.extents()
	case *bp5:
		ends := e.extents()
		ends["mmd.0"] = e.used
		return ends
	}
	return nil
}

func (d *dataset) extents() map[string]int64 {
	ends := map[string]int64{"md.idx": d.index.pos, "md.0": d.end}
	for i := range d.step.Variables {
		for j := range d.step.Variables[i].Blocks {
			b := &d.step.Variables[i].Blocks[j]
			name := fmt.Sprintf("data.%d", b.file)
			ends[name] = max(ends[name], b.pos+b.size)
		}
	}
	return ends
}
