package cli

import (
	"cmp"
	"context"
	_ "embed" // for the questions
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/online/children"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// demoPlace is where the anomalies of a function concentrate.
type demoPlace struct {
	function  demoFunction
	hosts     []string
	ranks     []trace.Rank
	anomalies int64
	lost      trace.Micros
	first     trace.Micros
}

// demoResult is what came of a demo.
type demoResult struct {
	begin  trace.Micros
	all    int64       // anomalies
	places []demoPlace // most lost time first
	worst  demoAnomaly
	score  *truth.Score
}

// errMissed says that the analysis did not find all that was planted.
var errMissed = errors.New("not all planted troubles were found; missing")

// conclude tells what came of the demo. It is an error if a trouble was not found.
func (d *demo) conclude(ctx context.Context) error {
	r, err := d.result(ctx)
	if err != nil {
		return err
	}
	d.view.print(func(w io.Writer) { d.summarize(w, r) })
	var missed []string
	for i := range r.score.Troubles {
		if t := &r.score.Troubles[i]; !t.Seen {
			missed = append(missed, oneLine(t.Name))
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("%w: %s", errMissed, strings.Join(missed, ", "))
	}
	return nil
}

// result reads what came of the run.
func (d *demo) result(ctx context.Context) (*demoResult, error) {
	planted, err := truth.Read([]string{d.dir.truth()})
	if err != nil {
		return nil, err
	}
	flags := planted.Matcher()
	calls, err := readRun(ctx, d.dir.run(), flags)
	if err != nil {
		return nil, err
	}
	r := &demoResult{score: flags.Score(calls)}
	return r, d.ask(ctx, r)
}

//go:embed demo_places.sql
var demoPlacesSQL string

// ask asks the database of the run.
func (d *demo) ask(ctx context.Context, r *demoResult) (err error) {
	where, err := rundir.FindStore(d.dir.run())
	if err != nil {
		return err
	}
	store, closeStore, err := where.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	a, err := query.New(ctx, store, where.Run)
	if err != nil {
		return err
	}
	r.begin = a.Begin
	rows, err := a.Query(ctx, demoPlacesSQL)
	if err != nil {
		return err
	}
	return r.gather(rows.All)
}

// demoRank is what a rank lost in a function.
type demoRank struct {
	host      string
	anomalies int64
	lost      trace.Micros
}

// gather finds places in the answer to demo_places.sql.
func (r *demoResult) gather(rows iter.Seq2[[]any, error]) error {
	functions := make(map[demoFunction][]demoAnomaly)
	for row, err := range rows {
		if err != nil {
			return err
		}
		a := newDemoAnomaly(row)
		functions[a.function] = append(functions[a.function], a)
		if r.all++; a.lost > r.worst.lost {
			r.worst = a
		}
	}
	for function, anomalies := range functions {
		r.places = append(r.places, concentration(function, anomalies))
	}
	slices.SortFunc(r.places, func(a, b demoPlace) int {
		return cmp.Or(cmp.Compare(b.lost, a.lost), cmp.Compare(a.function.name, b.function.name), cmp.Compare(a.function.program, b.function.program))
	})
	return nil
}

// concentration finds where the anomalies of a function, in order of time, are: on
// those ranks that lost at least a tenth of what the worst did. They are there since
// the first that lost at least a tenth of what the worst of them did.
func concentration(function demoFunction, anomalies []demoAnomaly) demoPlace {
	p := demoPlace{function: function}
	ranks := make(map[int64]demoRank)
	var worst, most trace.Micros // anomaly and rank
	for _, a := range anomalies {
		of := ranks[a.rank]
		of.host, of.anomalies, of.lost = a.host, of.anomalies+1, of.lost+a.lost
		ranks[a.rank] = of
		worst, most = max(worst, a.lost), max(most, of.lost)
	}
	for rank, of := range ranks {
		if 10*of.lost < most {
			delete(ranks, rank)
			continue
		}
		p.ranks, p.anomalies, p.lost = append(p.ranks, trace.Rank(rank)), p.anomalies+of.anomalies, p.lost+of.lost
		if !slices.Contains(p.hosts, of.host) {
			p.hosts = append(p.hosts, of.host)
		}
	}
	for _, a := range anomalies {
		if _, ok := ranks[a.rank]; ok && 10*a.lost >= worst {
			p.first = a.entry
			break
		}
	}
	return p
}

// placesShown is how many places are listed.
const placesShown = 8

// summarize writes the end of the demo.
func (d *demo) summarize(w io.Writer, r *demoResult) {
	if !d.view.picture {
		fmt.Fprintln(w) // there are lines before
	}
	fmt.Fprintf(w, "%s\n\n", d.view.title("What the analysis found by itself, most lost time first:"))
	if len(r.places) == 0 {
		fmt.Fprintln(w, "nothing")
	}
	shown := r.places[:min(placesShown, len(r.places))]
	others := r.all
	writeTabbed(w, func(t io.Writer) {
		if len(shown) > 0 {
			fmt.Fprintln(t, "LOST\tANOMALIES\tSINCE\tHOSTS\tRANKS\tFUNCTION")
		}
		for _, p := range shown {
			hosts := oneLine(p.hosts[0])
			if len(p.hosts) > 1 {
				hosts = counted(len(p.hosts), "host")
			}
			fmt.Fprintf(t, "%s\t%s\t+%.1f s\t%s\t%s\t%s\n", microsText(float64(p.lost)), grouped(p.anomalies), float64(p.first-r.begin)/1e6, hosts,
				rankList(p.ranks), shortName(p.function.name, demoWidth))
			others -= p.anomalies
		}
	})
	if len(shown) > 0 && others > 0 {
		fmt.Fprintf(w, "and %s elsewhere\n", grouped(others))
	}
	d.summarizeTroubles(w, r.score.Troubles)
	d.tellUsage(w)
	d.suggest(w, r)
}

// summarizeTroubles tells which of the planted troubles were found.
func (d *demo) summarizeTroubles(w io.Writer, troubles []truth.TroubleScore) {
	if len(troubles) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n\n", d.view.title("What was planted, and how long it took to be found:"))
	writeTabbed(w, func(t io.Writer) {
		fmt.Fprintln(t, "FOUND\tAFTER\tCALLS\tKIND\tWHERE\tTROUBLE")
		for i := range troubles {
			p := &troubles[i]
			found, after := "NO", "-"
			if p.Seen {
				found, after = "yes", fmt.Sprintf("%.1f s", float64(p.After)/1e6)
			}
			calls := grouped(int64(p.Found))
			if p.Each {
				calls += " of " + grouped(int64(p.Planted))
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", found, after, calls, oneLine(p.Kind), whereText(&p.Trouble), oneLine(p.Name))
		}
	})
}

// tellUsage tells what it all took.
func (d *demo) tellUsage(w io.Writer) {
	used := func(all ...*children.Child) float64 {
		var sum time.Duration
		for _, p := range all {
			sum += p.Used()
		}
		return sum.Seconds()
	}
	fmt.Fprintf(w, "\nProcessor time: analyzers %.1f s, services %.1f s, the simulation itself %.1f s.\n",
		used(d.analyzers...), used(d.server), used(d.program))
}

// suggest says what to do next.
func (d *demo) suggest(w io.Writer, r *demoResult) {
	if !d.dir.kept {
		fmt.Fprintf(w, "\nTo see it again or ask further, keep the run:\nchimbuko demo --keep && chimbuko view chimbuko-demo/run\n")
		return
	}
	run := d.dir.run()
	fmt.Fprintf(w, "\n%s\n\n", d.view.title("Ask further:"))
	fmt.Fprintf(w, "chimbuko view %s\n", run)
	fmt.Fprintf(w, "chimbuko issues %s\n", run)
	fmt.Fprintf(w, "chimbuko top %s\n", run)
	if r.worst.id != "" {
		which := r.worst.id
		if len(d.plan.programs) > 0 {
			which += fmt.Sprintf(" --program %d", r.worst.function.program)
		}
		fmt.Fprintf(w, "chimbuko event %s %s\n", run, which)
	}
	fmt.Fprintf(w, "chimbuko query %s 'SELECT func, count(*) FROM anomalies GROUP BY 1'\n", run)
	fmt.Fprintf(w, "chimbuko eval %s %s\n", run, d.dir.truth())
}
