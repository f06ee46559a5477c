package bus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// The headers of messages. One without any is a whole message, so that other
// programs can send and serve those.
const (
	partHeader  = "Bus-Part"  // "index count total": a part, and what it is a part of
	restHeader  = "Bus-Rest"  // the subject that gives the other parts of a request or reply
	errorHeader = "Bus-Error" // the reply is the text of an error
)

const (
	largestPart  = 1 << 20 // larger ones hold up other messages
	smallestPart = 4 << 10
	headerRoom   = 2 << 10 // of what a server takes, for headers
	maxID        = 256
	maxParts     = MaxMessage / smallestPart
)

// part says which piece of a message follows.
type part struct {
	index, count int
	total        int // bytes of the whole message
}

func (p part) String() string { return fmt.Sprintf("%d %d %d", p.index, p.count, p.total) }

// parsePart reads what String wrote. What it accepts can be of a message that this
// package sends: it has two parts or more, none of them is empty, and it is no
// larger than MaxMessage.
func parsePart(text string) (p part, err error) {
	fields := strings.Split(text, " ")
	if len(fields) != 3 {
		return part{}, fmt.Errorf("part %.100q: want three numbers", text)
	}
	for i, to := range []*int{&p.index, &p.count, &p.total} {
		n, err := strconv.ParseUint(fields[i], 10, 31)
		if err != nil {
			return part{}, fmt.Errorf("part %.100q: %.20q is not a number", text, fields[i])
		}
		*to = int(n)
	}
	if p.count < 2 || p.count > min(p.total, maxParts) || p.index >= p.count || p.total > MaxMessage || p.String() != text {
		return part{}, fmt.Errorf("part %.100q: no message has such a part", text)
	}
	return p, nil
}

// partSize is how many bytes a part may have on this connection.
func (c *Conn) partSize() (int, error) {
	most := c.nc.MaxPayload() // 0 before the first connection
	if most > 0 && most < smallestPart+headerRoom {
		return 0, fmt.Errorf("the server takes messages of %d bytes at most: set its max_payload to %d or more", most, smallestPart+headerRoom)
	}
	if most == 0 || most > largestPart {
		return largestPart - headerRoom, nil
	}
	return int(most) - headerRoom, nil
}

// split cuts data, which is larger than size, into parts.
func split(data []byte, size int) [][]byte {
	parts := make([][]byte, 0, len(data)/size+1)
	for ; len(data) > size; data = data[size:] {
		parts = append(parts, data[:size:size])
	}
	return append(parts, data)
}

// tooLarge is an error for messages that are not sent at all.
func tooLarge(size int) error {
	if size <= MaxMessage {
		return nil
	}
	return fmt.Errorf("%w: %d bytes, and %d MiB is the most", ErrTooLarge, size, MaxMessage>>20)
}

// checkName refuses subjects and ids that cannot be sent.
func checkName(what, s string) error {
	switch {
	case s == "":
		return errors.New("the " + what + " is empty")
	case len(s) > maxID:
		return fmt.Errorf("the %s has %d bytes, want %d at most", what, len(s), maxID)
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return fmt.Errorf("the %s %q may have no spaces and nothing but ASCII", what, s)
	}
	return nil
}

func setHeader(m *nats.Msg, key, value string) {
	if m.Header == nil {
		m.Header = make(nats.Header, 2)
	}
	m.Header[key] = []string{value}
}
