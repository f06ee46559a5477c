// Package remotestore lets other processes ask a store that only one can open:
// the process that owns the file answers their questions, over HTTP on the
// loopback interface. It writes nothing for others and never leaves the host.
//
// The owner calls Serve, which writes a small file, the announcement, beside the
// store: where to ask, and a token that proves the right to. Who can read that
// file can ask. Others call Open with the name of the announcement.
//
// A question is a POST to /query with the token as its bearer and a body of
// JSON: {"sql": …, "args": […]}. A body without sql only asks whether somebody
// is there. The answer is one value of JSON on each line:
//
//	{"columns": [{"name": …, "type": …}, …]}
//	[value, …]                              for each row
//	{"end": true}                           or {"error": …, "kind": …}
//
// The last line is there exactly once, so an answer that was cut is never taken
// for a short one. An error may come in place of the columns. Values keep their
// Go types:
//
//	null, true, "text"       nil, bool, string
//	12                       int64: a number without a point or an exponent
//	1.2e+01                  float64; {"float": "NaN"}, "+Inf" and "-Inf"
//	{"number": "12"}         json.Number
//	{"json": "[1]"}          json.RawMessage, byte for byte
//	{"time": [s, ns]}        time.Time in UTC; s is rounded down
//	{"text64": …}            string that is not UTF-8, in base64; so json64
package remotestore

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// ErrGone tells that no owner answers any more, so the caller may try to open
// the store itself. A store that is opened for writing locks its file, so being
// wrong here harms nothing.
var ErrGone = errors.New("the process that owned the store is gone")

// Protocol is the version of what owner and client say to each other.
const Protocol = 1

const (
	queryPath    = "/query"
	contentType  = "application/jsonl"
	maxQuestion  = 1 << 20 // bytes of a body
	maxAnnounced = 64 << 10
	tokenSize    = 32
)

// announcement is the file by which clients find the owner.
type announcement struct {
	Protocol int    `json:"protocol"`
	Address  string `json:"address"` // IP and port, of the loopback interface
	Token    string `json:"token"`
	PID      int    `json:"pid"`
	Host     string `json:"host"`
}

func newAnnouncement(address string) (announcement, error) {
	host, err := os.Hostname()
	if err != nil {
		return announcement{}, err
	}
	token := make([]byte, tokenSize)
	if _, err := rand.Read(token); err != nil {
		return announcement{}, err
	}
	return announcement{Protocol: Protocol, Address: address, Token: hex.EncodeToString(token), PID: os.Getpid(), Host: host}, nil
}

// write puts the announcement where only this user can read it, at once.
func (a announcement) write(path string) (err error) {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// remove takes the announcement away unless it is another owner's by now.
func (a announcement) remove(path string) error {
	if own, err := a.stands(path); err != nil || !own {
		return err
	}
	return os.Remove(path)
}

// stands tells whether the file is still this announcement.
func (a announcement) stands(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var now announcement
	return json.Unmarshal(text, &now) == nil && now.Token == a.Token, err
}

// stale tells whether the owner has left although something may answer at its
// address: its process has ended, or the announcement is gone or another's.
func (a announcement) stale(path string) bool {
	if own, err := a.stands(path); err == nil && !own {
		return true
	}
	p, err := os.FindProcess(a.PID)
	return err == nil && errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

func readAnnouncement(path string) (a announcement, err error) {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a, fmt.Errorf("%s: no process offers to answer: %w", path, provdb.ErrNotFound)
	case errors.Is(err, fs.ErrPermission):
		return a, fmt.Errorf("only the user who runs the owner of the store can ask it: %w", err)
	case err != nil:
		return a, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxAnnounced))
	if err = errors.Join(err, f.Close()); err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: not the announcement of a store: %w", path, err)
	}
	return a, a.check(path)
}

// check refuses announcements that this program did not write.
func (a announcement) check(path string) error {
	if a.Protocol > Protocol {
		return fmt.Errorf("%s: its protocol is %d, this program knows up to %d: %w; take a newer chimbuko", path, a.Protocol, Protocol, provdb.ErrNewer)
	}
	where, err := netip.ParseAddrPort(a.Address)
	switch {
	case err != nil:
	case !where.Addr().IsLoopback() || where.Port() == 0:
		err = fmt.Errorf("%s is not an address of this host alone", a.Address)
	case a.Protocol < 1 || a.Token == "" || a.PID < 1 || a.Host == "":
		err = errors.New("protocol, token, pid or host is missing")
	}
	if err != nil {
		return fmt.Errorf("%s: not the announcement of a store: %w", path, err)
	}
	return nil
}
