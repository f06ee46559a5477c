package dashboard

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// Rate is how often something may be done.
type Rate struct {
	PerMinute int // in the long run
	AtOnce    int // after a rest
}

// limiter lets each client do something only so often. Clients are told apart by the
// address that they connect from, for all of them have the same token; behind a proxy
// they are one.
type limiter struct {
	what string
	rate Rate
	now  func() time.Time

	mu      sync.Mutex
	clients map[string]allowance
}

// allowance is how often a client may still do it, as of some time.
type allowance struct {
	left float64
	at   time.Time
}

// maxClients is how many clients are remembered. Those that are not had a long rest, or
// there are more of them than anybody has.
const maxClients = 10_000

func newLimiter(what string, rate Rate) *limiter {
	return &limiter{what: what, rate: rate, now: time.Now, clients: make(map[string]allowance)}
}

// limit refuses requests that come too often.
func (l *limiter) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			client = r.RemoteAddr
		}
		if wait := l.take(client); wait > 0 {
			writeProblem(w, r, &retry{after: wait, problem: &problem{
				http.StatusTooManyRequests, fmt.Sprintf("too many %s: %d a minute are answered", l.what, l.rate.PerMinute),
				fmt.Sprintf("try again in %d s", int(math.Ceil(wait.Seconds()))),
			}})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// take takes one of what a client may do; else it returns for how long it must wait.
func (l *limiter) take(client string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, perSecond := l.now(), float64(l.rate.PerMinute)/60
	a, ok := l.clients[client]
	if !ok {
		if len(l.clients) >= maxClients {
			l.forget(now)
		}
		a = allowance{float64(l.rate.AtOnce), now}
	}
	a.left, a.at = min(float64(l.rate.AtOnce), a.left+now.Sub(a.at).Seconds()*perSecond), now
	var wait time.Duration
	if a.left >= 1 {
		a.left--
	} else {
		wait = time.Duration((1 - a.left) / perSecond * float64(time.Second))
	}
	l.clients[client] = a
	return wait
}

// forget forgets clients that have rested long enough, or all if none has.
func (l *limiter) forget(now time.Time) {
	rest := time.Duration(float64(l.rate.AtOnce) / float64(l.rate.PerMinute) * float64(time.Minute))
	for client, a := range l.clients {
		if now.Sub(a.at) >= rest {
			delete(l.clients, client)
		}
	}
	if len(l.clients) >= maxClients {
		clear(l.clients)
	}
}
