package sqlitefile

import (
	"slices"
	"strings"
)

// Table is a table of a database.
type Table struct {
	Name    string
	db      *DB
	root    uint32
	columns []string
	integer []bool // columns of type INTEGER
	rowID   int    // column whose value is the row id, or -1
}

// Column returns the number of a column by its name in any case, or -1.
func (t *Table) Column(name string) int {
	return slices.IndexFunc(t.columns, func(c string) bool { return strings.EqualFold(c, name) })
}

// HasRowID reports whether a column has the row ids, so that Find searches it.
func (t *Table) HasRowID(column string) bool { return t.rowID >= 0 && t.Column(column) == t.rowID }

// parse reads the columns of a CREATE TABLE statement. It returns false if the table cannot be read.
func (t *Table) parse(sql string) bool {
	in := tokens{text: sql}
	for in.next() && in.token != "(" {
	}
	t.rowID = -1
	for in.token != "" {
		var definition []string // of a column, or a constraint; parentheses with their content are one token
		quoted := false
		for in.next() && in.token != "," && in.token != ")" {
			quoted = quoted || len(definition) == 0 && in.quoted
			if in.token == "(" && !in.quoted {
				definition = append(definition, in.parentheses())
			} else {
				definition = append(definition, in.token)
			}
		}
		t.define(definition, quoted)
		if in.token == ")" {
			break
		}
	}
	for in.next() {
		if strings.EqualFold(in.token, "WITHOUT") {
			return false // rows are in an index
		}
	}
	return len(t.columns) > 0
}

// define adds a column, or evaluates a constraint.
func (t *Table) define(definition []string, quoted bool) {
	if len(definition) == 0 {
		return
	}
	words := strings.ToUpper(strings.Join(definition, " "))
	if !quoted {
		switch strings.ToUpper(definition[0]) {
		case "CONSTRAINT", "UNIQUE", "CHECK", "FOREIGN":
			return
		case "PRIMARY": // PRIMARY KEY (id), with id INTEGER
			if len(definition) > 2 {
				if n := t.Column(definition[2]); n >= 0 && t.integer[n] {
					t.rowID = n
				}
			}
			return
		}
	}
	integer := len(definition) > 1 && strings.EqualFold(definition[1], "INTEGER")
	t.columns, t.integer = append(t.columns, definition[0]), append(t.integer, integer)
	if integer && strings.Contains(words, " PRIMARY KEY") && !strings.Contains(words, " PRIMARY KEY DESC") {
		t.rowID = len(t.columns) - 1
	}
}

// tokens are the tokens of SQL.
type tokens struct {
	text   string
	token  string // "" at the end
	quoted bool
}

// next advances to the next token.
func (s *tokens) next() bool {
	s.skip()
	s.token, s.quoted = "", false
	if s.text == "" {
		return false
	}
	end := 1
	switch c := s.text[0]; {
	case c == '"' || c == '`' || c == '\'' || c == '[':
		s.quote(c)
		return true
	case isWord(c):
		for end < len(s.text) && isWord(s.text[end]) {
			end++
		}
	}
	s.token, s.text = s.text[:end], s.text[end:]
	return true
}

// quote reads a token in quotes. Two quotes within it stand for one.
func (s *tokens) quote(c byte) {
	if c == '[' {
		c = ']'
	}
	var b strings.Builder
	i := 1
	for ; i < len(s.text); i++ {
		if s.text[i] == c {
			if i+1 == len(s.text) || s.text[i+1] != c || c == ']' {
				i++
				break
			}
			i++
		}
		b.WriteByte(s.text[i])
	}
	s.token, s.quoted, s.text = b.String(), true, s.text[i:]
	if s.token == "" {
		s.token = " " // not the end
	}
}

// skip skips spaces and comments.
func (s *tokens) skip() {
	for {
		s.text = strings.TrimLeft(s.text, " \t\r\n\f")
		end := ""
		switch {
		case strings.HasPrefix(s.text, "--"):
			end = "\n"
		case strings.HasPrefix(s.text, "/*"):
			end = "*/"
		default:
			return
		}
		_, s.text, _ = strings.Cut(s.text[2:], end)
	}
}

// parentheses returns the text up to the closing parenthesis.
func (s *tokens) parentheses() string {
	var words []string
	for depth := 1; s.next(); {
		switch {
		case s.quoted:
		case s.token == "(":
			depth++
		case s.token == ")":
			depth--
		}
		if depth == 0 {
			s.token = "(" // not the end of the list of columns
			break
		}
		words = append(words, s.token)
	}
	return strings.Join(words, " ")
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
