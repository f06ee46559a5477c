package viewer

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestRunWithHangingPartIsRunning has a page that answers when a part has not responded in time.
func TestRunWithHangingPartIsRunning(t *testing.T) {
	tracetest.SkipShort(t, "waits for a timeout")
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(StatusTimeout)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&api.Status{Run: api.RunStatus{Name: "run", State: api.Running}}) // the client checks it
	}))
	defer page.Close()
	dir := filepath.Join(t.TempDir(), "run")
	d, err1 := rundir.Create(dir, false)
	host, err2 := os.Hostname()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := runfiles.WriteServices(dir, &runfiles.Services{Run: "run", Bus: "nats://127.0.0.1:1", Web: page.URL, Host: host}); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteInfo(&provdb.Info{State: provdb.Running, Online: true, Name: "run"}); err != nil {
		t.Fatal(err)
	}
	if stopped, err := IsStopped(t.Context(), dir, rundir.Place{}); stopped || err != nil {
		t.Errorf("stopped: %t, %v", stopped, err)
	}
}

func TestStatusOfKilledServices(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := runfiles.WriteServices(dir, &runfiles.Services{Run: "run", Bus: "nats://" + address, Web: "http://" + address}); err != nil {
		t.Fatal(err)
	}
	_, err = StatusAt(t.Context(), dir)
	want := dir + ": the services of this run have ended or were killed: nothing answers at " + address
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "chimbuko finish "+dir) {
		t.Errorf("got %v, want %s", err, want)
	}
}
