package stats

// ThreadCounts counts up to ManyCalls on each of up to 64 threads. Each element has one bit of the counts of all threads.
type ThreadCounts [countBits]uint64

const countBits = 4

// ManyCalls is the greatest count of ThreadCounts.
const ManyCalls = 1 << (countBits - 1)

// ThreadBit returns the bit of a thread, or 0 if there are too many threads.
func ThreadBit(thread uint32) uint64 {
	if thread >= 64 {
		return 0
	}
	return 1 << thread
}

// Many reports whether the count of a thread is ManyCalls.
func (n *ThreadCounts) Many(bit uint64) bool { return n[countBits-1]&bit != 0 }

// None reports whether the count of a thread is 0.
func (n *ThreadCounts) None(bit uint64) bool { return (n[0]|n[1]|n[2]|n[3])&bit == 0 }

// Add increments the count of a thread, which must be less than ManyCalls.
func (n *ThreadCounts) Add(bit uint64) {
	for i := range n {
		n[i], bit = n[i]^bit, n[i]&bit
	}
}
