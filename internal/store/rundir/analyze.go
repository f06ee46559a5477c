package rundir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Progress shows the progress of an analysis.
type Progress interface {
	Show(done analyzer.ProgressReport)
	During(activity string) (end func())
	Clear()
}

// smallTraces is the size in bytes below which traces cannot have many records.
const smallTraces = 2 << 20

// Analyze analyzes recorded traces and writes the run. It describes the run in info.
func Analyze(ctx context.Context, cfg *Config, analysis analyzer.Config, inputs []analyzer.Input, info *provdb.Info,
	progress Progress,
) (res *analyzer.Result, err error) {
	info.Unit = analysis.Unit.Canonical()
	for _, in := range inputs {
		info.Traces = append(info.Traces, in.Path)
		info.TraceBytes += cmp.Or(in.Size, bp.Size(in.Path))
	}
	small := *cfg
	small.Small = info.TraceBytes > 0 && info.TraceBytes < smallTraces
	k, err := New(ctx, &small, info)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	analysis.SpoolDir = k.Dir.Spool()
	res, err = analyzer.New(analysis, k.Sink(), progress.Show).Run(ctx, inputs)
	if !small.Small {
		debug.FreeOSMemory() // of the analyzer, before the store needs more
	}
	progress.Clear()
	if err == nil {
		err = k.writeResult(ctx, res, info, progress)
	}
	if err != nil {
		info.State, info.Error = provdb.Failed, err.Error()
		return nil, errors.Join(err, k.End(context.WithoutCancel(ctx), info))
	}
	info.Finish(res.Outcome)
	if err := k.End(ctx, info); err != nil {
		return nil, err
	}
	end := progress.During("closing the store")
	err = k.Close()
	end()
	if err != nil {
		return nil, err
	}
	info.SetSize(k.Size()) // after the log of the database has been merged
	return res, k.Dir.WriteInfo(info)
}

// writeResult finds the findings and writes all run-level data.
func (k *Keeper) writeResult(ctx context.Context, res *analyzer.Result, info *provdb.Info, progress Progress) error {
	c, err := res.Collections()
	if err != nil {
		return err
	}
	c.Peers = peers.OfRun(res.Outcome)
	end := progress.During(fmt.Sprintf("finding the causes of %s anomalies", text.Int(res.Review.Anomalies)))
	c.Findings, c.Links = k.Findings(res.Outcome, c.PathStats, c.Peers)
	end()
	info.SetFindings(c.Findings)
	if l := ranks.Divide(c.Peers, ranks.Listed(c.Findings)); l != nil {
		info.Efficiency = l.String()
	}
	end = progress.During("storing profiles, models and findings")
	defer end()
	return k.WriteCollections(ctx, c)
}
