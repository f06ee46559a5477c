package bus

import (
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/throttle"
)

// repeatAfter is how long a line that others cause is not said again, but counted.
const repeatAfter = 10 * time.Second

// serverLog takes the server's lines: warnings and errors go to the log, and what
// keeps it from starting to fatal, the first of them. What a client causes is said
// once in a while for each address, with how often it happened.
type serverLog struct {
	log   *slog.Logger
	fatal chan<- error
	lines *throttle.Lines
	stuck chan struct{} // gets something when a stream takes nothing more
}

func newServerLog(log *slog.Logger, fatal chan<- error) *serverLog {
	return &serverLog{log: orDiscard(log), fatal: fatal, lines: throttle.New(repeatAfter), stuck: make(chan struct{}, 1)}
}

// aboutClient is how lines begin that a client causes: address and number, then what
// it says of itself.
var aboutClient = regexp.MustCompile(`^(\S+) - [a-z]+:\d+ - `)

// Warnf takes a warning.
func (l *serverLog) Warnf(format string, v ...any) { l.take(slog.LevelWarn, format, v...) }

// Errorf takes an error.
func (l *serverLog) Errorf(format string, v ...any) { l.take(slog.LevelError, format, v...) }

// Noticef takes what is neither, which is left out but for clients that are too slow.
func (l *serverLog) Noticef(format string, v ...any) {
	if strings.Contains(format, "Slow Consumer") {
		l.take(slog.LevelWarn, format, v...)
	}
}

func (l *serverLog) take(level slog.Level, format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	about := aboutClient.FindStringSubmatch(text)
	if about == nil {
		if isStuck(text) {
			select {
			case l.stuck <- struct{}{}:
			default: // it is known
			}
		}
		l.say(level, text, text)
		return
	}
	text = text[len(about[0]):]
	if strings.Contains(format, "authentication error") {
		return // Check has said why
	}
	host := about[1]
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	kind, _, _ := strings.Cut(text, " (")
	l.say(level, host+" "+chosen.ReplaceAllString(kind, ""), "the message server has trouble with a client: "+text, "address", about[1])
}

// chosen is what clients choose of a line: names and numbers.
var chosen = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\d+`)

// refuse says that a client may not connect.
func (l *serverLog) refuse(from net.Addr, why string, more ...any) {
	address := "unknown"
	if from != nil {
		address = from.String()
	}
	l.warn(hostOf(from)+" "+why, "the message server refuses a client: "+why, append([]any{"address", address}, more...)...)
}

func (l *serverLog) warn(key, text string, more ...any) { l.say(slog.LevelWarn, key, text, more...) }

func (l *serverLog) say(level slog.Level, key, text string, more ...any) {
	due, left := l.lines.Say(key, time.Now())
	if !due {
		return
	}
	if left > 0 {
		more = append(more, "left_out", left)
	}
	l.write(level, text, more...)
}

func (l *serverLog) write(level slog.Level, text string, more ...any) {
	if level < slog.LevelError {
		l.log.Warn(text, more...)
		return
	}
	l.log.Error(text, more...)
}

// tellLeft says how often lines were left out.
func (l *serverLog) tellLeft(left map[string]int) {
	for key, n := range left {
		l.log.Warn("the same was said again", "what", key, "times", n)
	}
}

// Fatalf does not end the process: the server goes on without what it could not
// do, until start closes it.
func (l *serverLog) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Errorf(format, v...):
	default:
	}
}

// Debugf leaves it out.
func (*serverLog) Debugf(string, ...any) {}

// Tracef leaves it out.
func (*serverLog) Tracef(string, ...any) {}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
