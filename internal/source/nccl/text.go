package nccl

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/chrome"
)

// maxLine is the length of the longest line. Lines with the times of 64 channels have about 20 kB.
const maxLine = 1 << 20

const blockSize = 1 << 18

// text returns the lines of a file that may grow.
type text struct {
	path    string
	file    *os.File
	buf     []byte // read, and not yet returned
	room    []byte // of buf
	offset  int64  // of buf in the file
	at      int64  // of the last line
	number  int64  // of the last line
	skipped bool   // the beginning of a line that is too long
	tally   *tally.Tally
	gaps    []chrome.Gap
	damages int64
	err     error // the first
}

// next returns the next complete line, or io.EOF if the file has none yet.
func (t *text) next() ([]byte, error) {
	for {
		if n := bytes.IndexByte(t.buf, '\n'); n >= 0 {
			line := t.buf[:n]
			t.at = t.offset
			t.number++
			t.advance(n + 1)
			if t.skipped {
				t.skipped = false
				continue
			}
			return line, nil
		}
		if len(t.buf) >= maxLine {
			if !t.skipped {
				t.damage(t.number+1, t.offset, int64(len(t.buf)), "the line is too long")
			}
			t.skipped = true
			t.advance(len(t.buf))
		}
		if err := t.fill(); err != nil {
			return nil, err
		}
	}
}

// rest returns the bytes after the last complete line.
func (t *text) rest() []byte {
	line := t.buf
	t.at = t.offset
	t.number++
	t.advance(len(line))
	if t.skipped {
		return nil
	}
	return line
}

func (t *text) advance(n int) {
	t.buf = t.buf[n:]
	t.offset += int64(n)
}

// fill reads more bytes. Without any it opens and allocates nothing.
func (t *text) fill() error {
	info, err := os.Stat(t.path)
	if err != nil {
		return err
	}
	switch read := t.offset + int64(len(t.buf)); {
	case info.Size() < read:
		return errTruncated
	case info.Size() == read:
		return io.EOF
	}
	if t.file == nil {
		if t.file, err = os.Open(t.path); err != nil {
			return err
		}
	}
	if size := 2 * max(blockSize/2, len(t.buf)); cap(t.room) < size {
		t.room = make([]byte, size)
	}
	n := copy(t.room, t.buf)
	more, err := t.file.ReadAt(t.room[n:cap(t.room)], t.offset+int64(n))
	if t.buf = t.room[:n+more]; more > 0 {
		return nil
	}
	return err
}

// release closes the file and frees memory.
func (t *text) release() {
	if t.file != nil {
		_ = t.file.Close() // only read from
	}
	t.file, t.buf, t.room = nil, nil, nil
}

// damage counts a part that cannot be read.
func (t *text) damage(number, at, length int64, why string) {
	t.tally.Add(tally.PartUnreadable, 1)
	t.damages++
	if len(t.gaps) < chrome.MaxGaps {
		t.gaps = append(t.gaps, chrome.Gap{Kind: tally.PartUnreadable, Offset: at, Length: length})
	}
	if t.err == nil {
		t.err = fmt.Errorf("%s: line %d, byte %d: %s", t.path, number, at, why)
	}
}

// failure returns the first damage, or nil.
func (t *text) failure() error {
	if t.damages > 1 {
		return fmt.Errorf("%w (and %d others)", t.err, t.damages-1)
	}
	return t.err
}
