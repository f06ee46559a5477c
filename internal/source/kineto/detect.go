package kineto

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"os"
)

// headSize is the number of bytes by which a format is recognized.
const headSize = 1 << 16

// IsTrace reports whether a file is Chrome trace JSON, plain or compressed with gzip, by its
// content.
func IsTrace(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read from
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	var in io.Reader = bufio.NewReaderSize(f, 4096)
	if magic, _ := in.(*bufio.Reader).Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if in, err = gzip.NewReader(in); err != nil {
			return false
		}
	}
	head := make([]byte, headSize)
	n, _ := io.ReadFull(in, head) // the rest of a damaged file may still be recognized
	return isTrace(head[:n])
}

// isTrace reports whether a text begins like a trace: a list of events, or an object with one.
func isTrace(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("[")):
		rest := bytes.TrimLeft(head[1:], " \t\r\n")
		return bytes.HasPrefix(rest, []byte("{")) && bytes.Contains(rest, []byte(`"ph"`))
	case bytes.HasPrefix(head, []byte("{")):
		for _, key := range []string{`"traceEvents"`, `"deviceProperties"`, `"distributedInfo"`, `"displayTimeUnit"`} {
			if bytes.Contains(head, []byte(key)) {
				return true
			}
		}
	}
	return false
}
