package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// traceReader is an open dataset or stream.
type traceReader interface {
	tau.Source
	Close() error
	Engine() string
	Version() string
	Active() bool
	Modified() time.Time
}

// openTrace opens the dataset or live stream at path. A stream is always
// followed.
func openTrace(path string, opt bp.Options, connect time.Duration) (traceReader, error) {
	if !sst.IsContact(path) {
		return bp.Open(path, opt)
	}
	o := sst.Default()
	o.ConnectTimeout, o.Tally = connect, opt.Tally
	if opt.Follow {
		o.Idle = opt.Idle
	}
	r, err := sst.Open(path, o)
	if err != nil {
		return nil, err
	}
	return stream{r}, nil
}

// stream is a live stream as a traceReader. It has neither a version nor times.
type stream struct{ *sst.Reader }

func (stream) Version() string     { return "" }
func (stream) Modified() time.Time { return time.Time{} }

// registerConnect adds the flag of commands that read live streams.
func registerConnect(f *pflag.FlagSet, timeout *time.Duration) {
	f.DurationVar(timeout, "connect-timeout", sst.Default().ConnectTimeout,
		"how long to wait for the contact file of a live stream, and for the program behind it; 0 is for ever")
}
