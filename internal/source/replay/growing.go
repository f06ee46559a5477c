package replay

import (
	"errors"
	"io"
	"os"
)

// growing is a file of a dataset that becomes a copy of a recorded one, from
// its first byte on. Neither is held open between two calls, so that thousands
// of datasets can grow side by side.
type growing struct {
	from, to string
	done     int64 // bytes that are copied
	c        *copier
}

// create makes the copy, empty.
func (g *growing) create() error {
	f, err := os.OpenFile(g.to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// growTo copies what is missing up to the position end; what the recorded file
// does not have is not waited for. patch, if there is one, may change the
// bytes, of which the first lies at its position.
func (g *growing) growTo(end int64, patch func(b []byte, pos int64)) (err error) {
	if end <= g.done {
		return nil
	}
	from, err := os.Open(g.from)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read from: nothing can be lost
	info, err := from.Stat()
	if err != nil {
		return err
	}
	end = min(end, info.Size())
	if end <= g.done {
		return nil
	}
	to, err := os.OpenFile(g.to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for g.done < end {
		b := g.c.buffer()
		n, err := from.ReadAt(b[:min(int64(len(b)), end-g.done)], g.done)
		if n == 0 {
			return err
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if patch != nil {
			patch(b[:n], g.done)
		}
		if _, err := to.WriteAt(b[:n], g.done); err != nil {
			return err
		}
		g.done += int64(n)
		g.c.wrote(int64(n))
	}
	return nil
}
