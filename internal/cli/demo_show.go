package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// demoWidth is how many columns are used of a terminal.
const demoWidth = 79

// demoView shows a demo to a person: at a terminal as a picture that changes, else
// as lines that follow each other. An error of writing ends the demo.
type demoView struct {
	w       io.Writer
	fail    context.CancelCauseFunc
	picture bool
	bold    bool
	drawn   int // lines of the picture
}

func newDemoView(env *Env, fail context.CancelCauseFunc) *demoView {
	v := &demoView{w: env.Stdout, fail: fail}
	v.picture = isTerminal(env.Stdout) && env.variable("TERM") != "dumb"
	v.bold = v.picture && env.variable("NO_COLOR") == ""
	return v
}

// interval is how often there is something new to see.
func (v *demoView) interval() time.Duration {
	if v.picture {
		return time.Second
	}
	return logInterval
}

// print writes text after what is there.
func (v *demoView) print(write func(w io.Writer)) {
	var b bytes.Buffer
	v.erase(&b)
	write(&b)
	v.write(&b)
}

// draw replaces the picture.
func (v *demoView) draw(write func(w io.Writer)) {
	var lines bytes.Buffer
	write(&lines)
	var b bytes.Buffer
	v.erase(&b)
	if !v.picture {
		b.Write(lines.Bytes())
		v.write(&b)
		return
	}
	v.drawn = bytes.Count(lines.Bytes(), []byte("\n"))
	// A line that is longer than the terminal is wide is cut, so that lines can be counted.
	fmt.Fprintf(&b, "\x1b[?7l%s\x1b[?7h", lines.Bytes())
	v.write(&b)
}

// clear removes the picture.
func (v *demoView) clear() {
	var b bytes.Buffer
	v.erase(&b)
	v.write(&b)
}

func (v *demoView) erase(b *bytes.Buffer) {
	if v.drawn > 0 {
		fmt.Fprintf(b, "\r\x1b[%dA\x1b[J", v.drawn)
		v.drawn = 0
	}
}

func (v *demoView) write(b *bytes.Buffer) {
	if b.Len() == 0 {
		return
	}
	if _, err := v.w.Write(b.Bytes()); err != nil {
		v.fail(fmt.Errorf("what happens cannot be shown: %w", err))
	}
}

// title makes a heading.
func (v *demoView) title(text string) string {
	if v.bold {
		return "\x1b[1m" + text + "\x1b[0m"
	}
	return text
}

// introduce says what will happen.
func (v *demoView) introduce(p *demoPlan, duration time.Duration) {
	v.print(func(w io.Writer) {
		fmt.Fprintf(w, "%s\n\n", v.title("Chimbuko at work, on a simulated program"))
		fmt.Fprint(w, wrapped(fmt.Sprintf("%s. It runs on %s of %s for %g s and writes traces as TAU does. "+
			"On each host an analyzer reads them while they grow, shares what it learns with the others through the services "+
			"(message bus, parameter server, database, HTTP), and keeps what does not fit. All are processes of this program, as they are in earnest.",
			capital(strings.TrimSuffix(p.text, ".")), counted(p.ranks, "rank"), counted(len(p.hosts), "host"), duration.Seconds())))
	})
}

// point tells where to look.
func (v *demoView) point(s *rundir.Services, dir string) {
	if s.Web != "" {
		v.address("See it in the browser, now and while it runs:", visitOf(s.Web, s.Secret), dir)
	}
}

// address shows that of the page of the run in a directory.
func (v *demoView) address(title, visit, dir string) {
	text, whole := shownTo(v.w, visit)
	v.print(func(w io.Writer) {
		fmt.Fprintf(w, "\n%s\n\n%s\n", v.title(title), text)
		if !whole {
			fmt.Fprintf(w, "\nIts token is not for files that others may read. This prints it:\n\nchimbuko view %s\n", dir)
		}
	})
}

// announce tells which troubles are planted.
func (v *demoView) announce(troubles []truth.Trouble, began time.Time) {
	v.print(func(w io.Writer) {
		switch len(troubles) {
		case 0:
			fmt.Fprintf(w, "\nNo trouble is planted: whatever is found is in the nature of the program.\n")
		default:
			fmt.Fprintf(w, "\n%s\n\n", v.title(capital(counted(len(troubles), "trouble"))+" planted, of which the analysis knows nothing:"))
		}
		writeTabbed(w, func(t io.Writer) {
			for i := range troubles {
				planted := &troubles[i]
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", sinceText(planted.From, began), oneLine(planted.Kind), whereText(planted), oneLine(planted.Name))
			}
		})
		fmt.Fprintf(w, "\nCtrl-C ends it all.\n\n")
	})
}

// sinceText is a time of the trace since the program was started.
func sinceText(t trace.Micros, began time.Time) string {
	return fmt.Sprintf("+%.1f s", max(0, float64(t-trace.Micros(began.UnixMicro()))/1e6))
}

// demoSample is how far a demo has come.
type demoSample struct {
	began       time.Time
	total       time.Duration // that the program is to run
	steps       int64         // that it will have written
	programOver bool
	status      *api.Status   // nil: not known yet
	rate        float64       // events in a second
	worst       []demoAnomaly // of a recent time
}

// demoAnomaly is one that is shown.
type demoAnomaly struct {
	function    demoFunction
	rank        int64
	host        string
	lost, entry trace.Micros
	id          string
}

func (s *demoSample) phase() string {
	switch {
	case s.status != nil && s.status.Run.State == api.Reviewing:
		return "what was kept is judged once more"
	case s.programOver:
		return "the program has ended"
	case s.status == nil || s.status.Totals.Ranks == 0:
		return "the program starts"
	}
	return ""
}

// show shows how far a demo has come.
func (v *demoView) show(s *demoSample) {
	elapsed := time.Since(s.began).Seconds()
	clock := fmt.Sprintf("%3.0f of %.0f s", elapsed, max(elapsed, s.total.Seconds()))
	phase := s.phase()
	var counts string
	var share float64
	if s.status != nil {
		t := s.status.Totals
		share = float64(t.Steps) / float64(max(s.steps, t.Steps, 1))
		counts = fmt.Sprintf("%s steps, %s events (%s/s), %s calls, %s anomalies",
			grouped(t.Steps), inShort(float64(t.Events)), inShort(s.rate), inShort(float64(t.Calls)), grouped(t.Anomalies))
	}
	v.draw(func(w io.Writer) {
		if v.picture {
			const width = 24
			done := int(width * share)
			fmt.Fprintf(w, "[%s%s] %s  %s\n%s\n", strings.Repeat("#", done), strings.Repeat(".", width-done), clock, phase, counts)
			v.drawWorst(w, s)
			return
		}
		fmt.Fprintf(w, "%s  %s\n", clock, cmp.Or(phase, counts))
		for _, a := range s.worst[:min(2, len(s.worst))] {
			fmt.Fprintf(w, "    %8s lost at %s by rank %d on %s: %s\n", microsText(float64(a.lost)), sinceText(a.entry, s.began), a.rank, oneLine(a.host), shortName(a.function.name, 30))
		}
	})
}

// inShort writes a number with about three digits.
func inShort(n float64) string {
	switch {
	case n < 1e4:
		return grouped(int64(n))
	case n < 1e6:
		return fmt.Sprintf("%.0f k", n/1e3)
	}
	return fmt.Sprintf("%.1f M", n/1e6)
}

// drawWorst lists anomalies.
func (v *demoView) drawWorst(w io.Writer, s *demoSample) {
	if len(s.worst) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", v.title("The worst of the last seconds:"))
	writeTabbed(w, func(t io.Writer) {
		fmt.Fprintln(t, "LOST\tAT\tRANK\tHOST\tFUNCTION")
		for _, a := range s.worst[:min(5, len(s.worst))] {
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", microsText(float64(a.lost)), sinceText(a.entry, s.began), a.rank, oneLine(a.host), shortName(a.function.name, demoWidth))
		}
	})
}

// writeTabbed writes a table whose lines are cut where the terminal ends.
func writeTabbed(w io.Writer, rows func(t io.Writer)) {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	rows(t)
	_ = t.Flush() // to memory
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(w, cut(strings.TrimRight(line, " \n"), demoWidth))
	}
}

// cut shortens a text to a number of columns.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// shortName is the name of a function without the place in its source.
func shortName(function string, width int) string {
	name, _, _ := strings.Cut(oneLine(function), " [{")
	return cut(name, width)
}

// wrapped breaks a text into lines.
func wrapped(text string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > demoWidth:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
	return b.String()
}

var numerals = []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}

// counted is a number of things in words.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	if n < len(numerals) {
		return numerals[n] + " " + thing
	}
	return grouped(int64(n)) + " " + thing
}

func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
