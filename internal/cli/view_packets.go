package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/legacy"
)

// defaultSpeed is the default speed of a replay.
const defaultSpeed = 10

// packetsOnly rejects arguments and flags that do not apply to packets.
func (v *viewFlags) packetsOnly(cmd *cobra.Command, args []string) error {
	f := cmd.Flags()
	switch {
	case v.replay != "" && v.receive:
		return usage.Errorf("--replay and --receive exclude each other")
	case len(args) > 0:
		return usage.Errorf("packets are shown without a run: give either %s or %s", args[0],
			cmp.Or(map[bool]string{true: "--receive"}[v.receive], "--replay"))
	case f.Changed("run"):
		return usage.Errorf("--run needs a store, and packets have none")
	case f.Changed("speed") && v.replay == "":
		return usage.Errorf("--speed needs --replay")
	case v.speed < 0 || math.IsNaN(v.speed) || math.IsInf(v.speed, 0):
		return usage.Errorf("--speed must be ≥ 0, not %g (1 is the original speed, 0 has no pauses)", v.speed)
	}
	return nil
}

// runPackets serves the page of packets until ctx ends.
func runPackets(ctx context.Context, env *Env, flags *viewFlags) error {
	name := "packets"
	var files []string
	if flags.replay != "" {
		var err error
		if files, err = legacy.PacketFiles(flags.replay); err != nil {
			return fmt.Errorf("--replay: %w", err)
		}
		if absolute, err := filepath.Abs(flags.replay); err == nil {
			name = filepath.Base(absolute)
		}
	}
	packets := legacy.NewPackets(name, env.Version, flags.receive)
	cfg := dashboard.Config{Config: insight.Config{Source: packets, Run: name}, Packets: packets, Version: env.Version, Token: rand.Text()}
	page, err := flags.page.ServeConfig(ctx, cfg, "", "")
	if err != nil {
		return err
	}
	if flags.receive {
		fmt.Fprintf(env.Stderr, "chimbuko: receiving packets at %s%s from any client, without a token\n", page.Address, legacy.Path)
	} else {
		fmt.Fprintf(env.Stderr, "chimbuko: replaying %s from %s\n", text.Count(len(files), "packet"), flags.replay)
	}
	printAddress(env, page.Address, page.Token, "")
	if flags.open {
		defer openBrowser(ctx, env, page.URL())()
	}
	fmt.Fprintf(env.Stderr, "chimbuko: press Ctrl-C to stop\n")
	if files != nil {
		packets.Replay(ctx, files, flags.speed, func(err error) { fmt.Fprintf(env.Stderr, "chimbuko: skipping packet: %v\n", err) })
	}
	return page.Wait()
}
