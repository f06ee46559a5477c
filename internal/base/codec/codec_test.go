package codec_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/codec"
)

var errMalformed = errors.New("malformed values")

type values struct {
	Unsigned, Fixed uint64
	Signed          int64
	Small           int32
	Float           float64
	Flag            bool
	Text            string
	List            []uint32
}

func (v *values) code(c *codec.Coder) {
	codec.Unsigned(c, &v.Unsigned, math.MaxUint64)
	v.Fixed = c.Fixed(v.Fixed)
	codec.Signed(c, &v.Signed)
	codec.Signed(c, &v.Small)
	c.Floats(&v.Float)
	c.Bool(&v.Flag)
	c.Text(&v.Text)
	codec.List(c, &v.List, func(n *uint32) { codec.Unsigned(c, n, math.MaxUint32) })
}

func (v *values) encode() []byte {
	c := new(codec.Coder)
	v.code(c)
	return c.B
}

func (v *values) decode(b []byte) error {
	c := codec.Decoder(b, errMalformed)
	v.code(&c)
	c.End()
	return c.Err
}

var examples = []values{
	{List: []uint32{}},
	{127, math.MaxUint64, -1, math.MinInt32, math.Inf(-1), true, "text", []uint32{1, 128, math.MaxUint32}},
	{1 << 14, 1, math.MinInt64, math.MaxInt32, 0.1, false, "\x00", []uint32{1<<14 - 1}},
	{math.MaxUint64, 0, math.MaxInt64, 64, -0.5, true, "", []uint32{0}},
}

func TestDecodedValuesEqualEncodedOnes(t *testing.T) {
	reused := values{List: make([]uint32, 9), Text: "old"}
	for _, want := range examples {
		if err := reused.decode(want.encode()); err != nil || !reflect.DeepEqual(reused, want) {
			t.Errorf("got %+v, %v, want %+v", reused, err, want)
		}
	}
}

func TestMalformedBytesAreRejected(t *testing.T) {
	b := examples[1].encode()
	for n := range b {
		if err := new(values).decode(b[:n]); !errors.Is(err, errMalformed) {
			t.Errorf("first %d of %d bytes: %v", n, len(b), err)
		}
	}
	if err := new(values).decode(append(b, 0)); !errors.Is(err, errMalformed) {
		t.Errorf("trailing byte: %v", err)
	}
	for name, code := range map[string]func(*codec.Coder){
		"number above its limit": func(c *codec.Coder) { c.ReadUint(99) },
		"number out of range":    func(c *codec.Coder) { c.ReadInt(-49, 49) },
		"number of another type": func(c *codec.Coder) { codec.Signed(c, new(int32)); codec.Signed(c, new(int32)) },
		"flag of another value":  func(c *codec.Coder) { c.Bool(new(bool)) },
		"list beyond the end":    func(c *codec.Coder) { c.ReadLength() },
	} {
		c := codec.Decoder([]byte{100, 0xff, 0xff, 0xff, 0xff, 0x7f}, errMalformed)
		if code(&c); !errors.Is(c.Err, errMalformed) || c.ReadUint(1) != 0 {
			t.Errorf("%s: %v", name, c.Err)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	for _, v := range examples {
		f.Add(v.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v, again values
		if v.decode(b) != nil {
			return
		}
		encoded := v.encode()
		if err := again.decode(encoded); err != nil || string(again.encode()) != string(encoded) {
			t.Errorf("%+v became %+v: %v", v, again, err)
		}
	})
}
