package legacy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/legacy"
)

// giveUp closes a Sender that cannot deliver, and returns its error.
func giveUp(t *testing.T, s *legacy.Sender) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := s.Close(ctx)
	if err == nil {
		t.Fatal("Close returns nil")
	}
	return err.Error()
}

func TestLaterSenderDeliversLeftPacketsFirst(t *testing.T) {
	for _, queue := range []int64{1 << 20, 100, 1} {
		synctest.Test(t, func(t *testing.T) {
			r, dir := newReceiver(t, nil), t.TempDir()
			r.setDown(true)
			s := r.sender(legacy.SenderOptions{Dir: dir, Queue: queue})
			send(s, 0, 25)
			got := giveUp(t, s)
			waiting := filepath.Join(dir, "waiting")
			for _, want := range []string{"25 packets were not delivered to http://receiver/packets", waiting, "connection refused"} {
				if !strings.Contains(got, want) {
					t.Errorf("Close returns %q, want %q in it", got, want)
				}
			}
			if n := len(names(t, waiting)); n != 25 {
				t.Errorf("%d packets in files, want 25", n)
			}
			r.expect(0, 0)

			r.setDown(false)
			s = r.sender(legacy.SenderOptions{Dir: dir, Queue: queue}) // continues with 25
			send(s, 25, 30)
			closeSoon(t, s)
			r.expect(0, 30)
			expectFiles(t, dir, 0, 30)
		})
	}
}

func TestDeadReceiverDoesNotDelayFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir, spill := newReceiver(t, nil), t.TempDir(), t.TempDir()
		r.setDown(true)
		s := r.sender(legacy.SenderOptions{Dir: dir, Spill: spill, Queue: 200})
		send(s, 0, 100)
		synctest.Wait()
		expectFiles(t, dir, 0, 100)
		st := s.Stats()
		if st.Files.Sent != 100 || st.Receiver.Sent != 0 || st.Receiver.Pending != 100 || st.Receiver.LastError == "" {
			t.Errorf("got %+v", st)
		}
		r.setDown(false)
		closeSoon(t, s)
		r.expect(0, 100)
	})
}

func TestQueueSpillsToFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, spill := newReceiver(t, nil), t.TempDir()
		r.setDown(true)
		s := r.sender(legacy.SenderOptions{Spill: spill, Queue: 500})
		send(s, 0, 200)
		total, inFiles := int64(0), int64(0)
		for n := range 200 {
			total += int64(len(text(n)))
			if b, err := os.ReadFile(filepath.Join(spill, fmt.Sprintf("receiver-%012d.json", n))); err == nil {
				if string(b) != text(n) {
					t.Errorf("packet %d is stored as %q", n, b)
				}
				inFiles += int64(len(b))
			}
		}
		if st := s.Stats().Receiver; st.PendingBytes != total || st.Pending != 200 || total-inFiles > 500 {
			t.Errorf("%d of %d bytes wait in files, want all but 500: %+v", inFiles, total, st)
		}
		r.setDown(false)
		closeSoon(t, s)
		r.expect(0, 200)
	})
}

func TestMissingDirectoryIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		s, err := legacy.NewSender(legacy.SenderOptions{Dir: dir, Spill: t.TempDir(), Queue: 100})
		if err != nil {
			t.Fatal(err)
		}
		send(s, 0, 3)
		synctest.Wait()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		send(s, 3, 20)
		pass(time.Minute)
		if st := s.Stats().Files; st.Retries < 5 || st.Pending != 17 || st.LastError == "" || st.Sent != 3 {
			t.Errorf("without the directory: got %+v", st)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		closeSoon(t, s)
		expectFiles(t, dir, 3, 20)
	})
}

func TestLaterSenderWritesMissingFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, spill := filepath.Join(t.TempDir(), "out"), t.TempDir()
		opt := legacy.SenderOptions{Dir: dir, Spill: spill}
		s, err := legacy.NewSender(opt)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		send(s, 0, 4)
		if got := giveUp(t, s); !strings.Contains(got, "4 packets were not delivered to "+dir) {
			t.Errorf("Close returns %q", got)
		}
		if s, err = legacy.NewSender(opt); err != nil {
			t.Fatal(err)
		}
		send(s, 4, 5)
		closeSoon(t, s)
		expectFiles(t, dir, 0, 5)
	})
}

func TestPacketsSentAfterCloseWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, spill := newReceiver(t, nil), t.TempDir()
		s := r.sender(legacy.SenderOptions{Spill: spill})
		send(s, 0, 1)
		closeSoon(t, s)
		send(s, 1, 3)
		closeSoon(t, r.sender(legacy.SenderOptions{Spill: spill}))
		r.expect(0, 3)
	})
}

func TestVanishedPacketIsCountedAsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, spill := newReceiver(t, nil), t.TempDir()
		r.setDown(true)
		s := r.sender(legacy.SenderOptions{Spill: spill, Queue: 1})
		send(s, 0, 3)
		if err := os.Remove(filepath.Join(spill, "receiver-000000000000.json")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.setDown(false)
		closeSoon(t, s)
		r.expect(1, 3)
		if st := s.Stats().Receiver; st.Lost != 1 || st.Sent != 2 || st.Pending != 0 {
			t.Errorf("got %+v", st)
		}
	})
}

func TestPacketsStayInMemoryWithoutSpill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, spill := newReceiver(t, nil), filepath.Join(t.TempDir(), "above", "spill")
		r.setDown(true)
		s := r.sender(legacy.SenderOptions{Spill: spill, Queue: 1})
		if err := os.RemoveAll(filepath.Dir(spill)); err != nil {
			t.Fatal(err)
		}
		send(s, 0, 5)
		if st := s.Stats().Receiver; st.Pending != 5 {
			t.Errorf("got %+v", st)
		}
		r.setDown(false)
		closeSoon(t, s)
		r.expect(0, 5)
	})
}

func TestForeignFilesAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, spill := newReceiver(t, nil), t.TempDir()
		for _, name := range []string{".receiver-000000000004.json.tmp", "receiver-7.json", "notes.txt", "receiver-x.json"} {
			if err := os.WriteFile(filepath.Join(spill, name), []byte("?"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s := r.sender(legacy.SenderOptions{Spill: spill})
		send(s, 0, 1)
		closeSoon(t, s)
		r.expect(0, 1)
		if got := strings.Join(names(t, spill), " "); got != "notes.txt receiver-7.json receiver-x.json" {
			t.Errorf("the directory has %s", got)
		}
	})
}
