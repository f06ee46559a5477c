package bus

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Access is what clients with a token of their own may do: publish to some subjects
// and hear the answers. They can read and change nothing else, not even streams to
// which they publish.
type Access struct {
	Name     string   // of these clients, for the log
	Token    string   // that they know
	Subjects []string // to which they may publish; * and > stand for one and more words
	Streams  []string // of which they may ask how full they are, as those do who publish to them
}

// Every client has subjects of its own for answers, below inboxes and a word that is
// known to it and the server alone. It is the last one of its name.
const (
	inboxes   = "_INBOX."
	partsWord = "parts" // between that and the rest, for parts of large messages
	leastID   = 16      // characters of that word
	answering = 2 * time.Minute
)

// isInbox tells whether somebody may be answered at a subject. It must not be one that
// others serve: a service may send where who asks it may not.
func isInbox(subject string) bool {
	return strings.HasPrefix(subject, inboxes) || strings.HasPrefix(subject, "_R_.") // what a server makes of it for another account
}

// permissions are those of the client with the given name.
func (a *Access) permissions(name string) *server.Permissions {
	p := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: append(slices.Clone(a.Subjects), inboxes+"*."+partsWord+".*")},
		Subscribe: &server.SubjectPermission{Deny: []string{">"}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: answering},
	}
	for _, s := range a.Streams {
		p.Publish.Allow = append(p.Publish.Allow, "$JS.API.STREAM.INFO."+s)
	}
	if id := name[strings.LastIndexByte(name, ' ')+1:]; len(id) >= leastID && checkWord("name", id) == nil {
		p.Subscribe = &server.SubjectPermission{Allow: []string{inboxes + id + ".>"}}
	}
	return p
}

// doorkeeper decides who may connect, and what they may do.
type doorkeeper struct {
	token  hashed
	access []Access
	hashes []hashed // of their tokens
	log    *serverLog

	banTime time.Duration

	mu     sync.Mutex
	banned map[string]time.Time // hosts whose clients with limited access may not come before
}

// hashed is a token of which comparing tells nothing, not even its length.
type hashed [sha256.Size]byte

func (h hashed) is(token string) bool {
	other := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(h[:], other[:]) == 1
}

func newDoorkeeper(token string, access []Access, log *serverLog) (*doorkeeper, error) {
	d := &doorkeeper{token: sha256.Sum256([]byte(token)), access: access, log: log, banTime: banTime, banned: make(map[string]time.Time)}
	for _, a := range access {
		if a.Name == "" || a.Token == "" || a.Token == token {
			return nil, errors.New("limited access needs a name and a token of its own")
		}
		d.hashes = append(d.hashes, sha256.Sum256([]byte(a.Token)))
	}
	return d, nil
}

// Check is called for each client that connects.
func (d *doorkeeper) Check(c server.ClientAuthentication) bool {
	from, opts := c.RemoteAddress(), c.GetOpts()
	host := hostOf(from)
	if d.token.is(opts.Token) {
		return true
	}
	for i, h := range d.hashes {
		if !h.is(opts.Token) {
			continue
		}
		a := &d.access[i]
		if opts.Nkey != "" || opts.JWT != "" { // under which others would know it
			d.log.refuse(from, "it shows more than a token", "as", a.Name)
			return false
		}
		if d.isBanned(host, time.Now()) {
			d.log.refuse(from, "it has sent too much, and must wait", "as", a.Name)
			return false
		}
		c.RegisterUser(&server.User{Username: a.Name, Permissions: a.permissions(opts.Name)})
		return true
	}
	why := "its token is wrong"
	if opts.Token == "" {
		why = "it has no token"
	}
	d.log.refuse(from, why)
	return false
}

func (d *doorkeeper) isBanned(host string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return now.Before(d.banned[host])
}

// ban keeps clients with limited access of a host away for some time.
func (d *doorkeeper) ban(host string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for h, until := range d.banned {
		if now.After(until) {
			delete(d.banned, h)
		}
	}
	d.banned[host] = now.Add(d.banTime)
}

// limited reports whether clients of a name have limited access.
func (d *doorkeeper) limited(name string) bool {
	return slices.ContainsFunc(d.access, func(a Access) bool { return a.Name == name })
}

// hostOf is an address without its port, which is another for each connection.
func hostOf(from net.Addr) string {
	if from == nil {
		return "unknown"
	}
	if host, _, err := net.SplitHostPort(from.String()); err == nil {
		return host
	}
	return from.String()
}
