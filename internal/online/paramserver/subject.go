package paramserver

import "fmt"

// Subject is where a shard of the server of a run is asked.
func Subject(run string, shard int, what string) string {
	return fmt.Sprintf("chimbuko.%s.ps.%d.%s", Token(run), shard, what)
}

// AnyShard stands for the subjects of all shards, as NATS writes it.
func AnyShard(run, what string) string {
	return fmt.Sprintf("chimbuko.%s.ps.*.%s", Token(run), what)
}

// AnalyzersAsk is what a Client asks; services ask more.
var AnalyzersAsk = []string{"register", "exchange", "outcome"}

// Token writes a name so that it can be part of a subject: letters, digits, '-'
// and '_' stay, all else becomes its bytes in hexadecimal.
func Token(name string) string {
	b := make([]byte, 0, len(name))
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			b = append(b, c)
		default:
			b = fmt.Appendf(b, "=%02x", c)
		}
	}
	return string(b)
}
