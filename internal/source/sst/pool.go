package sst

import "sync"

// pool recycles buffers, so that steps of similar size do not allocate. Several
// goroutines may use it.
type pool struct {
	mu   sync.Mutex
	free [][]byte
	size int64
	max  int64 // bytes to keep
}

// maxFree is the number of buffers to keep.
const maxFree = 16

// get returns an empty buffer with a capacity of at least n bytes but not much more, or nil if the
// pool has none.
func (p *pool) get(n int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for i, b := range p.free {
		if cap(b) >= n && cap(b)/4 <= max(n, 4096) && (best < 0 || cap(b) < cap(p.free[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	b := p.free[best]
	last := len(p.free) - 1
	p.free[best], p.free[last] = p.free[last], nil
	p.free = p.free[:last]
	p.size -= int64(cap(b))
	return b[:0]
}

// put returns a buffer to the pool. It must not be used afterwards.
func (p *pool) put(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cap(b) == 0 || len(p.free) >= maxFree || len(p.free) > 0 && p.size+int64(cap(b)) > p.max {
		return
	}
	p.free = append(p.free, b)
	p.size += int64(cap(b))
}

// drop frees all buffers.
func (p *pool) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.free)
	p.free, p.size = p.free[:0], 0
}
