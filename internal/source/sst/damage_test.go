package sst

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
)

// TestDamagedStreams reads mutations of recorded streams. A stream that ends properly has all
// its steps; one that lost some ends with an error.
func TestDamagedStreams(t *testing.T) {
	for _, name := range captures {
		t.Run(name, func(t *testing.T) {
			stream := recorded(t, name).writer
			present, lost, err := readDamaged(stream)
			if present == 0 || lost != (tally.Tally{}) || !errors.Is(err, io.EOF) {
				t.Fatalf("the undamaged stream: %d steps, lost %v, %v", present, lost, err)
			}
			other := captures[0]
			if name == other {
				other = captures[1]
			}
			foreign := recorded(t, other).writer
			others, _, _ := readDamaged(foreign)
			damage.Run(t, damage.Format{
				Files: damage.Files{"stream": stream}, Others: []damage.Files{{"stream": foreign}}, Sample: 20,
				Read: func(files damage.Files) error {
					steps, lost, err := readDamaged(files["stream"])
					if err == nil {
						return errors.New("the stream has no end")
					}
					if errors.Is(err, io.EOF) && !errors.Is(err, ErrCut) && steps < min(present, others) && lost == (tally.Tally{}) {
						return fmt.Errorf("%d of %d steps, without a reported loss", steps, present)
					}
					return nil
				},
			})
		})
	}
}

// readDamaged returns the number of steps in the bytes of a writer, and the error at the end.
func readDamaged(b []byte) (steps int, lost tally.Tally, err error) {
	r := &Reader{path: "x.sst", opt: Default(), wake: make(chan struct{}, 1), stream: bp.NewStream("x.sst"), last: -1}
	r.opt.Queue, r.opt.Tally = 1<<40, &lost // no one waits
	r.room.L = &r.mu
	c := newTestConn(b)
	c.frames.pool = &r.pool
	r.conns, r.resp = []*conn{c}, writerResponse{writers: []writerInfo{{control: 1, data: 2}}}
	r.receive(c)
	for ; ; steps++ {
		s, err := r.take()
		if err != nil {
			return steps, lost, err
		}
		for i := range s.Variables {
			v := &s.Variables[i]
			for j := range v.Blocks {
				if size := v.Blocks[j].Size(); size <= int64(len(b)) { // larger ones are an error, or refused
					_, _ = s.Bytes(v, &v.Blocks[j], make([]byte, size), 0) // must not panic
				}
			}
		}
	}
}

// TestDamagedSavedAttributes decodes mutations of a file of saved attributes. It yields the steps
// before the damage.
func TestDamagedSavedAttributes(t *testing.T) {
	var b []byte
	for i := range 20 {
		s := savedStep{Stream: "stream", Step: i, Attributes: []bp.Attribute{{Name: fmt.Sprint("timer ", i), Values: []string{"main"}}}}
		encoded, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, encoded...)
	}
	damage.Run(t, damage.Format{Files: damage.Files{"saved": b}, Read: func(files damage.Files) error {
		steps, n := decodeSaved(files["saved"])
		if n > len(files["saved"]) || len(steps) > n {
			return fmt.Errorf("%d steps in %d bytes", len(steps), n)
		}
		return nil
	}})
}
