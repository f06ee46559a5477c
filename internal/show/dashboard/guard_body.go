package dashboard

import (
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	maxBody  = 1 << 20     // bytes of a request
	bodyTime = time.Minute // to send them

	// Limits of discarding the rest of an answered request.
	maxRest  = 16 << 20 // bytes
	restTime = 5 * time.Second
)

// bound limits the size and time of a request. The caller calls rest after answering.
func (g *guard) bound(w http.ResponseWriter, r *http.Request) (rest func()) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return func() {}
	}
	b := &sentBody{ReadCloser: r.Body}
	r.Body = b
	if !g.packets.Receives(r) { // which has its own limit
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // fails without a connection
	return func() { b.skip(w, r) }
}

// sentBody records how much of a body was read.
type sentBody struct {
	io.ReadCloser

	begun, ended bool
}

// Read reads from the body.
func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.begun, b.ended = true, err != nil
	return n, err
}

// skip sends the answer and discards a bounded rest of the request. Closing a connection while data
// arrive would reset it, and the client could lose the answer.
func (b *sentBody) skip(w http.ResponseWriter, r *http.Request) {
	waits := strings.EqualFold(r.Header.Get("Expect"), "100-continue") && !b.begun
	if b.ended || r.ContentLength == 0 || waits {
		return
	}
	c := http.NewResponseController(w)
	if c.EnableFullDuplex() != nil || c.Flush() != nil || c.SetReadDeadline(time.Now().Add(restTime)) != nil {
		return // no connection, or already closed
	}
	_, _ = io.CopyN(io.Discard, b, maxRest) // larger or slower requests may lose the answer
}
