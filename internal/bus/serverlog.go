package bus

import (
	"fmt"
	"log/slog"
)

// serverLog takes the server's lines: warnings and errors go to the log, and what
// keeps it from starting to fatal, the first of them.
type serverLog struct {
	log   *slog.Logger
	fatal chan<- error
}

func newServerLog(log *slog.Logger, fatal chan<- error) *serverLog {
	return &serverLog{log: orDiscard(log), fatal: fatal}
}

func (l *serverLog) Warnf(format string, v ...any)  { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l *serverLog) Errorf(format string, v ...any) { l.log.Error(fmt.Sprintf(format, v...)) }

// Fatalf does not end the process: the server goes on without what it could not
// do, until start closes it.
func (l *serverLog) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Errorf(format, v...):
	default:
	}
}

func (*serverLog) Noticef(string, ...any) {}
func (*serverLog) Debugf(string, ...any)  {}
func (*serverLog) Tracef(string, ...any)  {}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
