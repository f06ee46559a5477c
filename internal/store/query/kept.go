package query

import (
	"context"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Kept is what a store holds of a run, in numbers.
type Kept struct {
	Executions int64        // typical ones and withdrawn anomalies included
	Anomalies  int64        // that count
	Lost       trace.Micros // by them
	Confirmed  int64
	Promoted   int64
	Withdrawn  int64
	// End is the newest time that is known, since the epoch of the trace; 0: none.
	End       trace.Micros
	Functions int64
	// Profiled is how many functions have a profile, which they get when the run ends;
	// Warm of them have at least as many calls as were asked for. Calls is all of them.
	Profiled, Warm, Calls int64
	Longest               float64 // microseconds of the longest call that is known of
}

// Kept counts what is stored. minCalls is how many calls make a function warm.
func (a *Asker) Kept(ctx context.Context, minCalls int) (*Kept, error) {
	rows, err := a.collect(ctx, text("kept"), int32(a.Run.ID), float64(minCalls))
	if err != nil || len(rows) == 0 {
		return new(Kept), err
	}
	r := rows[0]
	k := &Kept{
		Executions: whole[int64](r[0]), Anomalies: whole[int64](r[1]), Confirmed: whole[int64](r[2]), Promoted: whole[int64](r[3]), Withdrawn: whole[int64](r[4]),
		End: whole[trace.Micros](r[5]), Lost: whole[trace.Micros](r[6]), Functions: whole[int64](r[7]),
		Profiled: whole[int64](r[8]), Warm: whole[int64](r[9]), Calls: whole[int64](r[10]),
	}
	k.Longest, _ = r[11].(float64) // null for none
	return k, nil
}

// Placed is a rank and where it ran.
type Placed struct {
	Process
	Host string // empty where it is not known
}

// Provisional is how many anomalies have not been reviewed.
func (a *Asker) Provisional(ctx context.Context) (n int64, err error) {
	err = a.each(ctx, `SELECT count(*) FROM executions WHERE run = $1 AND status = 'provisional'`, func(row []any) { n, _ = row[0].(int64) })
	return n, err
}

// Ranks returns the ranks that the store knows of, in order, but no more than limit.
func (a *Asker) Ranks(ctx context.Context, limit int) ([]Placed, error) {
	rows, err := a.collect(ctx, text("ranks"), int32(a.Run.ID), int64(limit))
	if err != nil {
		return nil, err
	}
	ranks := make([]Placed, 0, len(rows))
	for _, r := range rows {
		ranks = append(ranks, Placed{Process{whole[trace.Program](r[0]), whole[trace.Rank](r[1])}, word[string](r[2])})
	}
	return ranks, nil
}

// Executables returns the executables of programs, as far as metadata tells.
func (a *Asker) Executables(ctx context.Context) (map[trace.Program]string, error) {
	names := make(map[trace.Program]string)
	err := a.each(ctx, text("executables"), func(row []any) { names[whole[trace.Program](row[0])] = word[string](row[1]) })
	return names, err
}

// Slow is a function by its longest call.
type Slow struct {
	Program       trace.Program
	Name          string
	Longest, Mean float64 // exclusive, in microseconds
	Calls         int64
}

// Slowest returns the functions with the longest single calls, whether or not they are
// anomalies. It is known when the run has ended.
func (a *Asker) Slowest(ctx context.Context, limit int) ([]Slow, error) {
	var list []Slow
	err := a.each(ctx, text("slowest"), func(row []any) {
		s := Slow{Program: whole[trace.Program](row[0]), Name: word[string](row[1]), Calls: whole[int64](row[4])}
		s.Longest, _ = row[2].(float64)
		s.Mean, _ = row[3].(float64)
		list = append(list, s)
	}, int64(limit))
	return list, err
}
