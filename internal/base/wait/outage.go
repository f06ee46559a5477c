package wait

import "time"

const (
	firstReminder = 10 * time.Second // of an outage
	mostReasons   = 5                // that are logged at once
)

// Outage decides which failed attempts deserve a log line, so that a long outage neither
// floods a log nor goes unnoticed: the first attempt that fails for a new reason, up to five
// reasons, and then one after 10 s, 20 s, 40 s and so on. Its zero value is ready for use.
type Outage struct {
	since   time.Time
	next    time.Duration // of the outage at the next reminder
	reasons map[string]bool
}

// Failed records a failed attempt. It returns how long the outage has lasted, and whether
// to log it. An empty reason is never new: only long outages are logged.
func (o *Outage) Failed(reason string, now time.Time) (lasted time.Duration, log bool) {
	if o.since.IsZero() {
		o.since, o.next, o.reasons = now, firstReminder, make(map[string]bool)
	}
	lasted = now.Sub(o.since)
	if reason != "" && !o.reasons[reason] && len(o.reasons) < mostReasons {
		o.reasons[reason] = true
		log = true
	}
	for lasted >= o.next {
		o.next *= 2
		log = true
	}
	return lasted, log
}

// End ends an outage. It returns how long it lasted, and whether there was one.
func (o *Outage) End(now time.Time) (lasted time.Duration, was bool) {
	if o.since.IsZero() {
		return 0, false
	}
	lasted = now.Sub(o.since)
	*o = Outage{}
	return lasted, true
}
