package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// leave marks the run as incomplete when the services end early.
func (s *server) leave(why string) {
	if s.keeper == nil || s.hasFinished() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s.info.State, s.info.Incomplete, s.info.Program = provdb.Incomplete, []string{why}, cmp.Or(s.program.Load(), s.info.Program)
	if err := s.keeper.End(ctx, s.info); err != nil {
		s.log.Error("cannot mark the run as incomplete", "error", err)
	}
}

// listen receives the end of the program from the supervising process.
func (s *server) listen() {
	if s.cfg.Commands == nil {
		return
	}
	go func() {
		for line := range s.cfg.Commands {
			end := new(provdb.Program)
			if err := json.Unmarshal([]byte(line), end); err == nil {
				s.program.Store(end)
			}
		}
	}()
}

// query queries the store. It retries if the store is in another process, which may be
// restarted.
func (s *server) query(ctx context.Context, f func(a *query.Queries) error) error {
	for outage := (wait.Outage{}); ; {
		a, err := query.New(ctx, s.Reader(), s.run)
		if err == nil {
			err = f(a)
		}
		if err == nil || s.keeper != nil || ctx.Err() != nil {
			return err
		}
		if lasted, log := outage.Failed(err.Error(), time.Now()); log {
			s.log.Warn("waiting for the store, which must be on this host unless it is PostgreSQL", "error", err, "for_seconds", lasted.Seconds())
		}
		if err := wait.Sleep(ctx, attemptPause); err != nil {
			return err
		}
	}
}

// salvage reviews the anomalies in the store that no analyzer reviewed: those of lost analyzers,
// and those of live streams from before their analyzer was restarted.
func (s *server) salvage(ctx context.Context, models *analyzer.Models, outcome *summary.Outcome) error {
	names, ranks, totals := s.state.LostAnalyzers()
	if len(ranks) > 0 {
		var numbers []trace.Rank
		for _, r := range ranks {
			numbers = append(numbers, r.Rank)
		}
		s.info.Incomplete = append(s.info.Incomplete, fmt.Sprintf(
			"the analyzers of rank %s (%s) were lost before the review: only the records that they had sent are stored",
			text.Ranges(numbers), strings.Join(names, ", ")))
		outcome.Totals.Merge(totals)
	}
	if err := s.waitForStore(ctx); err != nil { // for records in the stream
		return err
	}
	var left int64
	err := s.query(ctx, func(a *query.Queries) (err error) {
		left, err = a.Provisional(ctx)
		return err
	})
	if err != nil || left == 0 && len(ranks) == 0 {
		return err
	}
	id := "salvaged-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-"
	v := newSalvager(models.Salvage(s.judging().Inclusive), ranks, func(n int, batch []*provenance.Record) error {
		return s.retry(ctx, "the records of lost analyzers", func(ctx context.Context) error {
			return recordstream.SendAnomalies(ctx, s.stream, s.run, recordstream.RecordSubject(s.run), id+strconv.Itoa(n), batch)
		})
	})
	if err := v.run(ctx, s.query); err != nil {
		return err
	}
	for _, o := range v.review.Outcomes() {
		outcome.Add(o)
	}
	return nil
}
