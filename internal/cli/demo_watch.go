package cli

import (
	"bytes"
	"context"
	_ "embed" // for the questions
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// troubles waits until the program has told which troubles are planted.
func (d *demo) troubles(ctx context.Context) (found []truth.Trouble, err error) {
	err = d.until(ctx, d.program, "tell which troubles are planted", func() (bool, error) {
		text, err := os.ReadFile(d.dir.truth())
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		if err == nil {
			found, err = readTroubles(text)
		}
		return len(found) >= d.plan.troubles, err
	})
	return found, err
}

// readTroubles reads the troubles of a file that is being written. They are the
// first lines.
func readTroubles(text []byte) (found []truth.Trouble, err error) {
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) || !bytes.HasPrefix(line, []byte(`{"trouble":`)) {
			break
		}
		var t truth.Trouble
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", bytes.TrimSpace(line), err)
		}
		found = append(found, t)
	}
	return found, nil
}

// endPatience is how long the end of the analysis may take when the program has
// ended.
const endPatience = 2 * time.Minute

// watch tells how the demo fares until all processes have ended.
func (d *demo) watch(ctx context.Context) error {
	live := &demoLive{dir: d.dir, services: d.services, counts: []demoCount{{at: d.began}}}
	defer live.close()
	allEnded := make(chan struct{})
	go func() {
		defer close(allEnded)
		d.children.Wait()
	}()
	sample := demoSample{began: d.began, total: d.flags.duration, steps: d.plan.steps}
	again := time.NewTicker(d.view.interval())
	defer again.Stop()
	var late <-chan time.Time
	programEnded := d.program.Ended()
	for {
		d.view.show(&sample)
		select {
		case <-ctx.Done():
		case <-allEnded:
			return context.Cause(ctx)
		case <-late:
			return fmt.Errorf("the analysis did not end within %v after the program", endPatience)
		case <-programEnded:
			sample.programOver, programEnded = true, nil
			late = time.After(endPatience)
		case <-again.C:
		}
		if err := context.Cause(ctx); err != nil { // a process that fails says so before it ends
			return err
		}
		live.ask(ctx, &sample)
	}
}

// demoLive asks the services while they run.
type demoLive struct {
	dir      *demoDir
	services *rundir.Services
	client   http.Client
	store    *remotestore.Client // nil: not reached yet
	counts   []demoCount         // of the last seconds, and one before
}

// demoCount is how many events there were at a time.
type demoCount struct {
	at     time.Time
	events int64
}

// rate is how many events there were in a second of late. Steps come at intervals
// of about that, so it looks back over several.
func (l *demoLive) rate(events int64, now time.Time) float64 {
	l.counts = append(l.counts, demoCount{now, events})
	for len(l.counts) > 2 && now.Sub(l.counts[1].at) >= recent {
		l.counts = l.counts[1:]
	}
	first := l.counts[0]
	return float64(events-first.events) / now.Sub(first.at).Seconds()
}

func (l *demoLive) close() {
	if l.store != nil {
		_ = l.store.Close() // only read from
	}
}

//go:embed demo_worst.sql
var demoWorstSQL string

// recent is how old the anomalies may be that are shown.
const recent = 6 * time.Second

// ask brings a sample up to date. What is not answered in time stays as it was:
// services that just end do not answer.
func (l *demoLive) ask(ctx context.Context, s *demoSample) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if status, err := dashboard.Fetch(ctx, &l.client, l.services.Web, l.services.Secret); err == nil && status.Run.State != api.Waiting {
		s.status, s.rate = status, l.rate(status.Totals.Events, time.Now())
	}
	if s.programOver {
		s.worst = nil // the summary comes soon
		return
	}
	if l.store == nil {
		var err error
		if l.store, err = remotestore.Open(ctx, rundir.Owner(l.dir.run())); err != nil {
			l.store = nil
			return
		}
	}
	since := trace.Micros(time.Now().Add(-recent).UnixMicro())
	if rows, err := l.store.Query(ctx, demoWorstSQL, int64(since)); err == nil {
		if found, err := worstOfEach(rows); err == nil {
			s.worst = found
		}
	}
}

// demoFunction is a function of a program.
type demoFunction struct {
	program int64
	name    string
}

// newDemoAnomaly reads a row of demo_worst.sql or demo_places.sql.
func newDemoAnomaly(row []any) demoAnomaly {
	return demoAnomaly{
		function: demoFunction{row[0].(int64), fmt.Sprint(row[1])}, rank: row[2].(int64), host: fmt.Sprint(row[3]),
		lost: trace.Micros(row[4].(int64)), entry: trace.Micros(row[5].(int64)), id: fmt.Sprint(row[6]),
	}
}

// worstOfEach reads the answer to demo_worst.sql, of which it takes one for each
// function.
func worstOfEach(rows *provdb.Rows) (found []demoAnomaly, err error) {
	seen := make(map[demoFunction]bool)
	for row, err := range rows.All {
		if err != nil {
			return nil, err
		}
		if a := newDemoAnomaly(row); !seen[a.function] {
			seen[a.function] = true
			found = append(found, a)
		}
	}
	return found, nil
}
