package sst

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// contact is the content of a contact file: the address of a writer and the number of
// its stream.
type contact struct {
	writer uint64 // a pointer in that process
	address
}

// address is the address at which a process listens.
type address struct {
	ip      netip.Addr
	host    string // without an ip
	port    uint16
	manager uint32 // a number that the process chose; 0 before ADIOS2 2.11
}

// signature is the beginning of a contact file.
const signature = "#ADIOS2-SST v0\n"

// parseContact reads the text of a contact file.
func parseContact(path string, text []byte) (contact, error) {
	bad := func(format string, args ...any) (contact, error) {
		return contact{}, fmt.Errorf("%s: not an SST contact file: %s", path, fmt.Sprintf(format, args...))
	}
	if !bytes.HasPrefix(text, []byte(signature)) {
		return bad("it does not begin with %q", strings.TrimSpace(signature))
	}
	id, list, ok := strings.Cut(strings.TrimSpace(string(text[len(signature):])), ":")
	if !ok {
		return bad("no address")
	}
	writer, err := strconv.ParseUint(strings.TrimPrefix(id, "0x"), 16, 64)
	if err != nil {
		return bad("invalid stream number %q", id)
	}
	a, err := parseAddress(list)
	if err != nil {
		if refused, ok := errors.AsType[*bp.UnsupportedError](err); ok {
			refused.Path = path
			return contact{}, refused
		}
		return bad("%v", err)
	}
	return contact{writer, a}, nil
}

// Names of attributes in an address, encoded as numbers.
const (
	atomPort      = 0x8df2c994 // IP_PORT
	atomIP        = 0x98023901 // IP_ADDR
	atomHost      = 0x67fb5ba4 // IP_HOST
	atomManager   = 0xc490e7de // CM_CMANAGER_ID
	atomTransport = 0x8edf88d5 // CM_TRANSPORT
)

// Types of attributes that are not numbers of 4 bytes.
const (
	typeLong   = 2
	typeString = 3
)

// parseAddress reads an address: a list of attributes in base64. It begins with the byte
// order, the number of attributes that are numbers of 4 bytes, the number of all others,
// and a 0.
func parseAddress(text string) (a address, err error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return a, fmt.Errorf("address is not base64: %w", err)
	}
	if len(b) < 4 {
		return a, fmt.Errorf("its address has %d bytes", len(b))
	}
	if b[0] != 0 {
		return a, &bp.UnsupportedError{What: "a stream from a big-endian machine"}
	}
	numbers, others := int(b[1]), int(b[2])
	b = b[4:]
	for range numbers {
		if len(b) < 8 {
			return a, errAddressCut
		}
		a.number(binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]))
		b = b[8:]
	}
	for range others {
		if b, err = a.other(b); err != nil {
			return a, err
		}
	}
	if a.port == 0 || !a.ip.IsValid() && a.host == "" {
		return a, errors.New("its address has no port or no host")
	}
	return a, nil
}

var errAddressCut = errors.New("its address is truncated")

func (a *address) number(atom, v uint32) {
	switch atom {
	case atomPort:
		a.port = uint16(v)
	case atomManager:
		a.manager = v
	case atomIP:
		a.ip = netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
	}
}

// other reads an attribute that is not a number of 4 bytes, and returns the rest.
func (a *address) other(b []byte) ([]byte, error) {
	if len(b) < 8 {
		return nil, errAddressCut
	}
	atom, kind := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	b = b[8:]
	switch kind {
	case typeLong:
		if len(b) < 8 {
			return nil, errAddressCut
		}
		return b[8:], nil
	case typeString:
		if len(b) < 2 {
			return nil, errAddressCut
		}
		n := int(binary.LittleEndian.Uint16(b)) // with its final 0
		padded := (2 + n + 3) &^ 3
		if len(b) < padded {
			return nil, errAddressCut
		}
		text := strings.TrimRight(string(b[2:2+n]), "\x00")
		switch {
		case atom == atomHost:
			a.host = text
		case atom == atomTransport && text != "sockets":
			return nil, &bp.UnsupportedError{
				What:   fmt.Sprintf("an SST stream over %q", text),
				Advice: advice("ControlTransport", "sockets"),
			}
		}
		return b[padded:], nil
	}
	return nil, fmt.Errorf("its address has an attribute of the unknown type %d", kind)
}

// String returns host and port.
func (a address) String() string {
	host := a.host
	if a.ip.IsValid() {
		host = a.ip.String()
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(a.port))
}

// encode returns the address in the format of parseAddress.
func (a address) encode() string {
	var v uint32
	if a.ip.Is4() {
		v = binary.BigEndian.Uint32(a.ip.AsSlice())
	}
	b := []byte{0, 3, 0, 0}
	for _, n := range []uint32{atomPort, uint32(a.port), atomIP, v, atomManager, a.manager} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// Suffix is the suffix of contact files.
const Suffix = ".sst"

// IsContact reports whether path has the suffix of a contact file.
func IsContact(path string) bool { return strings.HasSuffix(path, Suffix) }
