package dashboard

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// Rate limits requests of a client.
type Rate struct {
	PerMinute int // in the long run
	Burst     int // requests allowed at once after a pause
}

// maxClients is the number of clients that a limiter remembers.
const maxClients = 10_000

// limiter limits the requests of each client. A client is an IP address, since all clients have
// the same token; behind a proxy they are one.
type limiter struct {
	what    string
	rate    Rate
	clients *lru.Cache[string, *rate.Limiter]
}

func newLimiter(what string, r Rate) *limiter {
	clients, err := lru.New[string, *rate.Limiter](maxClients)
	if err != nil {
		panic(err) // the size is constant
	}
	return &limiter{what, r, clients}
}

// limit rejects requests that come too often.
func (l *limiter) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait := l.take(addressOf(r), time.Now()); wait > 0 {
			writeProblem(w, &retry{after: wait, Problem: problem(http.StatusTooManyRequests,
				fmt.Sprintf("too many %s (at most %d per minute)", l.what, l.rate.PerMinute),
				fmt.Sprintf("try again in %d s", int(math.Ceil(wait.Seconds()))))})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// take counts a request, or returns how long its client must wait.
func (l *limiter) take(client string, now time.Time) time.Duration {
	c := rate.NewLimiter(rate.Limit(l.rate.PerMinute)/60, l.rate.Burst)
	if previous, ok, _ := l.clients.PeekOrAdd(client, c); ok {
		l.clients.Get(client) // marks it as used
		c = previous
	}
	r := c.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// addressOf returns the address of a client without its port.
func addressOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
