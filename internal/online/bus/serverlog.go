package bus

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/throttle"
)

// repeatAfter is how long repetitions of a log line are counted instead of written.
const repeatAfter = 10 * time.Second

// serverLog is the server's logger: it writes warnings and errors to the log, and sends
// the first fatal error to fatal. Lines that a client causes are limited by address.
type serverLog struct {
	log   *slog.Logger
	fatal chan error
	lines *throttle.Lines
	stuck chan struct{} // receives when a stream is disabled
}

func newServerLog(log *slog.Logger) *serverLog {
	return &serverLog{log: orDiscard(log), fatal: make(chan error, 1), lines: throttle.New(repeatAfter), stuck: make(chan struct{}, 1)}
}

// aboutClient matches the start of lines that a client causes: address and number.
var aboutClient = regexp.MustCompile(`^(\S+) - [a-z]+:\d+ - `)

// Warnf writes a warning.
func (l *serverLog) Warnf(format string, v ...any) { l.take(slog.LevelWarn, format, v...) }

// Errorf writes an error.
func (l *serverLog) Errorf(format string, v ...any) { l.take(slog.LevelError, format, v...) }

// Noticef writes notices about slow clients and drops all others.
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
			default: // reported already
			}
		}
		l.write(level, text, text)
		return
	}
	text = text[len(about[0]):]
	if strings.Contains(format, "authentication error") {
		return // Check has logged the reason
	}
	kind, _, _ := strings.Cut(text, " (")
	l.write(level, hostOf(about[1])+" "+variablePart.ReplaceAllString(kind, ""), "message server client: "+text, "address", about[1])
}

// variablePart matches the parts of a line that a client can vary: names and numbers.
var variablePart = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\d+`)

// refuse logs that a client may not connect.
func (l *serverLog) refuse(from, reason string, more ...any) {
	l.warn(hostOf(from)+" "+reason, "message server rejects a client: "+reason, append([]any{"address", from}, more...)...)
}

func (l *serverLog) warn(key, text string, more ...any) { l.write(slog.LevelWarn, key, text, more...) }

func (l *serverLog) write(level slog.Level, key, text string, more ...any) {
	due, left := l.lines.Allow(key, time.Now())
	if !due {
		return
	}
	if left > 0 {
		more = append(more, "left_out", left)
	}
	if level < slog.LevelError {
		l.log.Warn(text, more...)
	} else {
		l.log.Error(text, more...)
	}
}

// writeRepeats logs how often lines were repeated.
func (l *serverLog) writeRepeats(repeats map[string]int) {
	for key, n := range repeats {
		l.log.Warn("message repeated", "what", key, "times", n)
	}
}

// Fatalf does not end the process: start returns the error and closes the server.
func (l *serverLog) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Errorf(format, v...):
	default:
	}
}

// Debugf does nothing.
func (*serverLog) Debugf(string, ...any) {}

// Tracef does nothing.
func (*serverLog) Tracef(string, ...any) {}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
