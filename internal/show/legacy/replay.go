package legacy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxPacketFile is the maximum size of a packet file in bytes.
const maxPacketFile = 256 << 20

const (
	filePrefix = "pserver_output_stats_"
	fileSuffix = ".json"
)

// fileName returns the name of the file of a packet.
func fileName(n int) string { return fmt.Sprintf("%s%d%s", filePrefix, n, fileSuffix) }

// packetNumbers returns the files of packets in a directory with their numbers.
func packetNumbers(dir string) (map[string]int, error) {
	entries, err := os.ReadDir(dir)
	numbers := make(map[string]int)
	for _, e := range entries {
		digits, ok1 := strings.CutPrefix(e.Name(), filePrefix)
		digits, ok2 := strings.CutSuffix(digits, fileSuffix)
		if n, err := strconv.Atoi(digits); ok1 && ok2 && err == nil && n >= 0 && !e.IsDir() {
			numbers[filepath.Join(dir, e.Name())] = n
		}
	}
	return numbers, err
}

// PacketFiles returns the files of packets in a directory in the order of their numbers.
func PacketFiles(dir string) ([]string, error) {
	numbers, err := packetNumbers(dir)
	if err == nil && len(numbers) == 0 {
		err = fmt.Errorf("%s has no %s*%s (the parameter server writes them with -stat_outputdir, chimbuko serve with --stats-dir)",
			dir, filePrefix, fileSuffix)
	}
	return slices.SortedFunc(maps.Keys(numbers), func(a, b string) int {
		return cmp.Or(cmp.Compare(numbers[a], numbers[b]), strings.Compare(a, b))
	}), err
}

// Replay adds the packets of files, at a multiple of the speed at which they were made; 0 is
// without pauses. It skips unreadable files, which it reports to onError.
func (p *Packets) Replay(ctx context.Context, files []string, speed float64, onError func(error)) {
	p.mu.Lock()
	p.info.Replay, p.info.Total, p.info.Speed = true, int64(len(files)), speed
	p.mu.Unlock()
	previous := int64(0)
	for _, file := range files {
		packet, err := readPacketFile(file)
		if err != nil {
			p.refuse(err)
			onError(err)
			continue
		}
		if speed > 0 && previous > 0 && packet.Created > previous {
			pause := time.Duration(float64(packet.Created-previous) / speed * float64(time.Millisecond))
			select {
			case <-time.After(min(pause, time.Hour)):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			break
		}
		previous = max(previous, packet.Created)
		p.take(packet)
	}
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
}

func readPacketFile(file string) (*Packet, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxPacketFile {
		return nil, fmt.Errorf("%s has %d bytes (at most %d)", file, info.Size(), maxPacketFile)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	packet, err := ReadPacket(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return packet, nil
}
