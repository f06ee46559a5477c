package api

// RankTable compares ranks, hosts, threads, GPUs or roles with their peers: those of the same
// program that do the same work.
type RankTable struct {
	By      string       `json:"by"`      // rank, host, thread, device or role
	Windows []RankWindow `json:"windows"` // in order of time
	// Rows are ordered by program, host and rank, or by role. If there are too many, neighbors share
	// a row, which has the worst ratio of them.
	Rows       []RankRow    `json:"rows"`
	Total      int64        `json:"total"`      // before neighbors were merged
	Efficiency []Efficiency `json:"efficiency"` // by program and time, that of the entire run first
	Slow       []SlowPlace  `json:"slow"`       // the costliest first
	Missing    []NoData     `json:"missing"`    // ranks without data, by program and host
}

// RankWindow is a window of time.
type RankWindow struct {
	From float64 `json:"from_s"`
	To   float64 `json:"to_s"`
}

// RankRow is how a rank, a thread, a GPU or a group of them spent its time, compared with its
// peers. Times of groups are sums.
type RankRow struct {
	Place     string  `json:"place"` // in words
	Program   int64   `json:"program"`
	FirstRank int64   `json:"first_rank"`
	LastRank  int64   `json:"last_rank"`
	Ranks     int64   `json:"ranks"`            // number; may be fewer than those between first and last
	Missing   int64   `json:"missing"`          // ranks of these without data
	Thread    *int64  `json:"thread,omitempty"` // of one thread or GPU
	Host      string  `json:"host"`             // empty for several
	Role      int     `json:"role"`             // 0 for several, and without data
	Peers     int64   `json:"peers"`            // others with the same role
	Useful    float64 `json:"useful_us"`
	Wait      float64 `json:"wait_us"`
	// Lost is the time lost to findings; nil for threads and GPUs.
	Lost *float64 `json:"lost_us" tstype:"number | null,required"`
	// Ratio is the time of the work divided by that of equal work of peers, the worst of a group;
	// nil without peers.
	Ratio   *float64 `json:"ratio" tstype:"number | null,required"`
	Pattern string   `json:"pattern,omitempty"` // when it is slow: always, since, phase, role or roaming
	From    *float64 `json:"from_s" tstype:"number | null,required"`
	To      *float64 `json:"to_s" tstype:"number | null,required"` // nil if it is slow to the end
	// Saved is the time that the run would save if this row were like its peers.
	Saved      float64 `json:"saved_us"`
	Share      float64 `json:"saved_share"`       // of the time of the run
	Finding    int     `json:"finding,omitempty"` // number of the finding about it
	FindingKey string  `json:"finding_key,omitempty"`
	// Ratios has the ratio in each window, the worst of a group: nil without data, 0 if there are data
	// but nothing to compare them with.
	Ratios []*float64 `json:"ratios" tstype:"(number | null)[]"`
}

// Efficiency has the metrics of the POP methodology for a program in a window of time, or in the
// entire run.
type Efficiency struct {
	Program int64   `json:"program"`
	Entire  bool    `json:"entire"` // the window is the entire run
	From    float64 `json:"from_s"`
	To      float64 `json:"to_s"`
	Ranks   int64   `json:"ranks"`
	// Parallel = LoadBalance × Communication: the share of the time of all ranks that is useful.
	Parallel      float64 `json:"parallel"`
	LoadBalance   float64 `json:"load_balance"`  // mean useful time divided by the greatest
	Communication float64 `json:"communication"` // greatest useful time divided by the elapsed time
	Slowest       int64   `json:"slowest_rank"`  // with the greatest useful time
	// The same for the busy time of GPUs; nil without.
	DeviceParallel    *float64 `json:"device_parallel,omitempty"`
	DeviceLoadBalance *float64 `json:"device_load_balance,omitempty"`
}

// SlowPlace is a rank, host, thread, GPU or role that is slower than its peers.
type SlowPlace struct {
	Place      string   `json:"place"`
	Program    int64    `json:"program"`
	Pattern    string   `json:"pattern"` // always, since, phase, role or roaming
	Ratio      float64  `json:"ratio"`   // while it was slow
	Peers      int64    `json:"peers"`
	Weak       bool     `json:"weak"` // too few peers: compared with its own past as well
	From       float64  `json:"from_s"`
	To         *float64 `json:"to_s" tstype:"number | null,required"`
	Saved      float64  `json:"saved_us"`
	Share      float64  `json:"saved_share"`
	Finding    int      `json:"finding,omitempty"`
	FindingKey string   `json:"finding_key,omitempty"`
	Ranks      []int64  `json:"ranks"` // at most 1000
	RankCount  int64    `json:"rank_count"`
	Thread     *int64   `json:"thread,omitempty"` // of one thread or GPU
	// Twin is a peer with a ratio near 1, to compare with; nil if there is none.
	Twin      *int64         `json:"twin" tstype:"number | null,required"`
	Functions []SlowFunction `json:"functions"` // the ones that lost the most time
	Counters  []SlowCounter  `json:"counters"`  // the ones that differ from those of peers, the most unusual first
}

// SlowFunction is a function of a slow peer.
type SlowFunction struct {
	Function   string  `json:"function"`
	FunctionID string  `json:"function_id,omitempty"` // for functions/{id}
	Calls      int64   `json:"calls"`
	Mean       float64 `json:"mean_us"`
	Peers      float64 `json:"peers_mean_us"`
	Lost       float64 `json:"lost_us"` // beyond the time of equal work of peers
	// PeerCalls is the number of calls that a peer makes in the same time, if the place does extra
	// work.
	PeerCalls *float64 `json:"peers_calls,omitempty"`
}

// SlowCounter is a counter of a slow peer that differed from those of its peers while it was slow.
type SlowCounter struct {
	Counter string   `json:"counter"`
	Rate    bool     `json:"rate"` // values are per second, otherwise means of readings
	Value   float64  `json:"value"`
	Peers   float64  `json:"peers_value"`                                // median of peers
	Past    *float64 `json:"past_value" tstype:"number | null,required"` // its own in the rest of the run; nil if unknown
	Spreads float64  `json:"spreads"`                                    // difference to peers divided by their spread
}

// RankFunctions are the functions of ranks or GPUs with the most time.
type RankFunctions struct {
	Functions []RankFunction `json:"functions"` // the one with the most time first
	Ranks     int64          `json:"ranks"`     // ranks, or GPUs, whose functions these are
}

// RankFunction is the work of a function on ranks or GPUs.
type RankFunction struct {
	Function   string  `json:"function"`
	FunctionID string  `json:"function_id,omitempty"` // for functions/{id}
	Calls      int64   `json:"calls"`
	Time       float64 `json:"time_us"`
	Share      float64 `json:"share"` // of the time of these functions
	// Peers is the time of equal work of peers; nil without peers.
	Peers *float64 `json:"peers_us" tstype:"number | null,required"`
}

// SlowEvidence is the evidence that a place is slower than its peers.
type SlowEvidence struct {
	Slow       SlowPlace     `json:"slow"`
	Measure    string        `json:"measure"`                            // meaning of the ratios in Windows
	Windows    []RatioWindow `json:"windows"`                            // in order of time; times without data are missing
	Here       Side          `json:"here"`                               // the place while it was slow: the mean of its ranks, threads or GPUs
	Twin       *Side         `json:"twin" tstype:"Side | null,required"` // a typical peer meanwhile; nil if there is none
	LostOwn    float64       `json:"lost_own_us"`
	LostCaused float64       `json:"lost_caused_us"`
	// SyncShare is the share of time in collective calls while it was slow, and PeerSync the median share of
	// its peers. A late place waits less than the places that wait for it.
	SyncShare  float64 `json:"sync_share"`
	PeerSync   float64 `json:"peer_sync_share"`
	Confidence float64 `json:"confidence"`
	Strength   string  `json:"strength"` // strength of the evidence, in words
	WrongIf    string  `json:"wrong_if"` // condition under which the finding is wrong
}

// RatioWindow is the ratio of a place to its peers in a window of time.
type RatioWindow struct {
	From  float64  `json:"from_s"`
	To    float64  `json:"to_s"`
	Ratio *float64 `json:"ratio" tstype:"number | null,required"` // nil without comparable work
	Slow  bool     `json:"slow"`                                  // within the time for which it is slow
}

// Side is how a place spent its time while another was slow.
type Side struct {
	Place  string  `json:"place"`
	Host   string  `json:"host"` // empty for several, or if unknown
	Useful float64 `json:"useful_us"`
	Wait   float64 `json:"wait_us"`
}

// NoData lists ranks without data.
type NoData struct {
	Program int64  `json:"program"`
	Host    string `json:"host"` // empty if unknown
	Ranks   string `json:"ranks"`
	Count   int64  `json:"count"`
}
