// Package remotestore lets other processes query a store that only one process can open: the owner of the file answers their
// queries over HTTP on the loopback interface. It accepts no writes, and its data never leaves the host.
//
// The owner calls Serve, which writes a small file beside the store, the announcement, with its address and a token.
// Processes that can read the file may query. They call Open with the name of the announcement.
//
// A query is a POST to /query with the token as bearer token and a gob-encoded request as its body. The answer is a stream of
// gob-encoded frames.
package remotestore

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"syscall"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// ErrGone means that the owner no longer answers, so the caller may try to open the store itself. A store opened for writing
// locks its file, so an ErrGone that is wrong does no harm.
var ErrGone = errors.New("the process that owned the store is gone")

// Protocol is the version of the messages between owner and client.
const Protocol = 2

const (
	queryPath    = "/query"
	contentType  = "application/x-gob"
	maxRequest   = 1 << 20 // bytes
	maxAnnounced = 64 << 10
)

// announcement is the file through which clients find the owner.
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
	return announcement{Protocol: Protocol, Address: address, Token: rand.Text(), PID: os.Getpid(), Host: host}, nil
}

// write writes the announcement atomically. Only this user can read it.
func (a announcement) write(path string) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(text, '\n'), 0o600)
}

// remove deletes the announcement unless another owner has replaced it.
func (a announcement) remove(path string) error {
	if own, err := a.isCurrent(path); err != nil || !own {
		return err
	}
	return os.Remove(path)
}

// isCurrent reports whether the file still contains this announcement.
func (a announcement) isCurrent(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var now announcement
	return json.Unmarshal(text, &now) == nil && now.Token == a.Token, err
}

// isStale reports whether the owner is gone even if something answers at its address: its process has ended, or the
// announcement was removed or replaced.
func (a announcement) isStale(path string) bool {
	if own, err := a.isCurrent(path); err == nil && !own {
		return true
	}
	p, err := os.FindProcess(a.PID)
	return err == nil && errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

func readAnnouncement(path string) (a announcement, err error) {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a, fmt.Errorf("%s: no process answers queries: %w", path, provdb.ErrNotFound)
	case errors.Is(err, fs.ErrPermission):
		return a, fmt.Errorf("only the user who runs the owner of the store can query it: %w", err)
	case err != nil:
		return a, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxAnnounced))
	if err = errors.Join(err, f.Close()); err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: invalid announcement: %w", path, err)
	}
	return a, a.check(path)
}

// check rejects announcements that this version did not write.
func (a announcement) check(path string) error {
	switch {
	case a.Protocol > Protocol:
		return fmt.Errorf("%s: %w", path, fileformat.Format{Number: Protocol}.Check(a.Protocol))
	case a.Protocol > 0 && a.Protocol < Protocol:
		return fmt.Errorf("%s: %w: protocol %d of an earlier chimbuko", path, ErrGone, a.Protocol)
	}
	where, err := netip.ParseAddrPort(a.Address)
	switch {
	case err != nil:
	case !where.Addr().IsLoopback() || where.Port() == 0:
		err = fmt.Errorf("%s is not a loopback address", a.Address)
	case a.Protocol < 1 || a.Token == "" || a.PID < 1 || a.Host == "":
		err = errors.New("protocol, token, pid or host is missing")
	}
	if err != nil {
		return fmt.Errorf("%s: invalid announcement: %w", path, err)
	}
	return nil
}
