// Package throttle limits log lines that clients can cause at will: the first is due at once, then
// one per interval with the number of suppressed ones. It reads no clock and writes nothing.
package throttle

import (
	"maps"
	"sync"
	"time"
)

// maxKeys is the number of different keys; all others count as Others.
const maxKeys = 1024

// Others is the key of lines beyond the maximum number of keys.
const Others = "others"

// Lines limits log lines by key. It is safe for concurrent use.
type Lines struct {
	every time.Duration

	mu        sync.Mutex
	lines     map[string]*line
	lastSweep time.Time // when idle keys were dropped
}

type line struct {
	at         time.Time // when it was last due
	suppressed int       // since then
}

// New returns Lines that are each due once per interval.
func New(every time.Duration) *Lines { return &Lines{every: every, lines: make(map[string]*line)} }

// Allow reports whether a line is due, and how many were suppressed since it was last due.
func (l *Lines) Allow(key string, now time.Time) (due bool, suppressed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := l.lines[key]
	if entry == nil && len(l.lines) >= maxKeys && !l.sweep(now) {
		key = Others
		entry = l.lines[key]
	}
	if entry == nil {
		l.lines[key] = &line{at: now}
		return true, 0
	}
	if now.Sub(entry.at) < l.every {
		entry.suppressed++
		return false, 0
	}
	suppressed, entry.suppressed, entry.at = entry.suppressed, 0, now
	return true, suppressed
}

// Due returns the numbers of suppressed lines that are due again, and resets them.
func (l *Lines) Due(now time.Time) map[string]int { return l.suppressedBefore(now, now.Add(-l.every)) }

// Drain returns the numbers of all suppressed lines, and resets them.
func (l *Lines) Drain(now time.Time) map[string]int { return l.suppressedBefore(now, now) }

func (l *Lines) suppressedBefore(now, before time.Time) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make(map[string]int)
	for key, entry := range l.lines {
		if entry.suppressed > 0 && !entry.at.After(before) {
			counts[key] = entry.suppressed
			entry.suppressed, entry.at = 0, now
		}
	}
	return counts
}

// sweep drops idle keys, at most once per interval, and reports whether there is room.
func (l *Lines) sweep(now time.Time) bool {
	if now.Sub(l.lastSweep) < l.every {
		return false
	}
	l.lastSweep = now
	maps.DeleteFunc(l.lines, func(_ string, entry *line) bool { return entry.suppressed == 0 && now.Sub(entry.at) >= l.every })
	return len(l.lines) < maxKeys
}
