package conformance

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
)

// writeNsight writes an export for each rank, with calls as NVTX ranges. It has no messages.
func writeNsight(t *testing.T, dir string, p *program) {
	t.Helper()
	for _, rank := range p.ranks() {
		ids := make(map[string]int)
		sql := []string{
			"CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
			"CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER)",
			"CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT NOT NULL, value TEXT NOT NULL)",
			fmt.Sprintf("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', '%s'), ('DeviceEnvironment', 'A=b;PMI_RANK=%d')",
				p.hosts[rank], rank),
		}
		p.eachCall(rank, func(thread int, c call) {
			if _, ok := ids[c.name]; !ok {
				ids[c.name] = len(ids)
				sql = append(sql, fmt.Sprintf("INSERT INTO StringIds VALUES (%d, '%s')", ids[c.name], strings.ReplaceAll(c.name, "'", "''")))
			}
			pid := 1000 + int64(rank)
			tid := pid<<24 | (pid + int64(thread))
			sql = append(sql, fmt.Sprintf("INSERT INTO NVTX_EVENTS VALUES (%d, %d, 59, NULL, %d, %d)", c.start, c.end, tid, ids[c.name]))
		})
		sqlitetest.Write(t, filepath.Join(dir, fmt.Sprintf("report%d.sqlite", rank)), sql...)
	}
}

// rocpdWriter returns a function that writes a database for each rank, with calls as roctx ranges. It has no messages.
func rocpdWriter(generation int) func(t *testing.T, dir string, p *program) {
	return func(t *testing.T, dir string, p *program) {
		t.Helper()
		for _, rank := range p.ranks() {
			of := &sqlitetest.Program{Rank: int(rank), World: len(p.hosts), Hostname: p.hosts[rank]}
			p.eachCall(rank, func(thread int, c call) {
				of.Ranges = append(of.Ranges, sqlitetest.Range{Name: c.name, Thread: thread, Start: c.start, End: c.end})
			})
			sqlitetest.Rocpd(t, filepath.Join(dir, fmt.Sprintf("%d_results.db", rank)), generation, of)
		}
	}
}
