// Package service runs the processes that work on a run while its program runs: the
// services (message bus, parameter server, store, HTTP), and the analyzers that read
// traces and share what they learn.
package service

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// The services, each of which a process may run or leave to another.
const (
	RoleBus    = "nats"
	RoleParams = "params"
	RoleStore  = "store"
	RoleWeb    = "web"
)

// AllRoles are all services.
var AllRoles = []string{RoleBus, RoleParams, RoleStore, RoleWeb}

// ErrInterrupted says that a process ended before its run or its work had.
var ErrInterrupted = errors.New("interrupted")

// Config says which services of a run a process has, and how they work.
type Config struct {
	Store rundir.Config
	Bus   Bus
	Page  viewer.Options // Cert and Key are also those of the message bus
	Roles []string

	Listen    string // host:port of the message bus
	ClientCA  string // file; clients of the message bus need a certificate that it signed
	MaxStream int64  // megabytes of records that may wait for the store
	Replicas  int    // servers of a cluster that keep those records

	Shards, Shard int           // of the parameter server; the first starts the others
	Ranks         int           // of the run; 0 if they are not known
	Linger        time.Duration // for further analyzers, when all ranks have ended
	Snapshot      time.Duration // between snapshots of the parameter server
	LoadModel     string        // file
	SaveModel     string        // file
	FreezeModel   bool          // learn nothing
	Reopen        bool          // resume a run that was interrupted
	Lost          []string      // analyzers that do not come back

	StatsURL    string
	StatsDir    string
	StatsPeriod time.Duration
	StatsSchema int           // 1 or 2
	StatsFlush  time.Duration // how long the end waits for a receiver

	Stay bool // serve the page after the end until ctx ends

	Version, Commit string
	Settings        map[string]string // all flags, for run.json
	Environ         []string
	Stderr          io.Writer // for people
	ShowToken       bool      // whether only its owner can read Stderr
	Log             *slog.Logger
	ShardArgs       []string                 // that a process of a further shard is started with
	Orders          <-chan string            // what the process says that started this one; nil if none did
	Print           func(*provdb.Info) error // shows the results of the run
}

func (c *Config) has(role string) bool { return slices.Contains(c.Roles, role) }
