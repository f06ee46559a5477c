package replay_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/replay"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// FuzzReplay damages a recorded dataset and replays it. Whatever package bp
// reads to the end must come out byte for byte; of the rest as many steps as
// package bp reads.
func FuzzReplay(f *testing.F) {
	files := []string{"md.idx", "md.0", "data.0", "mmd.0"}
	f.Add(false, byte(0), uint16(64+16), []byte{0xff, 0xff}, false)
	f.Add(false, byte(2), uint16(64), []byte("[PGI\xff\xff\xff\xff\xff\xff\xff\xff"), false)
	f.Add(false, byte(2), uint16(64), []byte("[PGI\x08\x00\x00\x00\x00\x00\x00\x00"), false)
	f.Add(true, byte(0), uint16(65), []byte{0xff, 0xff, 0xff, 0x3f}, false)
	f.Add(true, byte(0), uint16(64+9+8), []byte{0xff, 0xff}, false)
	f.Add(true, byte(1), uint16(8), []byte{1, 0, 0, 0, 0, 0, 0, 0x80}, false)
	f.Add(true, byte(3), uint16(0), []byte{13}, false)
	f.Add(true, byte(3), uint16(8), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, true)
	runs := map[bool]string{false: tracetest.Recorded(f, "ring-BP4")[0], true: tracetest.Recorded(f, "ring-BP5")[0]}
	f.Fuzz(func(t *testing.T, isBP5 bool, file byte, at uint16, content []byte, rewrite bool) {
		dataset := tracetest.Copy(t, runs[isBP5])
		path := filepath.Join(dataset, files[int(file)%len(files)])
		if info, err := os.Stat(path); err != nil || int64(at)+int64(len(content)) > info.Size()+100 {
			return
		}
		if err := patch(path, int64(at), content...); err != nil {
			t.Fatal(err)
		}
		steps, end := readAll(t, dataset)
		s := newStage(t)
		s.cfg.Speed, s.cfg.ShiftTime = 0, rewrite
		p, err := replay.Plan(t.Context(), s.sets([]string{dataset}), s.cfg)
		if err != nil {
			return
		}
		result, err := p.Run(t.Context())
		switch {
		case rewrite: // what bp reads may still be more than BP4 can hold
		case errors.Is(end, io.EOF) && err == nil:
			sameFiles(t, filepath.Join(s.dir, filepath.Base(dataset)), dataset)
		case errors.Is(end, io.EOF) || err == nil:
			t.Errorf("reading ended with %v but the replay with %v", end, err)
		case result.Steps > steps:
			t.Errorf("%d steps were written of %d that can be read", result.Steps, steps)
		}
	})
}

// readAll returns how many steps can be read and how that ends.
func readAll(t *testing.T, dataset string) (n int, err error) {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		return 0, err
	}
	defer r.Close()
	for ; ; n++ {
		if _, err = r.Next(t.Context()); err != nil {
			return n, err
		}
	}
}
