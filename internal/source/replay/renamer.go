package replay

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// renamer changes ranks and times in the attributes of a copy.
type renamer struct {
	ranks  int         // added to all ranks
	copy   int         // 0 is the recorded dataset
	world  int         // number of all ranks; 0: as recorded
	offset trace.Ticks // added to all times
}

// Keys of TAU's metadata that differ between copies.
var (
	hostKeys  = map[string]bool{"Hostname": true, "Node Name": true, "MPI Processor Name": true, "MPI Host Name": true}
	microKeys = map[string]bool{"Starting Timestamp": true, "Timestamp": true}
	clockKeys = map[string]bool{"Local Time": true, "UTC Time": true}
)

const (
	keyWorldRank = "MPI Comm World Rank"
	keyWorldSize = "MPI Comm World Size"
)

// attribute returns the name and the value of an attribute in the copy.
func (r *renamer) attribute(name, value string) (string, string) {
	m, ok := tau.ParseMetadata(name)
	if !ok {
		return name, value
	}
	if r.ranks != 0 {
		name = moveRanks(name, r.ranks)
	}
	switch {
	case hostKeys[m.Key] && r.copy > 0:
		value = fmt.Sprintf("%s-copy%d", value, r.copy)
	case m.Key == keyWorldRank:
		value = moveNumber(value, int64(r.ranks))
	case m.Key == keyWorldSize && r.world > 0:
		value = strconv.Itoa(r.world)
	case microKeys[m.Key]:
		value = moveNumber(value, int64(r.offset))
	case clockKeys[m.Key] && r.offset != 0:
		if t, err := time.Parse(time.RFC3339, value); err == nil {
			value = t.Add(time.Duration(r.offset) * time.Microsecond).Format(layoutOf(value))
		}
	}
	return name, value
}

// layoutOf returns the layout of a time by TAU: UTC with a Z, or a numeric zone.
func layoutOf(text string) string {
	if strings.HasSuffix(text, "Z") {
		return time.RFC3339
	}
	return "2006-01-02T15:04:05-07:00"
}

// moveNumber adds n to a decimal number, and returns other text unchanged.
func moveNumber(text string, n int64) string {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n == 0 {
		return text
	}
	return strconv.FormatInt(v+n, 10)
}

// moveRanks adds n to the ranks in a name such as "MetaData:0:5:CUDA Stream". TAU
// sometimes joins two names.
func moveRanks(name string, n int) string {
	const prefix = "MetaData:"
	parts := strings.Split(name, prefix)
	for i := 1; i < len(parts); i++ {
		rank, rest, ok := strings.Cut(parts[i], ":")
		if ok {
			parts[i] = moveNumber(rank, int64(n)) + ":" + rest
		}
	}
	return strings.Join(parts, prefix)
}

// copyPath returns the path of the dataset of another rank: tau-metrics-app-1.bp
// becomes tau-metrics-app-5.bp. A name without the rank gets one.
func copyPath(path string, rank, to int) string {
	ext := filepath.Ext(path)
	stem := strings.TrimSuffix(strings.TrimSuffix(path, ext), "-"+strconv.Itoa(rank))
	return stem + "-" + strconv.Itoa(to) + ext
}
