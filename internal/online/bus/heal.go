package bus

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
)

// A server whose disk was full accepts no more messages for its streams, even when
// there is room again. It only logs this.

// isStuck reports whether a log line of the server reports a disabled stream.
func isStuck(line string) bool {
	line = strings.ToLower(line)
	return strings.Contains(line, "critical write error") || strings.Contains(line, "will be disabled")
}

const (
	healEvery = time.Second
	healRoom  = 8 << 20 // bytes that must be free on the disk
)

// heal restarts the server, at the same address and with the same files, as soon as
// there is room on its disk. Clients reconnect by themselves. It gives up when ctx ends.
func (s *Server) heal(ctx context.Context) {
	s.log.warn("stuck", "the disk of the message server is full or broken; waiting for room, clients keep their messages until then")
	for !hasRoom(s.conf.StoreDir) {
		if wait.Sleep(ctx, healEvery) != nil {
			return
		}
	}
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	conf := s.conf.Clone()
	conf.Port = s.port
	for {
		again, err := start(ctx, conf, s.log)
		if err == nil {
			s.nats = again
			s.log.warn("healed", "restarted the message server")
			break
		}
		s.log.warn("heal", "cannot restart the message server, retrying", "error", err)
		if wait.Sleep(ctx, healEvery) != nil {
			return
		}
	}
	select {
	case <-s.log.stuck: // from before the restart
	default:
	}
}

// hasRoom reports whether a directory has room for healRoom bytes.
func hasRoom(dir string) bool {
	path := filepath.Join(dir, "room")
	err := os.WriteFile(path, make([]byte, healRoom), 0o600)
	_ = os.Remove(path) // also after a partial write
	return err == nil
}
