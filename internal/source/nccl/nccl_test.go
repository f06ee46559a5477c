package nccl_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/nccl"
)

// recorded are the examples of the documentation of NCCL Inspector, as lines.
const (
	plain = `{"header":{"id":"0x7f8c496ae9f661","rank":2,"n_ranks":8,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0",` +
		`"git_rev":"","rec_mechanism":"profiler_plugin","dump_timestamp_us":1748030377748202,"hostname":"example-hostname","pid":1639453},` +
		`"coll_perf":{"coll":"AllReduce","coll_sn":1407,"coll_msg_size_bytes":17179869184,"coll_exec_time_us":61974,` +
		`"coll_algobw_gbs":277.210914,"coll_busbw_gbs":485.119099}}` + "\n"
	verbose = `{"header":{"id":"0xe62dedaa97644a","rank":4,"n_ranks":8,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0",` +
		`"git_rev":"9019a1912-dirty","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1752867229276385,` +
		`"hostname":"example-hostname","pid":438776},"coll_perf":{"coll":"ReduceScatter","coll_sn":1231,"coll_msg_size_bytes":2147483648,` +
		`"coll_exec_time_us":41057,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":418.439467,"coll_busbw_gbs":366.134533,` +
		`"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[{"channel_id":0,"kernel_start_sn":3,"kernel_stop_sn":48,` +
		`"kernel_record_sn":47}]},"event_trace_ts":{"coll_start_ts":1752867229235059,"coll_stop_ts":1752867229235064,"kernel_events":[` +
		`{"channel_id":0,"kernel_start_ts":1752867229235181,"kernel_stop_ts":1752867229275811,"kernel_record_ts":1752867229275811}]}}}` + "\n"
)

// op is an operation of a log. Times are microseconds after one.
type op struct {
	comm            string
	rank, size      int
	name            string
	sn              int
	bytes           int
	start, took     int64 // start 0: unknown
	dumped          int64
	message, future bool
}

const epoch = 1_700_000_000_000_000

func (o op) line(host string, pid int) string {
	part, times := "coll", ""
	if o.message {
		part = "p2p"
	}
	if o.start != 0 {
		times = fmt.Sprintf(`,"event_trace_ts":{"%s_start_ts":%d,"kernel_events":[{"kernel_start_ts":%d},{"kernel_start_ts":%d}]}`,
			part, epoch+o.start-9, epoch+o.start+1, epoch+o.start)
	}
	perf := part
	if o.future {
		return fmt.Sprintf(`{"header":{"id":%q,"rank":%d,"n_ranks":%d,"nnodes":1},"metadata":{"dump_timestamp_us":1},"new_perf":{"x":1}}`+"\n",
			o.comm, o.rank, o.size)
	}
	return fmt.Sprintf(`{"header":{"id":%q,"comm_name":"unknown","rank":%d,"n_ranks":%d,"nnodes":1},"metadata":{"dump_timestamp_us":%d,`+
		`"hostname":%q,"pid":%d},"%s_perf":{"%[7]s":%q,"%[7]s_sn":%[9]d,"%[7]s_msg_size_bytes":%[10]d,"%[7]s_exec_time_us":%[11]d,`+
		`"%[7]s_busbw_gbs":1.5%[12]s}}`+"\n",
		o.comm, o.rank, o.size, epoch+o.dumped, host, pid, perf, o.name, o.sn, o.bytes, o.took, times)
}

func write(t testing.TB, dir, host string, pid int, ops ...op) string {
	t.Helper()
	var b strings.Builder
	for _, o := range ops {
		b.WriteString(o.line(host, pid))
	}
	return writeText(t, filepath.Join(dir, fmt.Sprintf("%s-pid%d.log", host, pid)), b.String())
}

func writeText(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func heads(t testing.TB, paths ...string) (files []*nccl.File) {
	t.Helper()
	for _, p := range paths {
		f, err := nccl.ReadHead(p)
		if err != nil || f == nil {
			t.Fatalf("%s: got %v, %v", p, f, err)
		}
		files = append(files, f)
	}
	var job nccl.Job
	job.Add(files)
	return files
}

// calls returns the events of all steps as text, one line a call, and the error at the end.
func calls(t testing.TB, r *nccl.Reader) (text string, end error) {
	t.Helper()
	var b strings.Builder
	for {
		s, err := r.Next(t.Context())
		if err != nil {
			return b.String(), err
		}
		appendStep(&b, r.Names(), s)
	}
}

func appendStep(b *strings.Builder, names *trace.Names, s *trace.Step) {
	for _, batch := range s.Batches {
		for i := 0; i < len(batch.Events); i += 2 {
			enter, exit := batch.Events[i], batch.Events[i+1]
			name, _ := names.Func(batch.Rank, enter.Func())
			fmt.Fprintf(b, "%d.%d.%d %d-%d %s\n", s.Index, batch.Rank, batch.Thread, enter.Time-epoch, exit.Time-epoch, name)
		}
	}
}

func TestRecordsOfTheDocumentation(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		plain:   "48030377686228-48030377748202 ncclKernel_AllReduce [17179869184 bytes, 8 ranks]\n",
		verbose: "52867229235181-52867229276238 ncclKernel_ReduceScatter [2147483648 bytes, 8 ranks]\n",
	} {
		path := writeText(t, filepath.Join(dir, "a.log"), text)
		if !nccl.IsLog(path) {
			t.Error("not recognized")
		}
		f := heads(t, path)[0]
		var got []nccl.Collective
		r := f.Steps(0, nccl.Options{OnCollective: func(c *nccl.Collective) { got = append(got, *c) }})
		text, err := calls(t, r)
		if !errors.Is(err, io.EOF) || !strings.HasSuffix(text, want) || f.Host != "example-hostname" {
			t.Errorf("got %q, %v, %+v", text, err, f)
		}
		if len(got) != 1 || got[0].Timed != f.Timed || got[0].Size != 8 {
			t.Errorf("got %+v", got)
		}
		if f.Timed && (got[0].Bytes != 8<<31 || got[0].Group != "0xe62dedaa97644a" || f.Ranks[0] != 4) {
			t.Errorf("got %+v of rank %d", got[0], f.Ranks[0])
		}
	}
}

func TestOperationsOfSeveralCommunicators(t *testing.T) {
	path := write(t, t.TempDir(), "n1", 7,
		op{comm: "0xa", size: 4, rank: 1, name: "AllReduce", sn: 4, bytes: 100, start: 1000, took: 500, dumped: 2000},
		op{comm: "0xa", size: 4, rank: 1, name: "AllReduce", sn: 7, bytes: 100, start: 3000, took: 100, dumped: 4000},
		op{comm: "0xb", size: 2, rank: 0, name: "AllGather", sn: 4, bytes: 50, start: 1200, took: 600, dumped: 4000},
		op{comm: "0xb", size: 2, future: true},
		op{comm: "0xb", size: 2, rank: 0, name: "Send", sn: 1, bytes: 60, start: 3100, took: 50, dumped: 4000, message: true},
		op{comm: "0xa", size: 4, rank: 1, name: "AllReduce", sn: 8, bytes: 100, start: 1_000_500, took: 100, dumped: 1_001_000})
	var counts tally.Tally
	r := heads(t, path)[0].Steps(0, nccl.Options{Tally: &counts})
	got, err := calls(t, r)
	const want = `0.1.0 1000-1500 ncclKernel_AllReduce [100 bytes, 4 ranks]
0.1.0 1800-3000 between collectives
0.1.0 3000-3100 ncclKernel_AllReduce [100 bytes, 4 ranks]
0.1.0 3100-3150 ncclKernel_SendRecv [Send, 60 bytes, 2 ranks]
0.1.1 1200-1800 ncclKernel_AllGather [50 bytes, 2 ranks]
1.1.0 3150-1000500 between collectives
1.1.0 1000500-1000600 ncclKernel_AllReduce [100 bytes, 4 ranks]
`
	if got != want || !errors.Is(err, io.EOF) {
		t.Errorf("got %v\n%swant\n%s", err, got, want)
	}
	if counts.Count(tally.CollectiveUnrecorded) != 2 || counts.Count(tally.RecordsSkipped) != 1 {
		t.Errorf("got %v", counts.Notes())
	}
}

// TestOperationsWithoutTimes places an operation at its dump, and those of one dump evenly before it.
func TestOperationsWithoutTimes(t *testing.T) {
	one := func(sn int, took, dumped int64) op {
		return op{comm: "0xa", size: 2, name: "AllReduce", sn: sn, bytes: 8, took: took, dumped: dumped}
	}
	path := write(t, t.TempDir(), "n1", 7, one(0, 100, 1000), one(1, 300, 5000),
		one(2, 100, 8000), one(3, 200, 8001), one(4, 300, 8002), one(5, 50, 1_000_000), one(6, 1_000_000, 1_000_010))
	got, _ := calls(t, heads(t, path)[0].Steps(0, nccl.Options{}))
	const name = "ncclKernel_AllReduce [8 bytes, 2 ranks]"
	want := []string{
		"0.0.0 900-1000 " + name, "0.0.0 1000-4700 " + nccl.Between, "0.0.0 4700-5000 " + name,
		"0.0.0 5000-5800 " + nccl.Between, "0.0.0 5800-5900 " + name, "0.0.0 5900-6700 " + nccl.Between, "0.0.0 6700-6900 " + name,
		"0.0.0 6900-7700 " + nccl.Between, "0.0.0 7700-8000 " + name,
		"1.0.0 8000-8050 " + name, "1.0.0 8050-1008050 " + name, "", // longer than the time since the one before
	}
	if got := strings.Split(got, "\n"); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestRanksOfProcesses(t *testing.T) {
	coll := func(comm string, rank, size int) op {
		return op{comm: comm, rank: rank, size: size, name: "AllReduce", bytes: 8, took: 1, dumped: 10}
	}
	f := func(name string, want []trace.Rank, paths func(dir string) []string) {
		t.Helper()
		var got []trace.Rank
		for _, f := range heads(t, paths(t.TempDir())...) {
			got = append(got, f.Ranks...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	f("of the largest communicator of all", []trace.Rank{2, 0, 1}, func(dir string) []string {
		return []string{
			write(t, dir, "n1", 1, coll("0xb", 0, 2), coll("0xa", 2, 3)), write(t, dir, "n2", 1, coll("0xa", 0, 3)),
			write(t, dir, "n3", 1, coll("0xa", 1, 3), coll("0xb", 1, 9)),
		}
	})
	f("by host and process", []trace.Rank{3, 0, 2, 1}, func(dir string) []string {
		return []string{
			write(t, dir, "n10", 5, coll("0xb", 1, 2)), write(t, dir, "n9", 2, coll("0xa", 0, 2)),
			write(t, dir, "n10", 4, coll("0xb", 0, 2)), write(t, dir, "n9", 10, coll("0xa", 1, 2)),
		}
	})
	f("of a process with several GPUs", []trace.Rank{2, 3, 0, 1}, func(dir string) []string {
		return []string{write(t, dir, "n1", 1, coll("0xa", 3, 4), coll("0xa", 2, 4)), write(t, dir, "n2", 1, coll("0xa", 0, 4), coll("0xa", 1, 4))}
	})
	path := write(t, t.TempDir(), "n1", 1, coll("0xa", 3, 4), coll("0xa", 2, 4), coll("0xb", 0, 2), coll("0xb", 1, 2))
	for local, file := 0, heads(t, path)[0]; local < 2; local++ {
		if got, _ := calls(t, file.Steps(local, nccl.Options{})); strings.Count(got, fmt.Sprintf("0.%d.", 2+local)) != 2 {
			t.Errorf("rank %d has\n%s", local, got)
		}
	}
}

// TestGrowingLog reads a log that grows by a few bytes at a time.
func TestGrowingLog(t *testing.T) {
	var ops []op
	for i := range 40 {
		ops = append(ops, op{comm: "0xa", size: 2, name: "AllReduce", sn: i, bytes: 8, took: 100, dumped: int64(i) * 100_000})
	}
	path := write(t, t.TempDir(), "n1", 7, ops...)
	file := heads(t, path)[0]
	want, _ := calls(t, file.Steps(0, nccl.Options{}))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, path, "")
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // of a test
	r := file.Steps(0, nccl.Options{Follow: true})
	var got strings.Builder
	next := func() error {
		for {
			s, err := r.Next(t.Context())
			if err != nil {
				return err
			}
			appendStep(&got, r.Names(), s)
			if s.Index%2 == 0 {
				r.Release()
			}
		}
	}
	for at := 0; at < len(text); {
		n := min(at+97, len(text))
		if _, err := out.Write(text[at:n]); err != nil {
			t.Fatal(err)
		}
		at = n
		if err := next(); !errors.Is(err, bp.ErrIdle) {
			t.Fatal(err)
		}
	}
	r.End()
	if err := next(); !errors.Is(err, io.EOF) || got.String() != want {
		t.Errorf("got %v\n%swant\n%s", err, got.String(), want)
	}
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := calls(t, file.Steps(0, nccl.Options{Follow: true})); !errors.Is(err, bp.ErrIdle) {
		t.Errorf("a short log ended with %v", err)
	}
}

func TestDamagedLines(t *testing.T) {
	good := op{comm: "0xa", size: 2, name: "AllReduce", bytes: 8, start: 10, took: 1, dumped: 10}.line("n1", 7)
	dir := t.TempDir()
	for damage, want := range map[string]string{
		good[:100] + "\n":                                  "line 2, byte %d: no record of NCCL Inspector",
		strings.Repeat("x", 3<<20) + "\n":                  "line 2, byte %d: the line is too long",
		strings.Replace(good, `"rank":0`, `"rank":2`, 1):   "line 2, byte %d: no record of NCCL Inspector",
		strings.Replace(good, `"rank":0`, `"rank":0.5`, 1): "line 2, byte %d: no record of NCCL Inspector",
		good[:200] + good:                                  "line 2, byte %d: no record of NCCL Inspector",
		"\x00\x00\n\x00\n":                                 "line 2, byte %d: no record of NCCL Inspector (and 1 others)",
	} {
		path := writeText(t, filepath.Join(dir, "a.log"), good+damage+good)
		var counts tally.Tally
		r := heads(t, path)[0].Steps(0, nccl.Options{Tally: &counts})
		got, err := calls(t, r)
		if want = path + ": " + fmt.Sprintf(want, len(good)); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if strings.Count(got, "AllReduce") != 2 || counts.Count(tally.PartUnreadable) == 0 || r.Gaps()[0].Offset != int64(len(good)) {
			t.Errorf("got %v, %v\n%s", counts.Notes(), r.Gaps(), got)
		}
	}
	for text, want := range map[string]string{
		good + good[:100]:                    fmt.Sprintf("line 2, byte %d: the last line is cut", len(good)),
		good + strings.TrimSpace(good):       "EOF",
		"\n" + good + " \r\n":                "EOF",
		good + strings.Repeat("x", 1<<21):    fmt.Sprintf("line 2, byte %d: the line is too long", len(good)),
		good + good[:len(good)-1] + "\n\x00": fmt.Sprintf("line 3, byte %d: the last line is cut", 2*len(good)),
	} {
		path := writeText(t, filepath.Join(dir, "a.log"), text)
		if _, err := calls(t, heads(t, path)[0].Steps(0, nccl.Options{})); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestOtherFilesAreNotLogs(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "{}\n", "hello\n", plain[:100], `{"traceEvents":[]}`, "[1]\n", strings.Repeat("\x00", 100)} {
		if nccl.IsLog(writeText(t, filepath.Join(dir, "a.log"), text)) {
			t.Errorf("%q was recognized", text)
		}
	}
	if nccl.IsLog(dir) || nccl.IsLog(filepath.Join(dir, "missing")) {
		t.Error("a directory or a missing file was recognized")
	}
	if !nccl.IsLog(writeText(t, filepath.Join(dir, "a.log"), plain[50:]+plain)) {
		t.Error("a log with a damaged beginning was not recognized")
	}
}

func TestReadingAllocatesNothingPerRecord(t *testing.T) {
	read := func(n int) float64 {
		var ops []op
		for i := range n {
			ops = append(ops, op{comm: "0xa", size: 2, name: "AllReduce", sn: i, bytes: 8, start: int64(i) * 10, took: 5, dumped: int64(i) * 10})
		}
		file := heads(t, write(t, t.TempDir(), "n1", 7, ops...))[0]
		return testing.AllocsPerRun(3, func() {
			seen := 0
			r := file.Steps(0, nccl.Options{OnCollective: func(*nccl.Collective) { seen++ }})
			for {
				if _, err := r.Next(t.Context()); err != nil {
					break
				}
			}
			r.Release()
			if seen != n {
				t.Errorf("%d operations, want %d", seen, n)
			}
		})
	}
	if few, many := read(2000), read(20_000); many-few > 200 { // slices that grow, and blocks
		t.Errorf("%v allocations for 20,000 records and %v for 2,000", many, few)
	}
}

// FuzzLog reads any text at once and growing, with the same result.
func FuzzLog(f *testing.F) {
	good := op{comm: "0xa", size: 2, name: "AllReduce", bytes: 8, start: 10, took: 1, dumped: 10}.line("n1", 7)
	for _, text := range []string{
		plain, verbose, plain + verbose, good + good[:50], good + "\n\x00" + good, strings.ReplaceAll(good, "1", "9"),
		strings.ReplaceAll(plain, `"rank":2`, `"rank":1`) + plain, op{comm: "0xa", size: 2, future: true}.line("", 0) + plain,
	} {
		f.Add(text, uint16(40))
	}
	f.Fuzz(func(t *testing.T, text string, cut uint16) {
		path := writeText(t, filepath.Join(t.TempDir(), "a.log"), plain+text)
		file := heads(t, path)[0]
		var counts, again tally.Tally
		want, end := calls(t, file.Steps(0, nccl.Options{Tally: &counts}))
		at := min(len(plain), int(cut))
		writeText(t, path, plain[:at])
		r := file.Steps(0, nccl.Options{Follow: true, Tally: &again})
		first, err := calls(t, r)
		if !errors.Is(err, bp.ErrIdle) {
			t.Fatal(err)
		}
		writeText(t, path, plain+text)
		rest, err := calls(t, r)
		if !errors.Is(err, bp.ErrIdle) {
			t.Fatal(err)
		}
		r.End()
		last, err := calls(t, r)
		if first+rest+last != want || err.Error() != end.Error() || counts != again {
			t.Errorf("got %v\n%swant %v\n%s", err, first+rest+last, end, want)
		}
	})
}
