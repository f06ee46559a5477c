// Package throttle decides how often something may be said that someone else can
// cause at will: the first time at once, and then how often it happened, now and
// then. It reads no clock and writes nothing; callers pass the time and log.
package throttle

import (
	"sync"
	"time"
)

// most is how many keys are known at a time; all others are one.
const most = 1024

// Others is the key of what came under too many different ones.
const Others = "others"

// Lines are the lines of a log, by keys that say what is the same. All methods may
// be called by several goroutines.
type Lines struct {
	every time.Duration

	mu    sync.Mutex
	said  map[string]*line
	swept time.Time // when what did not happen again was forgotten
}

type line struct {
	at   time.Time // when it was said
	left int       // how often it was not, since then
}

// New returns lines of which each is said once in a while.
func New(every time.Duration) *Lines { return &Lines{every: every, said: make(map[string]*line)} }

// Say reports whether a line is to be said now, and how often it was left out since
// it was said the last time.
func (l *Lines) Say(key string, now time.Time) (due bool, left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.said[key]
	if known == nil && len(l.said) >= most && !l.forget(now) {
		key = Others
		known = l.said[key]
	}
	if known == nil {
		l.said[key] = &line{at: now}
		return true, 0
	}
	if now.Sub(known.at) < l.every {
		known.left++
		return false, 0
	}
	left, known.left, known.at = known.left, 0, now
	return true, left
}

// Left returns how often lines were left out whose time to be said has come, and
// takes them as said now.
func (l *Lines) Left(now time.Time) map[string]int {
	return l.leftBefore(now, now.Add(-l.every))
}

// Rest is Left when nothing more comes: it does not wait.
func (l *Lines) Rest(now time.Time) map[string]int { return l.leftBefore(now, now) }

func (l *Lines) leftBefore(now, before time.Time) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found map[string]int
	for key, known := range l.said {
		if known.left == 0 || known.at.After(before) {
			continue
		}
		if found == nil {
			found = make(map[string]int)
		}
		found[key] = known.left
		known.left, known.at = 0, now
	}
	return found
}

// forget drops what did not happen again, and reports whether there is room now.
func (l *Lines) forget(now time.Time) bool {
	if now.Sub(l.swept) < l.every {
		return false
	}
	l.swept = now
	for key, known := range l.said {
		if known.left == 0 && now.Sub(known.at) >= l.every {
			delete(l.said, key)
		}
	}
	return len(l.said) < most
}
