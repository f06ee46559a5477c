package legacy_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/legacy"
)

// answers replies to requests one by one with the given statuses, then with 200.
func answers(statuses ...int) replier {
	return func(w http.ResponseWriter, _ *http.Request, n int) bool {
		if n >= len(statuses) {
			return true
		}
		w.WriteHeader(statuses[n])
		return statuses[n]/100 == 2
	}
}

func TestRetriesWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver(t, answers(500, 500, 500, 503, 502, 500, 500, 500, 500))
		s := r.sender(legacy.SenderOptions{})
		send(s, 0, 1)
		pass(time.Minute)
		if st := s.Stats().Receiver; st.Retries != 9 || st.Sent != 1 || st.LastError != "" || st.LastStatus != 200 {
			t.Errorf("got %+v", st)
		}
		send(s, 1, 3)
		closeSoon(t, s)
		r.expect(0, 3)
		at := r.requests()
		for i, most := range []time.Duration{200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000} {
			pause := at[i+1] - at[i]
			if most *= time.Millisecond; pause < most/2 || pause > most {
				t.Errorf("pause %d is %v, want %v to %v", i, pause, most/2, most)
			}
		}
	})
}

func TestAny2xxIsSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver(t, answers(201, 202, 204))
		s := r.sender(legacy.SenderOptions{})
		send(s, 0, 4)
		closeSoon(t, s)
		r.expect(0, 4)
		if st := s.Stats().Receiver; st.Retries != 0 {
			t.Errorf("%d retries", st.Retries)
		}
	})
}

func TestRejectedPacketIsRetriedAndReported(t *testing.T) {
	f := func(status int, refused bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			r := newReceiver(t, answers(status, status))
			s := r.sender(legacy.SenderOptions{})
			send(s, 0, 2)
			synctest.Wait()
			want := fmt.Sprintf("the receiver answers %d %s", status, http.StatusText(status))
			if st := s.Stats().Receiver; st.Refused != refused || st.LastError != want || st.LastStatus != status || st.Pending != 2 {
				t.Errorf("%d: got %+v, want refused %v, error %q", status, st, refused, want)
			}
			closeSoon(t, s)
			r.expect(0, 2)
			if st := s.Stats().Receiver; st.Refused || st.LastError != "" || st.Sent != 2 {
				t.Errorf("%d, then success: got %+v", status, st)
			}
		})
	}
	for _, status := range []int{400, 401, 404, 405, 413} {
		f(status, true)
	}
	for _, status := range []int{304, 408, 425, 429, 500, 503} {
		f(status, false)
	}
}

func TestRetryAfterIsRespected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		headers := []string{"7", start.Add(60 * time.Second).UTC().Format(http.TimeFormat), "soon", "-3", "99999999"}
		pauses := []time.Duration{7 * time.Second, 53 * time.Second, 0, 0, 10 * time.Minute}
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n >= len(headers) {
				return true
			}
			w.Header().Set("Retry-After", headers[n])
			w.WriteHeader([]int{429, 503}[n%2])
			return false
		})
		s := r.sender(legacy.SenderOptions{})
		send(s, 0, 1)
		closeSoon(t, s)
		r.expect(0, 1)
		at := r.requests()
		for i, want := range pauses {
			if pause := at[i+1] - at[i]; pause < want || pause > want+maxUsual {
				t.Errorf("%q: the pause is %v, want %v or little more", headers[i], pause, want)
			}
		}
	})
}

// maxUsual is how long a pause is at most after few failures.
const maxUsual = 2 * time.Second

func TestSlowReceiverTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 2
		r := newReceiver(t, func(_ http.ResponseWriter, req *http.Request, n int) bool {
			if n >= slow {
				return true
			}
			<-req.Context().Done() // until the sender goes away
			return false
		})
		s := r.sender(legacy.SenderOptions{Timeout: 5 * time.Second})
		send(s, 0, 3)
		pass(6 * time.Second)
		if st := s.Stats().Receiver; st.Retries != 1 || !strings.Contains(st.LastError, "deadline") || st.Pending != 3 {
			t.Errorf("after the first timeout: got %+v", st)
		}
		closeSoon(t, s)
		r.expect(0, 3)
	})
}

func TestRedirectsKeepBody(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		synctest.Test(t, func(t *testing.T) {
			r := newReceiver(t, func(w http.ResponseWriter, req *http.Request, _ int) bool {
				if req.URL.Path == "/packets" {
					w.Header().Set("Location", "elsewhere?x=1")
					w.WriteHeader(status)
					return false
				}
				return req.Method == http.MethodPost && req.URL.String() == "/elsewhere?x=1"
			})
			s := r.sender(legacy.SenderOptions{})
			send(s, 0, 2)
			closeSoon(t, s)
			r.expect(0, 2)
			if st := s.Stats().Receiver; st.Retries != 0 || st.LastStatus != 200 {
				t.Errorf("%d: got %+v", status, st)
			}
		})
	}
}

func TestEndlessRedirectsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n >= 10 {
				return true
			}
			w.Header().Set("Location", "/packets")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return false
		})
		s := r.sender(legacy.SenderOptions{})
		send(s, 0, 1)
		synctest.Wait()
		if st := s.Stats().Receiver; !strings.Contains(st.LastError, "redirects more than 10 times") {
			t.Errorf("got %+v", st)
		}
		closeSoon(t, s)
		r.expect(0, 1)
	})
}

func TestFailureAndRecoveryAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newReceiver(t, answers(500, 500, 404, 404, 200, 200, 500))
		s := r.sender(legacy.SenderOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
		send(s, 0, 3)
		closeSoon(t, s)
		r.expect(0, 3)
		var got []string
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(line, "level=")
			line, _, _ = strings.Cut(line, " to=")
			got = append(got, line)
		}
		want := []string{
			`WARN msg="delivery of packets fails" from=0`, `ERROR msg="delivery of packets fails" from=0`, `INFO msg="delivery of packets continues" from=0`,
			`WARN msg="delivery of packets fails" from=2`, `INFO msg="delivery of packets continues" from=2`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q,\nwant %q", got, want)
		}
	})
}
