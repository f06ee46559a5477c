package bus

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// Headers of messages. A message without any is complete, so other programs can send and serve
// small messages.
const (
	sizeHeader     = "Bus-Size"     // bytes of the whole request or reply, which begins with this message
	restHeader     = "Bus-Rest"     // subject of requests for the rest
	errorHeader    = "Bus-Error"    // the reply is the text of an error
	encodingHeader = "Bus-Encoding" // of a message of a stream
	zstdEncoding   = "zstd"
)

const (
	maxPayload   = 8 << 20 // of messages to a stream
	largestPart  = 1 << 20 // of requests and replies; larger ones delay other messages
	smallestPart = 4 << 10
	headerRoom   = 2 << 10 // of a message, for headers
	maxID        = 256
)

// payload returns how many bytes of data a message may have on this connection, at
// most a limit.
func (c *Conn) payload(limit int64) (int, error) {
	most := c.nc.MaxPayload() // 0 before the first connection
	if most > 0 && most < smallestPart+headerRoom {
		return 0, fmt.Errorf("the server accepts messages of at most %d bytes: set its max_payload to %d or more", most, smallestPart+headerRoom)
	}
	if most == 0 || most > limit {
		most = limit
	}
	return int(most) - headerRoom, nil
}

// checkSize rejects messages that are too large to send.
func checkSize(size int) error {
	if size <= MaxMessage {
		return nil
	}
	return fmt.Errorf("%w: %d bytes (limit %d MiB)", ErrTooLarge, size, MaxMessage>>20)
}

// checkName rejects subjects and ids that cannot be sent.
func checkName(what, s string) error {
	switch {
	case s == "":
		return errors.New("the " + what + " is empty")
	case len(s) > maxID:
		return fmt.Errorf("the %s has %d bytes (limit %d)", what, len(s), maxID)
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return fmt.Errorf("the %s %q must be ASCII without spaces", what, s)
	}
	return nil
}

func setHeader(m *nats.Msg, key, value string) {
	if m.Header == nil {
		m.Header = make(nats.Header, 2)
	}
	m.Header[key] = []string{value}
}
