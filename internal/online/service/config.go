// Package service runs the services of a run while its program runs: message bus, parameter
// server, store, HTTP.
package service

import (
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/online/paramserver"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// The services. A process runs one or more of them.
const (
	RoleBus    = "nats"
	RoleParams = "params"
	RoleStore  = "store"
	RoleWeb    = "web"
)

// AllRoles are all services.
var AllRoles = []string{RoleBus, RoleParams, RoleStore, RoleWeb}

// Config configures the services of a run in a process.
type Config struct {
	Store rundir.Config
	Bus   node.Bus
	Page  viewer.Options // the message bus uses Cert and Key as well
	Roles []string

	Listen    string // host:port of the message bus
	ClientCA  string // file; clients of the message bus need a certificate that it signed
	MaxStream int64  // megabytes of records that may wait for the store
	Replicas  int    // servers of a cluster that keep those records

	paramserver.Config               // without Run, InitialModels and Refresh; the first shard starts the others
	Snapshot           time.Duration // between snapshots of the parameter server
	LoadModel          string        // file
	SaveModel          string        // file
	Reopen             bool          // resume a run that was interrupted
	Lost               []string      // analyzers that are lost

	StatsURL    string
	StatsDir    string
	StatsPeriod time.Duration
	StatsSchema int           // 1 or 2
	StatsFlush  time.Duration // how long to wait for a receiver at the end

	OnFinding string // command for the shell, for each new finding; empty for none

	KeepPage bool // serve the page after the end until ctx ends

	Version, Commit string
	Settings        map[string]string // all flags, for run.json
	Environ         []string
	Stderr          io.Writer // for people
	ShowToken       bool      // whether only its owner can read Stderr
	Log             *slog.Logger
	ShardArgs       []string                 // additional arguments of processes of other shards
	Commands        <-chan string            // lines from the supervising process; nil without
	PrintResults    func(*provdb.Info) error // shows the results of the run
}

func (c *Config) has(role string) bool { return slices.Contains(c.Roles, role) }
