// Package bus moves bytes between processes through NATS: requests and replies, and streams that
// keep messages until they are acknowledged. It runs the server in process, or uses any nats-server
// or cluster. It does not interpret the bytes, and it is the only package that uses NATS.
//
// Requests and replies may have up to MaxMessage bytes: if one is larger than a server accepts, its
// receiver fetches the rest from its sender.
package bus

import "errors"

// MaxMessage is the size of the largest message, in bytes.
const MaxMessage = 256 << 20

var (
	// ErrNotConnected means that there is no connection, or that it was lost before the answer
	// came. The other side may have received the message. It wraps the reason, as returned by
	// LastError.
	ErrNotConnected = errors.New("not connected to the message bus")

	// ErrNoService means that the subject of a request has no service at present.
	ErrNoService = errors.New("no service for this subject")

	// ErrDenied means that this client lacks the permission.
	ErrDenied = errors.New("the message server does not permit this with the given token")

	// ErrTooLarge means that a message can never be sent: it is larger than
	// MaxMessage, or than its stream or the server accepts.
	ErrTooLarge = errors.New("message too large")

	// ErrFull means that a stream has no room until its consumer acknowledges more.
	ErrFull = errors.New("the stream is full")

	// ErrTaken means that another consumer has taken over the stream.
	ErrTaken = errors.New("another consumer has taken over")

	// ErrClosed means that the Conn or the Consumer was closed by its own side.
	ErrClosed = errors.New("closed")
)

// RemoteError is the error of a handler, as the requester sees it: its text.
type RemoteError struct{ Text string }

func (e *RemoteError) Error() string { return e.Text }
