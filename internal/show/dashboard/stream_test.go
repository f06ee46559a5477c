package dashboard_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
)

// sse reads a stream.
type sse struct {
	*bufio.Scanner
	resp *http.Response
}

type sseEvent struct {
	name string
	id   int64
	data string
}

func openStream(t *testing.T, address string, headers ...string) *sse {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("%s, %s", resp.Status, kind)
	}
	s := &sse{bufio.NewScanner(resp.Body), resp}
	s.Buffer(nil, 1<<24)
	return s
}

// next returns the next event except overviews, which come at any time.
func (s *sse) next(t *testing.T) sseEvent {
	t.Helper()
	for {
		if e := s.any(t); e.name != "overview" {
			return e
		}
	}
}

// any returns the next event.
func (s *sse) any(t *testing.T) (e sseEvent) {
	t.Helper()
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id, _ = strconv.ParseInt(value, 10, 64)
		case "data":
			e.data = value
		case "":
			if e.name != "" {
				return e
			}
		}
	}
	t.Fatalf("the stream ended: %v", s.Err())
	return e
}

func TestStreamSendsTicksAndStates(t *testing.T) {
	at, p := serve(t, nil)
	s := openStream(t, at+monday+"/stream")
	last := int64(0)
	for range 3 {
		e := s.next(t)
		var got api.Status
		if err := json.Unmarshal([]byte(e.data), &got); err != nil || e.name != "tick" || e.id <= last || got.Run.Name != "monday" ||
			len(got.Ranks) != 3 {
			t.Fatalf("%+v, %v", e, err)
		}
		last = e.id
	}
	p.set(func(p *pipeline) { p.status.Run.State = api.Reviewing })
	e := s.next(t)
	for e.name == "tick" && !strings.Contains(e.data, `"state":"reviewing"`) {
		e = s.next(t)
	}
	if e.name != "state" || e.data != `{"previous":"running","state":"reviewing"}` {
		t.Errorf("%+v", e)
	}
	p.set(func(p *pipeline) { p.err = errors.New("timeout") })
	for e.name != "problem" {
		e = s.next(t)
	}
	if !strings.Contains(e.data, "timeout") {
		t.Errorf("%+v", e)
	}
	p.set(func(p *pipeline) { p.err, p.status.Run.State = nil, api.Finished })
	for e.name != "state" {
		e = s.next(t)
	}
	if !strings.Contains(e.data, "finished") {
		t.Errorf("%+v", e)
	}
}

func TestStreamResumesWithSnapshot(t *testing.T) {
	at, _ := serve(t, nil)
	s := openStream(t, at+monday+"/stream?ranks=false")
	first := s.next(t)
	if first.name != "tick" || strings.Contains(first.data, `"ranks":[`) {
		t.Fatalf("%+v", first)
	}
	_ = s.resp.Body.Close()
	s = openStream(t, at+monday+"/stream", "Last-Event-ID: "+strconv.FormatInt(first.id, 10))
	e := s.next(t)
	var snap struct{ Top, Newest []object }
	if err := json.Unmarshal([]byte(e.data), &snap); err != nil || e.name != "snapshot" || e.id < first.id || len(snap.Top) != 10 ||
		len(snap.Newest) != 20 {
		t.Fatalf("%+v, %v", e, err)
	}
	if next := s.next(t); next.name != "tick" || next.id < e.id {
		t.Errorf("%+v after %d", next, e.id)
	}
}

func TestStreamsAreLimitedAndShareOneStatus(t *testing.T) {
	begin := time.Now()
	at, p := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Streams = 5 })
	var streams []*sse
	for range 5 {
		streams = append(streams, openStream(t, at+monday+"/stream"))
	}
	fails(t, do(t, at+monday+"/stream", ""), 503, "5 streams are open")
	var wg sync.WaitGroup
	for _, s := range streams {
		wg.Go(func() {
			for range 10 {
				s.next(t)
			}
		})
	}
	wg.Wait()
	var calls int64
	p.set(func(p *pipeline) { calls, p.status.Run.Version = int64(p.calls), "counted" })
	e := streams[0].next(t)
	for !strings.Contains(e.data, "counted") { // of a tick before
		e = streams[0].next(t)
	}
	overviews := int64(time.Since(begin) / (2 * time.Second)) // the shortest time between two
	if calls > e.id+15+overviews {
		t.Errorf("%d calls of the source for %d ticks", calls, e.id)
	}
	// Closing a stream makes room as soon as the server notices.
	_ = streams[0].resp.Body.Close()
	for do(t, at+"/healthz", "").code == 200 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+monday+"/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == 200 {
			break
		}
	}
}

// Every stream gets an overview at once, also after reconnecting, then after changes.
func TestStreamSendsOverview(t *testing.T) {
	labels := new(memory)
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Labels = labels })
	overview := func(s *sse) (o api.Overview) {
		t.Helper()
		for {
			if e := s.any(t); e.name == "overview" {
				if err := json.Unmarshal([]byte(e.data), &o); err != nil {
					t.Fatal(err)
				}
				return o
			}
		}
	}
	first, second := openStream(t, at+monday+"/stream"), openStream(t, at+monday+"/stream?ranks=false", "Last-Event-ID: 3")
	o := overview(first)
	if again := overview(second); o.Run != "monday" || !o.Live || again.Verdict != o.Verdict || len(o.Findings) != 5 {
		t.Errorf("%+v and %+v", o.Verdict, again.Verdict)
	}
	muted := o.Findings[0]
	want[object](t, do(t, at+monday+"/labels/"+muted.Key, `{"state":"expected"}`, "Method: PUT"), 200)
	for _, s := range []*sse{first, second} {
		for o.Figures.FindingsMuted = 0; o.Figures.FindingsMuted == 0; {
			o = overview(s)
		}
		if o.Findings[0].Key == muted.Key {
			t.Error("an expected finding is among the worst")
		}
	}
}
