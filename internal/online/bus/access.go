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

// Access grants the holders of a token the right to publish to some subjects and to
// receive the answers. They can read and change nothing else, not even the streams to
// which they publish.
type Access struct {
	Name     string   // of these clients, for the log
	Token    string   // presented by these clients
	Subjects []string // to which they may publish; * matches one token, > one or more
	Streams  []string // streams whose state they may read, as publishers do
}

// Every client receives answers below inboxes and a random id, a secret between it and the server.
// The id is the last word of the client's name.
const (
	inboxes      = "_INBOX."
	restToken    = "rest" // follows the id in subjects that serve the rest of large messages
	minID        = 16     // characters of an id
	replyTimeout = 2 * time.Minute
)

// isInbox reports whether a subject may receive replies. Services may publish where
// their requesters may not, so they must not reply to a subject that others serve.
func isInbox(subject string) bool {
	return strings.HasPrefix(subject, inboxes) || strings.HasPrefix(subject, "_R_.") // the form for another account
}

// permissions returns the permissions of the client with the given name.
func (a *Access) permissions(name string) *server.Permissions {
	p := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: append(slices.Clone(a.Subjects), inboxes+"*."+restToken+".*")},
		Subscribe: &server.SubjectPermission{Deny: []string{">"}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: replyTimeout},
	}
	for _, s := range a.Streams {
		p.Publish.Allow = append(p.Publish.Allow, "$JS.API.STREAM.INFO."+s)
	}
	if id := name[strings.LastIndexByte(name, ' ')+1:]; len(id) >= minID && checkWord("name", id) == nil {
		p.Subscribe = &server.SubjectPermission{Allow: []string{inboxes + id + ".>"}}
	}
	return p
}

// doorkeeper authenticates clients and sets their permissions.
type doorkeeper struct {
	token  tokenHash
	access []Access
	hashes []tokenHash // of their tokens
	log    *serverLog

	banTime time.Duration

	mu     sync.Mutex
	banned map[string]time.Time // end of the ban of clients with limited access, by host
}

// tokenHash is the hash of a token, so that comparisons leak nothing, not even its length.
type tokenHash [sha256.Size]byte

func (h tokenHash) matches(token string) bool {
	other := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(h[:], other[:]) == 1
}

func newDoorkeeper(token string, access []Access, log *serverLog) (*doorkeeper, error) {
	d := &doorkeeper{
		token: sha256.Sum256([]byte(token)), access: access, log: log, banTime: banTime, banned: make(map[string]time.Time),
	}
	for _, a := range access {
		if a.Name == "" || a.Token == "" || a.Token == token {
			return nil, errors.New("limited access needs a name and a separate token")
		}
		d.hashes = append(d.hashes, sha256.Sum256([]byte(a.Token)))
	}
	return d, nil
}

// Check implements server.Authentication: it decides whether a client may connect.
func (d *doorkeeper) Check(c server.ClientAuthentication) bool {
	from, opts := "unknown", c.GetOpts()
	if a := c.RemoteAddress(); a != nil {
		from = a.String()
	}
	if d.token.matches(opts.Token) {
		return true
	}
	for i, h := range d.hashes {
		if !h.matches(opts.Token) {
			continue
		}
		a := &d.access[i]
		if opts.Nkey != "" || opts.JWT != "" { // the server would use that identity instead
			d.log.refuse(from, "credentials besides the token", "as", a.Name)
			return false
		}
		if d.isBanned(hostOf(from), time.Now()) {
			d.log.refuse(from, "its address is banned for sending too much", "as", a.Name)
			return false
		}
		c.RegisterUser(&server.User{Username: a.Name, Permissions: a.permissions(opts.Name)})
		return true
	}
	reason := "wrong token"
	if opts.Token == "" {
		reason = "no token"
	}
	d.log.refuse(from, reason)
	return false
}

func (d *doorkeeper) isBanned(host string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return now.Before(d.banned[host])
}

// ban rejects clients with limited access from a host for some time.
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

// isLimited reports whether clients of this name have limited access.
func (d *doorkeeper) isLimited(name string) bool {
	return slices.ContainsFunc(d.access, func(a Access) bool { return a.Name == name })
}

// hostOf returns an address without its port, which differs for each connection.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
