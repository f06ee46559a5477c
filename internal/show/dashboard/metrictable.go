package dashboard

import (
	"cmp"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// metric is a number of a part of the status. docs/api.md lists the names.
type metric[T any] struct {
	name  string
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*T) any
}

func gauge[T any](name, help string, value func(*T) any, labels ...string) metric[T] {
	name = "chimbuko_" + name
	return metric[T]{name, prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, value}
}

func counter[T any](name, help string, value func(*T) any, labels ...string) metric[T] {
	m := gauge(name, help, value, labels...)
	m.kind = prometheus.CounterValue
	return m
}

// number returns a value as a metric: booleans as 0 or 1, times in seconds since 1970 or 0.
func number(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
	case time.Time:
		if !v.IsZero() {
			return float64(v.UnixMicro()) / 1e6
		}
	}
	return 0
}

var (
	up        = gauge[any]("up", "1 if the state of the pipeline is available.", nil)
	buildInfo = gauge[any]("build_info", "1, with the version of the program.", nil, "version")
	runInfo   = gauge[any]("run_info", "1, with the name of the run.", nil, "run")
	runState  = gauge[any]("run_state", "1 for the state of the run.", nil, "state")
	healthy   = gauge[any]("healthy", "1 if the part is healthy; severity is that of its failure.", nil, "part", "severity")

	nodeInfo         = gauge[any]("node_info", "1, with host and process of an analyzer.", nil, "node", "host", "pid")
	nodeState        = gauge[any]("node_state", "1 for the state of the analyzer.", nil, "node", "state")
	nodeKindEvents   = counter[any]("node_kind_events_total", "Events read, by kind.", nil, "node", "kind")
	nodeStageSeconds = counter[any]("node_stage_seconds_total", "Time spent in each stage of processing steps.", nil, "node", "stage")
	nodeStageRuns    = counter[any]("node_stage_runs_total", "Runs of each stage.", nil, "node", "stage")
	nodeTallies      = counter[any]("node_tally_total", "Repairs, skips and losses by name.", nil, "node", "tally", "severity")
	nodeExchange     = gauge[any]("node_exchange_seconds", "Duration of exchanges as seen by the analyzer.", nil, "node")

	shardExchange = gauge[any]("shard_exchange_seconds", "Duration of exchanges in the parameter server; quantiles are recent.", nil, "shard")

	slowPeer = gauge[any]("slow_peer", "Time of the work of a slow place divided by that of its peers, while it is slow.", nil,
		"program", "place", "pattern")

	rankLagMax   = gauge[any]("rank_lag_max_seconds", "Lag of the slowest rank.", nil)
	ranksWithout = gauge[any]("ranks_without_series", "Ranks without their own series because there are too many.", nil)
)

var statusMetrics = []metric[api.Status]{
	gauge("run_started_timestamp_seconds", "Start of the run.", func(s *api.Status) any { return s.Run.Started }),
	gauge("ranks", "Ranks seen.", func(s *api.Status) any { return s.Totals.Ranks }),
	gauge("ranks_ended", "Ranks whose trace has ended.", func(s *api.Status) any { return s.Totals.RanksEnded }),
	gauge("ranks_expected", "Ranks expected; 0 if unknown.", func(s *api.Status) any { return s.Totals.RanksExpected }),
	counter("steps_total", "Steps analyzed, over all ranks.", func(s *api.Status) any { return s.Totals.Steps }),
	counter("events_total", "Events read.", func(s *api.Status) any { return s.Totals.Events }),
	counter("calls_total", "Completed calls judged.", func(s *api.Status) any { return s.Totals.Calls }),
	counter("anomalies_total", "Calls flagged before the final review.", func(s *api.Status) any { return s.Totals.Anomalies }),
	gauge("functions", "Functions seen.", func(s *api.Status) any { return s.Totals.Functions }),
	counter("read_bytes_total", "Bytes of traces read.", func(s *api.Status) any { return s.Totals.BytesRead }),
	counter("records_sent_total", "Records that analyzers sent to the store.", func(s *api.Status) any { return s.Totals.RecordsSent }),
	counter("records_stored_total", "Records stored.", func(s *api.Status) any { return s.Totals.RecordsStored }),
}

var efficiencyMetrics = []metric[api.Efficiency]{
	gauge("parallel_efficiency", "Share of the time of all ranks that is useful.",
		func(e *api.Efficiency) any { return e.Parallel }, "program"),
	gauge("load_balance", "Mean useful time of ranks divided by the greatest.",
		func(e *api.Efficiency) any { return e.LoadBalance }, "program"),
	gauge("communication_efficiency", "Greatest useful time of a rank divided by the elapsed time.",
		func(e *api.Efficiency) any { return e.Communication }, "program"),
}

var nodeMetrics = []metric[api.Node]{
	gauge("node_last_heard_timestamp_seconds", "Last message of the analyzer.", func(n *api.Node) any { return n.LastHeard }, "node"),
	gauge("node_ranks", "Ranks that the analyzer reads.", func(n *api.Node) any { return n.Ranks }, "node"),
	counter("node_steps_read_total", "Steps read.", func(n *api.Node) any { return n.StepsRead }, "node"),
	counter("node_steps_exchanged_total", "Steps sent to the parameter server.", func(n *api.Node) any { return n.StepsExchanged }, "node"),
	gauge("node_lag_seconds", "Lag of the analyzer behind the newest data.", func(n *api.Node) any { return n.Behind }, "node"),
	counter("node_events_total", "Events read.", func(n *api.Node) any { return n.Events }, "node"),
	counter("node_calls_total", "Completed calls judged.", func(n *api.Node) any { return n.Calls }, "node"),
	gauge("node_open_calls", "Open calls.", func(n *api.Node) any { return n.OpenCalls }, "node"),
	counter("node_anomalies_total", "Calls flagged.", func(n *api.Node) any { return n.Anomalies }, "node"),
	counter("node_read_bytes_total", "Bytes of traces read.", func(n *api.Node) any { return n.BytesRead }, "node"),
	counter("node_records_sent_total", "Records sent to the store.", func(n *api.Node) any { return n.RecordsSent }, "node"),
	gauge("node_outbox_messages", "Messages waiting to be sent.", func(n *api.Node) any { return n.OutboxMessages }, "node"),
	gauge("node_outbox_bytes", "Bytes waiting to be sent.", func(n *api.Node) any { return n.OutboxBytes }, "node"),
	counter("node_drops_total", "Messages dropped.", func(n *api.Node) any { return n.Drops }, "node"),
	gauge("node_exchange_last_seconds", "Duration of the last exchange.", func(n *api.Node) any { return n.Exchange.Last }, "node"),
	gauge("node_exchange_max_seconds", "Duration of the longest exchange.", func(n *api.Node) any { return n.Exchange.Max }, "node"),
	counter("node_exchange_sent_bytes_total", "Bytes to the parameter server.", func(n *api.Node) any { return n.ExchangeSent }, "node"),
	counter("node_exchange_received_bytes_total", "Bytes from the parameter server.", func(n *api.Node) any { return n.ExchangeGot }, "node"),
	gauge("node_resident_memory_bytes", "Memory of the analyzer.", func(n *api.Node) any { return n.RSS }, "node"),
	counter("node_cpu_seconds_total", "Processor time of the analyzer.", func(n *api.Node) any { return n.CPU }, "node"),
}

// firstRanks ends the help of metrics of single ranks.
var firstRanks = " Only the first " + strconv.Itoa(maxRankSeries) +
	" ranks by program and number; chimbuko_ranks_without_series counts the others."

var rankMetrics = []metric[api.Rank]{
	gauge("rank_step", "The last step read."+firstRanks, func(r *api.Rank) any { return r.Step }, "program", "rank"),
	gauge("rank_lag_seconds", "Lag behind the newest data."+firstRanks, func(r *api.Rank) any { return r.Behind }, "program", "rank"),
	counter("rank_anomalies_total", "Calls flagged."+firstRanks, func(r *api.Rank) any { return r.Anomalies }, "program", "rank"),
}

// compareRanks orders ranks by program and number.
func compareRanks(a, b api.Rank) int {
	return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Rank, b.Rank))
}

var shardMetrics = []metric[api.Shard]{
	counter("shard_exchanges_total", "Exchanges of the parameter server.", func(s *api.Shard) any { return s.Exchanges }, "shard"),
	counter("shard_exchanges_repeated_total", "Repeated exchanges.", func(s *api.Shard) any { return s.Repeated }, "shard"),
	counter("shard_exchanges_refused_total", "Invalid exchanges.", func(s *api.Shard) any { return s.Refused }, "shard"),
	counter("shard_received_bytes_total", "Bytes received.", func(s *api.Shard) any { return s.BytesIn }, "shard"),
	counter("shard_sent_bytes_total", "Bytes sent.", func(s *api.Shard) any { return s.BytesOut }, "shard"),
	gauge("shard_models", "Models held.", func(s *api.Shard) any { return s.Models }, "shard"),
	gauge("shard_functions", "Functions seen.", func(s *api.Shard) any { return s.Functions }, "shard"),
	gauge("shard_model_version", "Version of the models.", func(s *api.Shard) any { return s.Version }, "shard"),
}

var snapshotMetrics = []metric[api.Snapshot]{
	gauge("shard_snapshot_age_seconds", "Age of the last snapshot on disk.", func(s *api.Snapshot) any { return s.Age }, "shard"),
	gauge("shard_snapshot_duration_seconds", "Time to write it.", func(s *api.Snapshot) any { return s.Duration }, "shard"),
	gauge("shard_snapshot_bytes", "Its size.", func(s *api.Snapshot) any { return s.Bytes }, "shard"),
}

var storeMetrics = []metric[api.StoreStatus]{
	counter("store_records_total", "Records stored by this process.", func(s *api.StoreStatus) any { return s.Records }),
	gauge("store_pending_messages", "Messages waiting to be stored.", func(s *api.StoreStatus) any { return s.PendingMessages }),
	gauge("store_pending_bytes", "Bytes waiting to be stored.", func(s *api.StoreStatus) any { return s.PendingBytes }),
	gauge("store_lag_seconds", "Age of the oldest record not stored.", func(s *api.StoreStatus) any { return s.Lag }),
	gauge("store_failing", "1 if the last write failed.", func(s *api.StoreStatus) any { return s.LastError != "" }),
}

var senderMetrics = []metric[api.Sender]{
	counter("sender_packets_total", "Statistics packets sent.", func(s *api.Sender) any { return s.Sent }),
	gauge("sender_pending_packets", "Packets waiting to be sent.", func(s *api.Sender) any { return s.Pending }),
	counter("sender_retries_total", "Packets sent again.", func(s *api.Sender) any { return s.Retries }),
	gauge("sender_last_sent_timestamp_seconds", "Last accepted packet.", func(s *api.Sender) any { return s.LastSent }),
}
