// Package bus moves bytes between processes through NATS: requests and their
// replies, and streams that keep messages until they were acknowledged. It can
// run the server itself, in process, or use any nats-server or cluster of them.
// It knows nothing of what the bytes mean, and it is the only package that knows
// NATS.
//
// Messages may have any size up to MaxMessage: those larger than a server takes
// are sent in parts and put together again.
package bus

import "errors"

// MaxMessage is the size of the largest message, in bytes.
const MaxMessage = 256 << 20

var (
	// ErrAway says that there is no connection, or that it was lost before the
	// answer came: whether the other side got the message is not known. It comes
	// with the reason, as LastError tells it.
	ErrAway = errors.New("not connected to the message bus")

	// ErrNoService says that nobody serves the subject of a request at present.
	ErrNoService = errors.New("nobody serves this subject")

	// ErrDenied says that the server does not let this client do it.
	ErrDenied = errors.New("the message server does not allow this with the token that was given")

	// ErrTooLarge says that a message can never be sent: it is larger than
	// MaxMessage, or than its stream.
	ErrTooLarge = errors.New("the message is too large")

	// ErrFull says that a stream has no room until its consumer acknowledges more.
	ErrFull = errors.New("the stream is full")

	// ErrTaken says that another consumer of the same name has taken over.
	ErrTaken = errors.New("another consumer has taken over")

	// ErrClosed says that the Conn or the Consumer was closed by its own side.
	ErrClosed = errors.New("closed")
)

// RemoteError is the error of a handler, as the requester sees it: its text.
type RemoteError struct{ Text string }

func (e *RemoteError) Error() string { return e.Text }
