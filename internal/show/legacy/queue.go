package legacy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// add adds a packet to the end, in memory if there is room.
func (l *lane) add(n int, packet []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	it := item{n: n, size: int64(len(packet)), data: packet}
	if l.left || l.memory+it.size > l.limit {
		if err := l.keep(&it); err != nil {
			l.log.Error("a packet that waits cannot be put into a file and stays in memory", "packet", n, "to", l.target, "error", err)
		}
	}
	if it.data != nil {
		l.memory += it.size
	}
	l.bytes += it.size
	l.queue = append(l.queue, it)
	signal(l.wake)
}

// keep moves a packet from memory to a file. If that fails it stays.
func (l *lane) keep(it *item) error {
	err := writeFile(l.spill, l.place.file(it.n), it.data)
	if errors.Is(err, fs.ErrNotExist) && os.Mkdir(l.spill, 0o755) == nil { // someone tidied up
		err = writeFile(l.spill, l.place.file(it.n), it.data)
	}
	if err != nil {
		return err
	}
	it.data, it.kept = nil, true
	return nil
}

// taken takes the first packet away, which was delivered or lost.
func (l *lane) taken(it item, status int, lost bool) {
	if it.kept && !lost {
		if err := removeFile(l.spill, l.place.file(it.n)); err != nil {
			l.log.Warn("a packet that was delivered stays among those that wait", "packet", it.n, "error", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue[0] = item{}
	l.queue = l.queue[1:]
	l.bytes -= it.size
	if !it.kept {
		l.memory -= it.size
	}
	if lost {
		l.p.Lost++
		l.log.Error("a packet that waited is gone", "packet", it.n, "file", l.place.file(it.n), "to", l.target)
		return
	}
	if l.failing {
		l.log.Info("packets go on", "from", it.n, "to", l.target)
	}
	l.failing = false
	l.p.Sent++
	l.p.Status, l.p.Error, l.p.Refused = status, "", false
	l.p.LastSent = time.Now()
}

// leave puts what waits into files, and says how much that is.
func (l *lane) leave() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
	if len(l.queue) == 0 {
		return nil
	}
	lost, why := 0, error(nil)
	for i := range l.queue {
		if it := &l.queue[i]; !it.kept {
			if err := l.keep(it); err != nil {
				lost, why = lost+1, err
			}
		}
	}
	if lost > 0 {
		return fmt.Errorf("%d packets were not delivered to %s, and %d of them are lost: %w", len(l.queue), l.target, lost, why)
	}
	return fmt.Errorf("%d packets were not delivered to %s; they wait in %s, from where the next run sends them: %s",
		len(l.queue), l.target, l.spill, reason(l.p.Error))
}

func reason(err string) string {
	if err == "" {
		return "there was no time"
	}
	return err
}

func (l *lane) progress() Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.p
	p.Pending, p.PendingBytes = len(l.queue), l.bytes
	return p
}
