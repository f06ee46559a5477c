// Package nsight reads exports of Nsight Systems: the SQLite databases of nsys export.
package nsight

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/source/sqlitefile"
	"github.com/chimbuko/chimbuko/internal/source/sqlitetrace"
)

// Format is the format of exports.
var Format = sqlitetrace.Format{
	Name: "Nsight", Program: "Nsight Systems", Command: "nsys profile --trace=cuda,nvtx", Recognize: isExport, Read: read,
}

// isExport reports whether a database is an export: it has the texts of all tables, and a table of its own.
func isExport(db *sqlitefile.DB) bool {
	if db.Table("StringIds") == nil {
		return false
	}
	for _, t := range db.Tables() {
		if strings.HasPrefix(t.Name, "CUPTI_ACTIVITY_KIND_") || strings.HasPrefix(t.Name, "TARGET_INFO_") || t.Name == "NVTX_EVENTS" {
			return true
		}
	}
	return false
}

// Global ids of processes and threads have the process and the thread in 24 bits each, after bits of the host and the machine.
func pidOf(global int64) int64 { return global >> 24 & 0xffffff }
func tidOf(global int64) int64 { return global & 0xffffff }

// export is an export that is read.
type export struct {
	*sqlitetrace.Builder
	strings *sqlitetrace.Texts
	name    []byte // without numbers
}

func read(b *sqlitetrace.Builder) error {
	n := &export{Builder: b, strings: b.Texts("StringIds", "id", "value")}
	for _, read := range []func() error{
		func() error { return n.readAPI("CUPTI_ACTIVITY_KIND_RUNTIME") },
		func() error { return n.readAPI("CUPTI_ACTIVITY_KIND_DRIVER") }, // of old versions
		n.readRanges,
		n.readMPI,
		n.readKernels,
		func() error { return n.readCopies("CUPTI_ACTIVITY_KIND_MEMCPY") },
		func() error { return n.readCopies("CUPTI_ACTIVITY_KIND_MEMSET") },
		n.readGraphs,
	} {
		if err := read(); err != nil {
			return err
		}
	}
	n.describe()
	return nil
}

// apiVersion is the version at the end of the name of a call, such as cudaLaunchKernel_v7000.
var apiVersion = regexp.MustCompile(`_v[0-9]+$`)

// eventClassBacktrace is the class of duplicates of calls, recorded with their callers.
const eventClassBacktrace = 67

// readAPI reads calls of CUDA.
func (n *export) readAPI(table string) error {
	rows := n.Rows(table, "start", "end", "globalTid", "?correlationId", "?nameId", "??eventClass")
	if rows == nil {
		return nil
	}
	for rows.Next() {
		if class, _ := rows.Int(5); class == eventClassBacktrace {
			n.Tally.Add(tally.EventsIgnored, 1)
			continue
		}
		id, ok := rows.Int(4)
		name := n.Name(n.strings, id, ok, "CUDA call")
		if at := bytes.LastIndex(name, []byte("_v")); at > 0 && apiVersion.Match(name[at:]) {
			name = name[:at]
		}
		if err := n.addCall(rows, profile.Runtime, name, 3); err != nil {
			return err
		}
	}
	return nil
}

// addCall adds a call of the host: columns 0 to 2 are start, end and globalTid. correlation is the column of the correlation
// id, or -1.
func (n *export) addCall(rows *sqlitefile.Rows, category profile.Category, name []byte, correlation int) error {
	start, ok1 := rows.Int(0)
	end, ok2 := rows.Int(1)
	if !ok1 || !ok2 {
		n.Tally.Add(tally.EventsIgnored, 1) // has not ended
		return nil
	}
	global, _ := rows.Int(2)
	e := n.Begin(category, name, start, end)
	e.Process, e.Thread = n.Number(pidOf(global)), n.Number(tidOf(global))
	if correlation >= 0 {
		id, _ := rows.Int(correlation)
		e.Correlation = uint64(max(id, 0))
	}
	return n.Add(pidOf(global))
}

// Types of NVTX events.
const (
	nvtxPushPop  = 59
	nvtxStartEnd = 60 // may overlap others, and end on another thread
)

// readRanges reads NVTX ranges.
func (n *export) readRanges() error {
	rows := n.Rows("NVTX_EVENTS", "start", "end", "globalTid", "?eventType", "?text", "?textId")
	if rows == nil {
		return nil
	}
	for rows.Next() {
		kind, ok := rows.Int(3)
		if ok && kind != nvtxPushPop && kind != nvtxStartEnd {
			n.Tally.Add(tally.EventsIgnored, 1)
			continue
		}
		name := rows.Text(4)
		if len(name) == 0 {
			id, ok := rows.Int(5)
			name = n.Name(n.strings, id, ok, "NVTX range")
		}
		name = n.withoutSequence(name)
		if kind != nvtxStartEnd {
			if err := n.addCall(rows, profile.Annotation, name, -1); err != nil {
				return err
			}
			continue
		}
		if err := n.addAsync(rows, name); err != nil {
			return err
		}
	}
	return nil
}

// withoutSequence removes the numbers that PyTorch adds to the names of operators, as in "aten::add, seq = 12, op_id = 34".
func (n *export) withoutSequence(name []byte) []byte {
	n.name = append(n.name[:0], name...)
	name = n.name
	for _, mark := range []string{", seq = ", ", op_id = "} {
		if at := bytes.Index(name, []byte(mark)); at > 0 {
			end := at + len(mark)
			for end < len(name) && (name[end] == '-' || name[end] >= '0' && name[end] <= '9') {
				end++
			}
			name = append(name[:at], name[end:]...)
		}
	}
	return name
}

// addAsync adds a range that may overlap others of its thread.
func (n *export) addAsync(rows *sqlitefile.Rows, name []byte) error {
	start, ok1 := rows.Int(0)
	end, ok2 := rows.Int(1)
	if !ok1 || !ok2 {
		n.Tally.Add(tally.EventsIgnored, 1)
		return nil
	}
	global, _ := rows.Int(2)
	for i, at := range []int64{start, end} {
		e := n.Begin(profile.Annotation, name, at, at)
		e.Kind, e.Key = profile.AsyncBegin+profile.Kind(i), uint64(rows.ID())<<1|1
		e.Process, e.Thread = n.Number(pidOf(global)), n.Number(tidOf(global))
		if err := n.Add(pidOf(global)); err != nil {
			return err
		}
	}
	return nil
}

// activity are the columns of all activities of GPUs, before others.
var activity = []string{"start", "end", "?deviceId", "?streamId", "?correlationId", "?globalPid"}

// addActivity adds an activity of a GPU. The event has been begun with its category and name.
func (n *export) addActivity(rows *sqlitefile.Rows) error {
	start, ok1 := rows.Int(0)
	end, ok2 := rows.Int(1)
	if !ok1 || !ok2 || start == 0 && end == 0 { // CUPTI could not measure it
		n.Tally.Add(tally.TimeImplausible, 1)
		return nil
	}
	e := n.Event()
	e.Start, e.Duration = start, end-start
	device, _ := rows.Int(2)
	stream, _ := rows.Int(3)
	id, _ := rows.Int(4)
	e.Process, e.Thread, e.Correlation = n.Number(device), n.Number(stream), uint64(max(id, 0))
	global, ok := rows.Int(5)
	pid := pidOf(global)
	if !ok && len(n.Processes()) > 0 {
		pid = n.Processes()[0].ID
	}
	return n.Add(pid)
}

// readKernels reads kernels.
func (n *export) readKernels() error {
	rows := n.Rows("CUPTI_ACTIVITY_KIND_KERNEL", append(slices.Clip(activity),
		"?demangledName", "?shortName", "?gridX", "?gridY", "?gridZ", "?blockX", "?blockY", "?blockZ")...)
	if rows == nil {
		return nil
	}
	for rows.Next() {
		id, ok := rows.Int(6)
		if !ok {
			id, ok = rows.Int(7)
		}
		n.Begin(profile.Kernel, n.Name(n.strings, id, ok, "kernel"), 0, 0)
		var shape [6]int64
		ok = true
		for i := range shape {
			var known bool
			shape[i], known = rows.Int(8 + i)
			ok = ok && known
		}
		if ok {
			n.SetArg(profile.Grid, shape[0], shape[1], shape[2])
			n.SetArg(profile.Block, shape[3], shape[4], shape[5])
		}
		if err := n.addActivity(rows); err != nil {
			return err
		}
	}
	return nil
}

// copyKinds are the kinds of copies of CUPTI.
var copyKinds = []string{
	"Memcpy", "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA", "Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA", "Memcpy DtoD",
	"Memcpy HtoH", "Memcpy PtoP", "Unified Memory HtoD", "Unified Memory DtoH", "Unified Memory DtoD",
}

// readCopies reads copies and sets of memory.
func (n *export) readCopies(table string) error {
	kind := "??copyKind"
	if table == "CUPTI_ACTIVITY_KIND_MEMCPY" {
		kind = "?copyKind"
	}
	rows := n.Rows(table, append(slices.Clip(activity), "?bytes", kind)...)
	if rows == nil {
		return nil
	}
	for rows.Next() {
		name := "Memset"
		if table == "CUPTI_ACTIVITY_KIND_MEMCPY" {
			kind, _ := rows.Int(7)
			name = copyKinds[0]
			if kind > 0 && kind < int64(len(copyKinds)) {
				name = copyKinds[kind]
			}
		}
		n.Begin(profile.Transfer, n.SetName(name), 0, 0)
		if size, ok := rows.Int(6); ok {
			n.SetArg(profile.Bytes, size)
		}
		if err := n.addActivity(rows); err != nil {
			return err
		}
	}
	return nil
}

// readGraphs reads CUDA graphs that were recorded as a whole, without their kernels.
func (n *export) readGraphs() error {
	rows := n.Rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", append(slices.Clip(activity), "?graphId")...)
	if rows == nil {
		return nil
	}
	for rows.Next() {
		id, _ := rows.Int(6)
		n.Begin(profile.Kernel, strconv.AppendInt(n.SetName("CUDA graph "), id, 10), 0, 0)
		if err := n.addActivity(rows); err != nil {
			return err
		}
	}
	return nil
}

// describe sets names, ranks, hosts, devices and the beginning of time.
func (n *export) describe() {
	var p profile.Properties
	if rows := n.Rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs"); rows != nil && rows.Next() {
		if base, _ := rows.Int(0); base > 0 && base < profile.MaxTime {
			p.Base = base
		}
	}
	environment := ""
	if rows := n.Rows("TARGET_INFO_SYSTEM_ENV", "name", "value"); rows != nil {
		for rows.Next() {
			switch string(rows.Text(0)) {
			case "Hostname":
				p.Host = string(rows.Text(1))
			case "DeviceEnvironment":
				environment = string(rows.Text(1))
			}
		}
	}
	if rows := n.Rows("TARGET_INFO_GPU", "name", "??cuDevice", "?id"); rows != nil {
		for rows.Next() && len(p.Devices) < 1<<10 {
			id, ok := rows.Int(1)
			if !ok {
				id, _ = rows.Int(2)
			}
			p.Devices = append(p.Devices, profile.Device{ID: int(id), Name: string(rows.Text(0))})
		}
	}
	for _, table := range []string{"META_DATA_EXPORT", "EXPORT_META_DATA"} {
		if rows := n.Rows(table, "name", "value"); rows != nil {
			for rows.Next() {
				if string(rows.Text(0)) == "EXPORT_PRODUCT_VERSION" {
					p.Facts = append(p.Facts, profile.Fact{Key: "Profiler version", Value: string(rows.Text(1))})
				}
			}
		}
	}
	for _, process := range n.Processes() {
		process.Properties = p
	}
	n.nameProcesses()
	n.findRanks(environment)
}

// nameProcesses sets the names of processes and threads.
func (n *export) nameProcesses() {
	if rows := n.Rows("PROCESSES", "globalPid", "name"); rows != nil {
		for rows.Next() {
			global, _ := rows.Int(0)
			if p := n.Process(pidOf(global)); p != nil {
				p.NameProcess(n.Number(p.ID).Text, string(rows.Text(1)))
			}
		}
	}
	rows := n.Rows("ThreadNames", "globalTid", "nameId")
	for rows != nil && rows.Next() {
		global, _ := rows.Int(0)
		id, _ := rows.Int(1)
		p := n.Process(pidOf(global))
		if p == nil {
			continue
		}
		name := n.strings.Get(id)
		p.NameThread(n.Number(p.ID), n.Number(tidOf(global)), name)
		if digits, ok := strings.CutPrefix(name, "MPI Rank "); ok && p.Rank < 0 {
			if rank, err := strconv.ParseInt(digits, 10, 31); err == nil {
				p.Rank = rank
			}
		}
	}
}

// findRanks sets the ranks that MPI reported, or that in the environment of a single process.
func (n *export) findRanks(environment string) {
	if rows := n.Rows("MPI_RANKS", "globalTid", "rank"); rows != nil {
		for rows.Next() {
			global, _ := rows.Int(0)
			rank, ok := rows.Int(1)
			if p := n.Process(pidOf(global)); p != nil && ok {
				p.Rank = rank
			}
		}
	}
	variables := strings.FieldsFunc(environment, func(r rune) bool { return r == ';' || r == 0 || r == '\n' })
	rank, world := sqlitetrace.RankOf(func(name string) (string, bool) {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok && name != "" {
				return value, true
			}
		}
		return "", false
	})
	for _, p := range n.Processes() {
		p.Properties.World = world
	}
	if p := n.Single(); p != nil && p.Rank < 0 {
		p.Rank = rank
	}
}
