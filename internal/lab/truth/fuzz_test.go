package truth

import (
	"bufio"
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// FuzzRead reads any bytes as a file. Each line that can be read can be written, and
// reads back the same; and a score adds up.
func FuzzRead(f *testing.F) {
	const trouble = `{"trouble":"a","kind":"slow-call","each":true,"program":0,"hosts":["n"],"ranks":[1],"functions":["f"],"from_us":1,"to_us":0,"text":"x"}` + "\n"
	const call = `{"call":"1:2:3","trouble":"a","role":"cause","program":0,"rank":1,"thread":0,"function":"f","entry_us":5,"exit_us":9,"injected_us":3}` + "\n"
	f.Add([]byte(trouble + call + strings.ReplaceAll(call, "cause", "victim")))
	f.Add([]byte(strings.ReplaceAll(trouble, "true", "false") + call + strings.ReplaceAll(call, `1:2:3`, `1:2:4`)))
	f.Add([]byte(trouble + strings.ReplaceAll(trouble, `"a"`, `"b"`) + call + strings.ReplaceAll(call, `"a"`, `"b"`)))
	f.Add([]byte("\n" + call + trouble + "{\"trouble\":\"\\ud800\xff\"}"))
	f.Add([]byte("1 1 f 5 9 3\nTRUTH kind=host_sleep func=g(int, int) start_us=5 end_us=9 rank=3\nTRUTH kind=gpu_slow kernel=k launch_us=5\n"))
	const record = `{"kind":"begin","pids":{"0":7,"1":8}}` + "\n" + `{"kind":"delay","rank":1,"start":4,"end":9,"wait_us":3}` + "\n" +
		`{"kind":"stall","rank":1,"start":5,"end":9,"ms":0.004}` + "\n" + `{"kind":"slow","rank":0,"start":5,"end":9,"stopped_share":0.4}` + "\n"
	f.Add([]byte(record + `{"kind":"iohog","rank":-1,"start":5,"end":9}` + "\n" + trouble + call))
	f.Fuzz(func(t *testing.T, content []byte) {
		for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
			again(t, lines.Bytes())
		}
		r := newReader()
		if r.file("truth", bytes.NewReader(content)) != nil {
			return
		}
		truth, err := r.finish()
		if err != nil {
			return
		}
		m := truth.Matcher()
		flags := []Flag{
			{Rank: 1, Event: "1:2:3", Function: "f", Entry: 5, Exit: 9, Found: 9},
			{Rank: 1, Event: "?", Function: "f()", Entry: 6, Found: AtEnd},
		}
		for id := range truth.byEvent {
			flags = append(flags, Flag{
				Program: id.program, Rank: id.rank, Event: trace.EventID{Rank: id.rank, Step: int(id.step), Row: id.row}.String(),
			})
		}
		var found []Report
		for i := range flags {
			flags[i].Finding, flags[i].Lost = i+1, 3
			m.Add(&flags[i])
			found = append(found, Report{Number: i + 1, Kind: Outlier, Function: "f", Ranks: []trace.Rank{1}, To: 9, LostOwn: 4, Listed: true})
		}
		s := m.Score(10)
		if s.Found+s.Missed != s.Planted || s.Found+s.Excused+s.Other != s.Flagged || s.Flagged != len(flags) ||
			len(s.MissedList) != s.Missed || min(s.Found, s.Missed, s.Excused, s.Other) < 0 || len(s.Troubles) != len(truth.Troubles) {
			t.Fatalf("it does not add up: %+v", s)
		}
		if e := s.External; e != nil && (e.Named > e.Found || e.Found > e.Stops || e.Unexplained > e.Outside || e.Outside > s.Flagged) {
			t.Fatalf("it does not add up: %+v", e)
		}
		for _, x := range m.Findings(found, map[trace.Program]int{0: 2}).Troubles {
			if x.Covered < 0 || x.Covered > max(0, x.Lost) || x.Named && x.Finding == 0 {
				t.Fatalf("it does not add up: %+v", x)
			}
		}
		for i := range s.Troubles {
			if c := &s.Troubles[i]; c.VictimsFlagged != c.Victims || c.Found < c.Planted || c.Seen != (c.Found > 0) {
				t.Fatalf("all calls are flagged, but not here: %+v", c)
			}
		}
	})
}

// again writes and reads a line, if it can be read.
func again(t *testing.T, line []byte) {
	d, err := decode(line)
	if err != nil || d.external != nil {
		return
	}
	trouble, call := d.trouble, d.call
	var b bytes.Buffer
	w := NewWriter(&b)
	if call != nil {
		w.Call(call)
	} else {
		w.Trouble(trouble)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	d, err = decode(b.Bytes())
	if err != nil || !reflect.DeepEqual(trouble, d.trouble) || !reflect.DeepEqual(call, d.call) || bytes.Count(b.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("%s became %s (%v)", line, b.Bytes(), err)
	}
}
