package replay

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
)

// Here is found out how much of a data file and of the formats belongs to a
// step. Neither matters to what a finished copy holds: where something makes
// no sense, all of the file is taken to belong to the step.

// groupHead is how much of a process group must be read at most to learn its
// length and its step: the names in it are short.
const groupHead = 1024

// groupsEnd returns where in a data file of BP4 the groups of a step and of all
// before it end. A group is "[PGI", its length from there on, 'y' or 'n', the
// name of the IO, 4 bytes, the name of the step and its number.
func (d *dataFile) groupsEnd(step uint64) (int64, error) {
	f, err := os.Open(d.from)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	head := make([]byte, groupHead)
	for pos := max(d.done, headerSize); ; {
		n, err := f.ReadAt(head, pos)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		size, number, ok := parseGroup(head[:n])
		if !ok || size > math.MaxInt64-pos {
			return math.MaxInt64, nil
		}
		if uint64(number) > step {
			return pos, nil
		}
		pos += size
	}
}

// parseGroup returns the size of a process group and the number of its step.
func parseGroup(b []byte) (size int64, step uint32, ok bool) {
	const mark = "[PGI"
	at := len(mark) + 8 + 1
	if len(b) < at+2 || string(b[:len(mark)]) != mark {
		return 0, 0, false
	}
	length := binary.LittleEndian.Uint64(b[len(mark):])
	if length < 8 || length > math.MaxInt64-uint64(len(mark)) {
		return 0, 0, false
	}
	at += 2 + int(binary.LittleEndian.Uint16(b[at:])) + 4
	if len(b) < at+2 {
		return 0, 0, false
	}
	at += 2 + int(binary.LittleEndian.Uint16(b[at:]))
	if len(b) < at+4 {
		return 0, 0, false
	}
	return int64(length) + int64(len(mark)), binary.LittleEndian.Uint32(b[at:]), true
}

// formatID names a format of BP5.
type formatID [12]byte

// formats are those whose descriptions have been copied.
type formats map[formatID]bool

// growFormats copies the descriptions of the formats that the step of r is the
// first to use.
func (c *copier) growFormats(r *record) error {
	if c.mmd == nil {
		return nil
	}
	info, err := os.Stat(c.mmd.from)
	if err != nil || c.mmd.done >= info.Size() {
		return err
	}
	ids, err := stepFormats(c.meta.from, r)
	if err != nil {
		return err
	}
	if ids == nil {
		return c.mmd.growTo(math.MaxInt64, nil)
	}
	if c.formats == nil {
		c.formats = make(formats)
	}
	for _, id := range ids {
		for !c.formats[id] && c.mmd.done < info.Size() {
			if err := c.growFormat(); err != nil {
				return err
			}
		}
	}
	return nil
}

// growFormat copies the next description: length of the id, length of the
// rest, id, rest; each is a write of its own.
func (c *copier) growFormat() error {
	var head [16]byte
	var id formatID
	at := c.mmd.done
	err := readAt(c.mmd.from, head[:], at)
	if err == nil {
		err = readAt(c.mmd.from, id[:], at+int64(len(head)))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	idSize, size := binary.LittleEndian.Uint64(head[:]), binary.LittleEndian.Uint64(head[8:])
	if err != nil || idSize != uint64(len(id)) || size > math.MaxInt32 {
		return c.mmd.growTo(math.MaxInt64, nil)
	}
	for _, n := range []int64{8, 8, int64(idSize), int64(size)} {
		at += n
		if err := c.mmd.growTo(at, nil); err != nil {
			return err
		}
	}
	c.formats[id] = true
	return nil
}

// stepFormats returns the formats of a step's metadata and attributes, or nil
// where they cannot be told. The metadata are their size, the sizes of a block
// and of an attribute block for each writer, and these blocks, each of which
// begins with its format.
func stepFormats(meta string, r *record) ([]formatID, error) {
	f, err := os.Open(meta)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	size := 8 + 16*int64(r.writers)
	if size > r.metaEnd-r.metaPos {
		return nil, nil
	}
	sizes := make([]byte, size)
	if _, err := f.ReadAt(sizes, r.metaPos); err != nil {
		return nil, ignoreEOF(err)
	}
	var ids []formatID
	at := r.metaPos + size
	for sizes = sizes[8:]; len(sizes) > 0; sizes = sizes[8:] {
		n := binary.LittleEndian.Uint64(sizes)
		if n == 0 {
			continue
		}
		var id formatID
		if n < uint64(len(id)) || n > uint64(r.metaEnd-at) {
			return nil, nil
		}
		if _, err := f.ReadAt(id[:], at); err != nil {
			return nil, ignoreEOF(err)
		}
		ids = append(ids, id)
		at += int64(n)
	}
	return ids, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
