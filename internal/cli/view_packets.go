package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
)

// usualSpeed is how many times as fast packets are shown again.
const usualSpeed = 10

// maxPacketFile bounds a file of packets.
const maxPacketFile = 256 << 20

// packetsOnly says what does not go with packets.
func (v *viewFlags) packetsOnly(cmd *cobra.Command, given []string) error {
	f := cmd.Flags()
	switch {
	case v.replay != "" && v.receive:
		return usagef("packets are either replayed or received: give --replay or --receive")
	case len(given) > 0:
		return usagef("packets are shown without a run: give %s or %s", given[0],
			cmp.Or(map[bool]string{true: "--receive"}[v.receive], "--replay"))
	case f.Changed("run"):
		return usagef("--run chooses a run of a store, and packets have none")
	case f.Changed("speed") && v.replay == "":
		return usagef("--speed is for --replay")
	case v.speed < 0 || math.IsNaN(v.speed) || math.IsInf(v.speed, 0):
		return usagef("--speed %g is no speed: 1 is as fast as it was, 0 at once", v.speed)
	}
	return nil
}

// runPackets shows packets until ctx ends.
func runPackets(ctx context.Context, env *Env, flags *viewFlags) error {
	name := "packets"
	var files []string
	if flags.replay != "" {
		var err error
		if files, err = packetFiles(flags.replay); err != nil {
			return err
		}
		if absolute, err := filepath.Abs(flags.replay); err == nil {
			name = filepath.Base(absolute)
		}
	}
	packets := dashboard.NewPackets(name, env.Version, flags.receive)
	cfg := dashboard.Config{Source: packets, Packets: packets, Run: name, Version: env.Version, Token: rand.Text()}
	page, err := flags.page.ServeConfig(ctx, cfg, "", "")
	if err != nil {
		return err
	}
	if flags.receive {
		fmt.Fprintf(env.Stderr, "chimbuko: packets are taken at %s/api/anomalydata from whoever reaches it, without a token\n", page.Address)
	} else {
		fmt.Fprintf(env.Stderr, "chimbuko: %s of %s\n", counted(len(files), "packet"), flags.replay)
	}
	tellAddress(env, page.Address, page.Token)
	if flags.open {
		defer openBrowser(ctx, env, page.URL())()
	}
	fmt.Fprintf(env.Stderr, "chimbuko: Ctrl-C ends it\n")
	if files != nil {
		packets.Replay(len(files), flags.speed)
		replayPackets(ctx, env, files, flags.speed, packets)
		packets.End()
	}
	return page.Wait()
}

const (
	packetPrefix = "pserver_output_stats_"
	packetSuffix = ".json"
)

// packetFiles are the files of packets in a directory, in the order of their numbers.
func packetFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("--replay: %w", err)
	}
	numbers := make(map[string]uint64)
	var files []string
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), packetPrefix)
		n, err := strconv.ParseUint(strings.TrimSuffix(digits, packetSuffix), 10, 64)
		if ok && err == nil && strings.HasSuffix(e.Name(), packetSuffix) && !e.IsDir() {
			file := filepath.Join(dir, e.Name())
			numbers[file], files = n, append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("--replay: no %s*%s is in %s; the parameter server writes them with -stat_outputdir, chimbuko serve with "+
			"--stats-dir", packetPrefix, packetSuffix, dir)
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(numbers[a], numbers[b]), strings.Compare(a, b)) })
	return files, nil
}

// replayPackets takes the packets of files, as far apart as they were made divided by the
// speed. What cannot be read is told and left out.
func replayPackets(ctx context.Context, env *Env, files []string, speed float64, packets *dashboard.Packets) {
	var before int64
	for _, file := range files {
		packet, err := readPacketFile(file)
		if err != nil {
			packets.Refuse(err)
			fmt.Fprintf(env.Stderr, "chimbuko: %v; it is left out\n", err)
			continue
		}
		if speed > 0 && before > 0 && packet.Created > before {
			pause := time.Duration(float64(packet.Created-before) / speed * float64(time.Millisecond))
			if sleep(ctx, min(pause, time.Hour)) != nil {
				return
			}
		}
		before = max(before, packet.Created)
		packets.Take(packet)
	}
}

func readPacketFile(file string) (*summary.Packet, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxPacketFile {
		return nil, fmt.Errorf("%s has %d bytes, a packet has %d at most", file, info.Size(), maxPacketFile)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	packet, err := summary.ReadPacket(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return packet, nil
}
