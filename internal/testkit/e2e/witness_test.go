package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"       //nolint:depguard // it must be independent of the code that it watches
	"google.golang.org/protobuf/proto" //nolint:depguard // the same

	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// witness watches the messages of analyzers to the store, and their confirmations by the
// stream. It misses messages that are sent while it is disconnected.
type witness struct {
	t    testing.TB
	conn *nats.Conn
	came chan *nats.Msg
	done sync.WaitGroup

	sent      map[string]*nats.Msg // by where the stream confirms it
	confirmed map[string]bool
}

// watch begins to watch the records of a run.
func watch(t testing.TB, services *runfiles.Services) *witness {
	t.Helper()
	w := &witness{t: t, came: make(chan *nats.Msg, 1<<16), sent: map[string]*nats.Msg{}, confirmed: map[string]bool{}}
	var err error
	w.conn, err = nats.Connect(services.Bus, nats.Token(services.Token), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.RetryOnFailedConnect(true), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrSlowConsumer) || errors.Is(err, nats.ErrPermissionViolation) { // others are deaths
				t.Errorf("watching the records: %v", err)
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.conn.Close)
	for _, subject := range []string{"chimbuko.*.records", "_INBOX.>"} {
		if _, err := w.conn.ChanSubscribe(subject, w.came); err != nil {
			t.Fatal(err)
		}
	}
	w.done.Go(func() {
		for m := range w.came {
			if strings.HasPrefix(m.Subject, "_INBOX.") {
				var ack struct {
					Stream string `json:"stream"`
					Seq    uint64 `json:"seq"`
				}
				if json.Unmarshal(m.Data, &ack) == nil && ack.Stream != "" && ack.Seq > 0 {
					w.confirmed[m.Subject] = true
				}
			} else {
				w.sent[m.Reply] = m
			}
		}
	})
	return w
}

// records are those that were confirmed, by what names them in the store, with how
// often each was sent.
func (w *witness) records() map[string]int {
	w.t.Helper()
	w.conn.Close()
	close(w.came)
	w.done.Wait()
	parts := map[string]map[int][]byte{}
	all := map[string]int{}
	for reply, m := range w.sent {
		if !w.confirmed[reply] {
			continue
		}
		text := m.Header.Get("Bus-Part")
		if text == "" {
			w.add(all, m.Data)
			continue
		}
		var index, count int
		if _, err := fmt.Sscan(text, &index, &count); err != nil {
			w.t.Fatalf("part %q: %v", text, err)
		}
		id, _, _ := strings.Cut(m.Header.Get("Nats-Msg-Id"), " ")
		if parts[id] == nil {
			parts[id] = map[int][]byte{}
		}
		if parts[id][index] = m.Data; len(parts[id]) == count {
			var whole []byte
			for i := range count {
				whole = append(whole, parts[id][i]...)
			}
			w.add(all, whole)
		}
	}
	return all
}

func (w *witness) add(all map[string]int, data []byte) {
	w.t.Helper()
	var batch protocol.RecordBatch
	if err := proto.Unmarshal(data, &batch); err != nil {
		w.t.Fatal(err)
	}
	for _, list := range [][]byte{batch.GetAnomalies(), batch.GetTypical()} {
		records, err := recordstream.ReadRecords(list)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range records {
			all[fmt.Sprintf("%d,%d,%s", r.PID, r.RID, r.EventID)]++
		}
	}
}

// storedRecords are the records of a run in its store, as the witness names them,
// with how often each is there.
func storedRecords(t testing.TB, where string) map[string]int {
	t.Helper()
	const events = "SELECT pid, rid, event_id FROM "
	out := must(t, "query", where, events+"anomalies UNION ALL "+events+"normalexecs", "--format", "csv", "--max-rows", "0")
	all := map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if i > 0 {
			all[line]++
		}
	}
	return all
}
