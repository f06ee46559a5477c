package dashboard

import (
	"cmp"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/prometheus/client_golang/prometheus"
)

// named is a metric with its name, help, type and labels. A table of them is all
// that there is of each part; docs/api.md lists the names.
type named struct {
	name string
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gauge(name, help string, labels ...string) named {
	name = "chimbuko_" + name
	return named{name, prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

func counter(name, help string, labels ...string) named {
	m := gauge(name, help, labels...)
	m.kind = prometheus.CounterValue
	return m
}

// metric is a number of a part of the Status.
type metric[T any] struct {
	named
	value func(*T) float64
}

var (
	up        = gauge("up", "1 if the state of the pipeline could be had.")
	buildInfo = gauge("build_info", "1, with the version of the program.", "version")
	runInfo   = gauge("run_info", "1, with the name of the run.", "run")
	runState  = gauge("run_state", "1 for the state that the run is in.", "state")
	healthy   = gauge("healthy", "1 if the part is well; severity says how bad it is if not.", "part", "severity")

	nodeInfo         = gauge("node_info", "1, with host and process of an analyzer.", "node", "host", "pid")
	nodeState        = gauge("node_state", "1 for the state that the analyzer is in.", "node", "state")
	nodeKindEvents   = counter("node_kind_events_total", "Events read, by kind.", "node", "kind")
	nodeStageSeconds = counter("node_stage_seconds_total", "Time spent in each stage of the work on steps.", "node", "stage")
	nodeStageRuns    = counter("node_stage_runs_total", "How often each stage was run.", "node", "stage")
	nodeTallies      = counter("node_tally_total", "What was repaired, skipped or lost, by name.", "node", "tally", "severity")
	nodeExchange     = gauge("node_exchange_seconds", "How long exchanges with the parameter server took, as the analyzer saw it.", "node")

	shardExchange = gauge("shard_exchange_seconds", "How long the parameter server took for exchanges; quantiles are of a recent time.",
		"shard")

	rankLagMax   = gauge("rank_lag_max_seconds", "How far the slowest of all ranks is behind.")
	ranksWithout = gauge("ranks_without_series", "Ranks that have no series of their own because there are too many.")
)

var statusMetrics = []metric[api.Status]{
	{gauge("run_started_timestamp_seconds", "When the run began."), func(s *api.Status) float64 { return unix(s.Run.Started) }},
	{gauge("ranks", "Ranks seen."), func(s *api.Status) float64 { return float64(s.Totals.Ranks) }},
	{gauge("ranks_ended", "Ranks whose trace has ended."), func(s *api.Status) float64 { return float64(s.Totals.RanksEnded) }},
	{
		gauge("ranks_expected", "Ranks that should come; 0 if that is not known."),
		func(s *api.Status) float64 { return float64(s.Totals.RanksExpected) },
	},
	{counter("steps_total", "Steps analyzed, over all ranks."), func(s *api.Status) float64 { return float64(s.Totals.Steps) }},
	{counter("events_total", "Events read."), func(s *api.Status) float64 { return float64(s.Totals.Events) }},
	{counter("calls_total", "Completed calls judged."), func(s *api.Status) float64 { return float64(s.Totals.Calls) }},
	{
		counter("anomalies_total", "Calls flagged during the run, before the review at its end."),
		func(s *api.Status) float64 { return float64(s.Totals.Anomalies) },
	},
	{gauge("functions", "Functions known."), func(s *api.Status) float64 { return float64(s.Totals.Functions) }},
	{counter("read_bytes_total", "Bytes of traces read."), func(s *api.Status) float64 { return float64(s.Totals.BytesRead) }},
	{
		counter("records_sent_total", "Records that analyzers sent to the store."),
		func(s *api.Status) float64 { return float64(s.Totals.RecordsSent) },
	},
	{counter("records_stored_total", "Records that are stored."), func(s *api.Status) float64 { return float64(s.Totals.RecordsStored) }},
}

var nodeMetrics = []metric[api.Node]{
	{
		gauge("node_last_heard_timestamp_seconds", "When the analyzer was last heard of.", "node"),
		func(n *api.Node) float64 { return unix(n.LastHeard) },
	},
	{gauge("node_ranks", "Ranks that the analyzer reads.", "node"), func(n *api.Node) float64 { return float64(n.Ranks) }},
	{counter("node_steps_read_total", "Steps read.", "node"), func(n *api.Node) float64 { return float64(n.StepsRead) }},
	{
		counter("node_steps_exchanged_total", "Steps whose statistics the parameter server has.", "node"),
		func(n *api.Node) float64 { return float64(n.StepsExchanged) },
	},
	{gauge("node_lag_seconds", "How far the analyzer is behind the newest data.", "node"), func(n *api.Node) float64 { return n.Behind }},
	{counter("node_events_total", "Events read.", "node"), func(n *api.Node) float64 { return float64(n.Events) }},
	{counter("node_calls_total", "Completed calls judged.", "node"), func(n *api.Node) float64 { return float64(n.Calls) }},
	{gauge("node_open_calls", "Calls that have not ended.", "node"), func(n *api.Node) float64 { return float64(n.OpenCalls) }},
	{counter("node_anomalies_total", "Calls flagged.", "node"), func(n *api.Node) float64 { return float64(n.Anomalies) }},
	{counter("node_read_bytes_total", "Bytes of traces read.", "node"), func(n *api.Node) float64 { return float64(n.BytesRead) }},
	{counter("node_records_sent_total", "Records sent to the store.", "node"), func(n *api.Node) float64 { return float64(n.RecordsSent) }},
	{gauge("node_outbox_messages", "Messages that wait to be sent.", "node"), func(n *api.Node) float64 { return float64(n.OutboxMessages) }},
	{gauge("node_outbox_bytes", "Bytes that wait to be sent.", "node"), func(n *api.Node) float64 { return float64(n.OutboxBytes) }},
	{counter("node_drops_total", "Messages given up.", "node"), func(n *api.Node) float64 { return float64(n.Drops) }},
	{gauge("node_exchange_last_seconds", "How long the last exchange took.", "node"), func(n *api.Node) float64 { return n.Exchange.Last }},
	{gauge("node_exchange_max_seconds", "How long the longest exchange took.", "node"), func(n *api.Node) float64 { return n.Exchange.Max }},
	{
		counter("node_exchange_sent_bytes_total", "Bytes sent to the parameter server.", "node"),
		func(n *api.Node) float64 { return float64(n.ExchangeSent) },
	},
	{
		counter("node_exchange_received_bytes_total", "Bytes received from the parameter server.", "node"),
		func(n *api.Node) float64 { return float64(n.ExchangeGot) },
	},
	{gauge("node_resident_memory_bytes", "Memory of the analyzer.", "node"), func(n *api.Node) float64 { return float64(n.RSS) }},
	{counter("node_cpu_seconds_total", "Processor time of the analyzer.", "node"), func(n *api.Node) float64 { return n.CPU }},
}

// firstRanks ends the help of what is known of single ranks.
var firstRanks = " Of the first " + strconv.Itoa(maxRankSeries) +
	" ranks only, by program and number; chimbuko_ranks_without_series counts the others."

var rankMetrics = []metric[api.Rank]{
	{gauge("rank_step", "The last step read."+firstRanks, "program", "rank"), func(r *api.Rank) float64 { return float64(r.Step) }},
	{
		gauge("rank_lag_seconds", "How far the rank is behind its newest data."+firstRanks, "program", "rank"),
		func(r *api.Rank) float64 { return r.Behind },
	},
	{
		counter("rank_anomalies_total", "Calls flagged."+firstRanks, "program", "rank"),
		func(r *api.Rank) float64 { return float64(r.Anomalies) },
	},
}

// compareRanks orders ranks by program and number.
func compareRanks(a, b api.Rank) int {
	return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Rank, b.Rank))
}

var shardMetrics = []metric[api.Shard]{
	{
		counter("shard_exchanges_total", "Exchanges of the parameter server.", "shard"),
		func(s *api.Shard) float64 { return float64(s.Exchanges) },
	},
	{
		counter("shard_exchanges_repeated_total", "Exchanges that had been done before.", "shard"),
		func(s *api.Shard) float64 { return float64(s.Repeated) },
	},
	{
		counter("shard_exchanges_refused_total", "Exchanges that made no sense.", "shard"),
		func(s *api.Shard) float64 { return float64(s.Refused) },
	},
	{counter("shard_received_bytes_total", "Bytes received.", "shard"), func(s *api.Shard) float64 { return float64(s.BytesIn) }},
	{counter("shard_sent_bytes_total", "Bytes sent.", "shard"), func(s *api.Shard) float64 { return float64(s.BytesOut) }},
	{gauge("shard_models", "Models held.", "shard"), func(s *api.Shard) float64 { return float64(s.Models) }},
	{gauge("shard_functions", "Functions known.", "shard"), func(s *api.Shard) float64 { return float64(s.Functions) }},
	{gauge("shard_model_version", "Version of the models.", "shard"), func(s *api.Shard) float64 { return float64(s.Version) }},
}

var snapshotMetrics = []metric[api.Snapshot]{
	{gauge("shard_snapshot_age_seconds", "Age of the last copy on disk.", "shard"), func(s *api.Snapshot) float64 { return s.Age }},
	{gauge("shard_snapshot_duration_seconds", "How long writing it took.", "shard"), func(s *api.Snapshot) float64 { return s.Duration }},
	{gauge("shard_snapshot_bytes", "Its size.", "shard"), func(s *api.Snapshot) float64 { return float64(s.Bytes) }},
}

var storeMetrics = []metric[api.StoreStatus]{
	{counter("store_records_total", "Records that this process stored."), func(s *api.StoreStatus) float64 { return float64(s.Records) }},
	{
		gauge("store_pending_messages", "Messages that wait to be stored."),
		func(s *api.StoreStatus) float64 { return float64(s.PendingMessages) },
	},
	{gauge("store_pending_bytes", "Bytes that wait to be stored."), func(s *api.StoreStatus) float64 { return float64(s.PendingBytes) }},
	{gauge("store_lag_seconds", "Age of the oldest record that is not stored."), func(s *api.StoreStatus) float64 { return s.Lag }},
	{gauge("store_failing", "1 if the last write failed."), func(s *api.StoreStatus) float64 { return flag(s.LastError != "") }},
}

var senderMetrics = []metric[api.Sender]{
	{counter("sender_packets_total", "Packets of live statistics sent."), func(s *api.Sender) float64 { return float64(s.Sent) }},
	{gauge("sender_pending_packets", "Packets that wait to be sent."), func(s *api.Sender) float64 { return float64(s.Pending) }},
	{counter("sender_retries_total", "Packets sent again."), func(s *api.Sender) float64 { return float64(s.Retries) }},
	{gauge("sender_last_sent_timestamp_seconds", "When a packet was last taken."), func(s *api.Sender) float64 { return unix(s.LastSent) }},
}
