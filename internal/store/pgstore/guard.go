package pgstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Queries run in a read-only transaction and, if possible, as a role that has access to our
// tables only. The guard rejects statements that would circumvent either, for users who
// cannot have the role. It is not a parser: it only distinguishes text, comments and names,
// as PostgreSQL's lexer does with standard_conforming_strings.

// queryWords are the first words of queries.
var queryWords = map[string]bool{"select": true, "with": true, "values": true, "table": true, "explain": true}

// forbidden are functions that run SQL from text, change settings, or reach files, the
// network or other sessions. A final * matches any suffix.
var forbidden = []string{
	"set_config", "query_to_xml*", "table_to_xml*", "schema_to_xml*", "database_to_xml*", "cursor_to_xml*", "ts_stat", "ts_rewrite",
	"crosstab*", "connectby*", "xpath_table", "dblink*", "lo_*", "loread", "lowrite", "pg_read_*", "pg_ls_*", "pg_stat_file", "pg_file_*",
	"pg_logdir_ls", "pg_current_logfile", "pg_hba_file_rules", "pg_ident_file_mappings", "pg_show_all_file_settings", "pg_config",
	"pg_terminate_backend", "pg_cancel_backend", "pg_reload_conf", "pg_rotate_logfile*", "pg_log_*", "pg_advisory_*", "pg_try_advisory_*",
	"pg_notify",
	"pg_create_*", "pg_drop_*", "pg_copy_*", "pg_replication_*", "pg_logical_*", "pg_stat_reset*", "pg_switch_wal", "pg_promote",
	"pg_wal_*", "pg_backup_*", "pg_start_backup", "pg_stop_backup", "pg_export_snapshot", "pg_import_*", "pg_prewarm", "nextval", "setval",
}

func isForbidden(name string) bool {
	name = strings.ToLower(name)
	for _, r := range forbidden {
		if prefix, more := strings.CutSuffix(r, "*"); name == r || more && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// inspect returns a statement without its final semicolon, and whether it begins as a query
// does. Several statements and calls of forbidden functions are errors.
func inspect(sql string) (text string, isQuery bool, err error) {
	if strings.IndexByte(sql, 0) >= 0 { // ends the statement for the server
		return "", false, errors.New("the statement has a zero byte")
	}
	l := lexer{sql: sql}
	var first, last token
	end := -1
	for {
		t := l.next()
		switch {
		case t.kind == endToken && first.kind == endToken:
			return "", false, errors.New("no statement")
		case t.kind == endToken && end < 0:
			return sql, queryWords[strings.ToLower(first.text)], nil
		case t.kind == endToken:
			return sql[:end], queryWords[strings.ToLower(first.text)], nil
		case t.kind == badToken:
			return "", false, refuse("names and text in U&\"…\" are not allowed")
		case t.kind == signToken && t.text == ";":
			if end < 0 {
				end = t.at
			}
			continue
		case end >= 0 && first.kind != endToken:
			return "", false, refuse("write one statement")
		case t.kind == signToken && t.text == "(" && last.kind == nameToken && isForbidden(last.text):
			return "", false, refuse("the function " + last.text + " is not allowed")
		case first.kind == endToken && t.text != "(":
			first, end = t, -1
		}
		last = t
	}
}

func refuse(why string) error { return fmt.Errorf("%w: %s", provdb.ErrReadOnly, why) }

type tokenKind uint8

const (
	endToken  tokenKind = iota
	nameToken           // also quoted names and keywords
	signToken           // one byte that is neither name nor space
	textToken           // a literal
	badToken
)

type token struct {
	kind tokenKind
	text string // of names, without quotes, and of signs
	at   int
}

// lexer splits SQL into the tokens that inspect needs.
type lexer struct {
	sql string
	at  int
}

func (l *lexer) rest() string { return l.sql[l.at:] }

func (l *lexer) next() token {
	l.space()
	start, rest := l.at, l.rest()
	if rest == "" {
		return token{kind: endToken, at: start}
	}
	switch c := rest[0]; {
	case c == '\'':
		l.quoted('\'', false)
		return token{textToken, "", start}
	case c == '"':
		return token{nameToken, l.quoted('"', false), start}
	case c == '$':
		return l.dollar()
	case isLetter(c):
		return l.name()
	}
	l.at++
	return token{signToken, rest[:1], start}
}

// space skips spaces and comments, which may be nested.
func (l *lexer) space() {
	for {
		l.at += len(l.rest()) - len(strings.TrimLeft(l.rest(), " \t\r\n\f\v"))
		switch rest := l.rest(); {
		case strings.HasPrefix(rest, "--"):
			if i := strings.IndexAny(rest, "\r\n"); i >= 0 {
				l.at += i
			} else {
				l.at = len(l.sql)
			}
		case strings.HasPrefix(rest, "/*"):
			l.comment()
		default:
			return
		}
	}
}

func (l *lexer) comment() {
	for depth := 0; l.at < len(l.sql); l.at++ {
		switch rest := l.rest(); {
		case strings.HasPrefix(rest, "/*"):
			depth++
			l.at++
		case strings.HasPrefix(rest, "*/"):
			l.at++
			if depth--; depth == 0 {
				l.at++
				return
			}
		}
	}
}

// quoted skips quoted text and returns it with doubled quotes unchanged. With escapes, a
// backslash quotes the next byte.
func (l *lexer) quoted(quote byte, escapes bool) string {
	start := l.at + 1
	for l.at = start; l.at < len(l.sql); l.at++ {
		switch c := l.sql[l.at]; {
		case escapes && c == '\\':
			l.at++
		case c == quote && strings.HasPrefix(l.sql[l.at+1:], string(quote)):
			l.at++
		case c == quote:
			l.at++
			return l.sql[start : l.at-1]
		}
	}
	l.at = len(l.sql)
	return l.sql[min(start, l.at):]
}

// dollar reads $1, or text between two $tag$.
func (l *lexer) dollar() token {
	start, rest := l.at, l.rest()
	n := 1
	for n < len(rest) && (isLetter(rest[n]) || n > 1 && isDigit(rest[n])) {
		n++
	}
	if n == len(rest) || rest[n] != '$' {
		l.at++
		return token{signToken, "$", start}
	}
	tag := rest[:n+1]
	end := strings.Index(rest[n+1:], tag)
	if end < 0 {
		l.at = len(l.sql)
	} else {
		l.at += n + 1 + end + len(tag)
	}
	return token{textToken, "", start}
}

// name reads a name, or a literal with a prefix letter.
func (l *lexer) name() token {
	start := l.at
	for l.at < len(l.sql) && (isLetter(l.sql[l.at]) || isDigit(l.sql[l.at]) || l.sql[l.at] == '$') {
		l.at++
	}
	name, rest := l.sql[start:l.at], l.rest()
	switch {
	case strings.EqualFold(name, "u") && strings.HasPrefix(rest, "&") && len(rest) > 1 && (rest[1] == '"' || rest[1] == '\''):
		return token{badToken, name, start}
	case strings.EqualFold(name, "e") && strings.HasPrefix(rest, "'"):
		l.quoted('\'', true)
		return token{textToken, "", start}
	}
	return token{nameToken, name, start}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isLetter reports whether a name can begin with c.
func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
