package otf2

import (
	"math/bits"
	"sync"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Memory that readers of other ranks have used before costs neither clearing nor page faults.
var (
	chunkMemory memory[byte]
	eventMemory memory[trace.Event]
)

// memory keeps slices for reuse, by the power of two of their size. Garbage collection frees unused slices.
type memory[T any] struct{ slices [bits.UintSize]sync.Pool }

// get returns an empty slice with room for n elements and for spare more. Its memory has any content.
func (m *memory[T]) get(n int) []T {
	class := bits.Len(uint(max(n, 1) - 1))
	if s, ok := m.slices[class].Get().(*[]T); ok {
		return (*s)[:0]
	}
	return make([]T, 0, 1<<class+spare)
}

// put takes back a slice of get, which must not be used any more. Others are left to garbage collection.
func (m *memory[T]) put(s []T) {
	if n := cap(s) - spare; n > 0 && n&(n-1) == 0 {
		m.slices[bits.Len(uint(n))-1].Put(&s)
	}
}
