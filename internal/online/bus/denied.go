package bus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// violation is how a server tells what may not be done.
var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]*)"`)

// deny is called when the server refuses a subject: who waits for an answer would wait
// in vain. The server does not tell which message it was, so it is the end of all that
// were sent to the subject.
func (c *Conn) deny(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	found := violation.FindStringSubmatch(err.Error())
	if found == nil {
		c.log.Error("message bus", "reason", err)
		return
	}
	subject := found[2]
	why := fmt.Errorf("%w: %s", ErrDenied, strings.TrimPrefix(strings.TrimPrefix(err.Error(), nats.ErrPermissionViolation.Error()), ": "))
	if due, left := c.lines.Say(subject, time.Now()); due {
		c.log.Error("the message server refuses what this client wants to do", "subject", subject, "reason", err, "left_out", left)
	}
	c.mu.Lock()
	for a := range c.asking {
		if strings.HasPrefix(subject, a.subject) {
			a.cancel(why)
		}
	}
	c.mu.Unlock()
	c.flight.failSubject(subject, why)
}

// asking is somebody who waits for an answer of the server to what was sent to a
// subject, or to one that begins so.
type asking struct {
	subject string
	cancel  context.CancelCauseFunc
}
