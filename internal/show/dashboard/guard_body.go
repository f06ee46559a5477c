package dashboard

import (
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	maxBody  = 1 << 20     // bytes of a request, in any case
	bodyTime = time.Minute // for a client to send them, and to be answered

	// What is read, and thrown away, of a request that is answered already.
	maxRest  = 16 << 20 // bytes
	restTime = 5 * time.Second
)

// bound limits what a client may send: how much, and for how long. When the request is
// answered, rest is called.
func (g *guard) bound(w http.ResponseWriter, r *http.Request) (rest func()) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return func() {}
	}
	b := &sentBody{ReadCloser: r.Body}
	r.Body = b
	if !g.packets.Receives(r) { // which has a bound of its own
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // where there is a connection to bound
	return func() { b.skip(w, r) }
}

// sentBody is the body of a request as it comes.
type sentBody struct {
	io.ReadCloser

	begun, ended bool
}

// Read is that of the body.
func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.begun, b.ended = true, err != nil
	return n, err
}

// skip sends the answer, and reads a bounded rest of what the client still sends. To close
// a connection while something comes resets it, and the client may lose the answer.
func (b *sentBody) skip(w http.ResponseWriter, r *http.Request) {
	waits := strings.EqualFold(r.Header.Get("Expect"), "100-continue") && !b.begun // for being asked for it
	if b.ended || r.ContentLength == 0 || waits {
		return
	}
	c := http.NewResponseController(w)
	if c.EnableFullDuplex() != nil || c.Flush() != nil || c.SetReadDeadline(time.Now().Add(restTime)) != nil {
		return // there is no connection to be reset, or it is gone
	}
	_, _ = io.CopyN(io.Discard, b, maxRest) // who sends more, or is slower, was told why
}
