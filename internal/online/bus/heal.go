package bus

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A server whose disk was full takes no messages for its streams any more, not even
// when there is room again. All that it does about it is to say so.

// isStuck reports whether a line of the server says that a stream takes nothing more.
func isStuck(line string) bool {
	line = strings.ToLower(line)
	return strings.Contains(line, "critical write error") || strings.Contains(line, "will be disabled")
}

const (
	healEvery = time.Second
	healRoom  = 8 << 20 // bytes that must fit on the disk
)

// heal starts the server again, at the same address and with the same files, as soon as
// there is room on its disk. Clients come back by themselves. It gives up when ctx ends.
func (s *Server) heal(ctx context.Context) {
	s.log.warn("stuck", "the disk of the message server is full or broken; it goes on when there is room, and clients keep what they have until then")
	for tick := time.NewTicker(healEvery); ; {
		if hasRoom(s.dir) {
			break
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	conf := s.conf.Clone()
	conf.Port = s.port
	for {
		again, err := start(ctx, conf, s.log, s.fatal)
		if err == nil {
			s.nats = again
			s.log.warn("healed", "the message server was started again")
			break
		}
		s.log.warn("heal", "the message server cannot be started again", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(healEvery):
		}
	}
	select {
	case <-s.log.stuck: // what it said before
	default:
	}
}

// hasRoom reports whether something can be written in a directory.
func hasRoom(dir string) bool {
	path := filepath.Join(dir, "room")
	err := os.WriteFile(path, make([]byte, healRoom), 0o600)
	_ = os.Remove(path) // also what was written in part
	return err == nil
}
