// Package usage reports mistakes in command lines: what is missing, and what was probably meant.
package usage

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/text"
)

// ErrReported ends a command that has printed all its errors.
var ErrReported = errors.New("errors were reported")

// Error is a mistake in the command line.
type Error struct{ Err error }

// Error returns the message of the mistake.
func (e Error) Error() string { return e.Err.Error() }

// Unwrap returns the mistake itself.
func (e Error) Unwrap() error { return e.Err }

// Errorf returns an Error.
func Errorf(format string, args ...any) error { return Error{Err: fmt.Errorf(format, args...)} }

// Errors collects all mistakes in the flags of a command.
type Errors []error

// AddIf adds a mistake if isWrong is true.
func (m *Errors) AddIf(isWrong bool, format string, args ...any) {
	if isWrong {
		*m = append(*m, fmt.Errorf(format, args...))
	}
}

// CheckAddress adds a mistake if an address does not have a host and a port.
func (m *Errors) CheckAddress(flag, address string) {
	_, _, err := net.SplitHostPort(address)
	m.AddIf(err != nil, "--%s %q is not of the form host:port", flag, address)
}

// Err returns all mistakes as one Error, or nil.
func (m *Errors) Err() error {
	if err := errors.Join(*m...); err != nil {
		return Error{Err: err}
	}
	return nil
}

// Args returns check with errors that name the missing or superfluous arguments.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		names := arguments(cmd)
		usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		switch {
		case len(args) < len(names):
			return Errorf("%s: %s missing (usage: %s)", cmd.CommandPath(), areMissing(names[len(args):]), usage)
		case len(args) > 0:
			return Errorf("%s: unexpected argument %q (usage: %s)", cmd.CommandPath(), args[len(args)-1], usage)
		}
		return Errorf("%s: %w", cmd.CommandPath(), err)
	}
}

// arguments returns the names of the required arguments of a command, from its usage line.
func arguments(cmd *cobra.Command) (names []string) {
	_, words, _ := strings.Cut(cmd.Use, " ")
	for word := range strings.FieldsSeq(words) {
		if strings.ContainsAny(word[:1], "[{-") {
			break
		}
		names = append(names, strings.TrimSuffix(word, "..."))
	}
	return names
}

func areMissing(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, " and ") + " are"
}

// Repeat returns err with a command line that works: args and more.
func Repeat(err error, args []string, more ...string) error {
	words := slices.Concat([]string{"chimbuko"}, args, more)
	for i, w := range words {
		words[i] = text.ShellWord(w)
	}
	return fmt.Errorf("%w; to separate them, run: %s", err, strings.Join(words, " "))
}

// Unknown returns the error for an unknown subcommand. It lists similar subcommands, or else all of them.
func Unknown(cmd *cobra.Command, name string) error {
	var all []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, c.Name())
		}
	}
	err := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	if like := similar(name, all); len(like) > 0 {
		return Errorf("%s (did you mean %s?)", err, orList(prefixed(cmd.CommandPath()+" ", like)))
	}
	if cmd.HasParent() {
		return Errorf("%s (want %s)", err, orList(all))
	}
	return Errorf("%s", err)
}

// FlagError turns an error of parsing flags into an Error. For an unknown flag it lists similar flags.
func FlagError(cmd *cobra.Command, err error) error {
	// The errors of functions in this program quote the value.
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok && e.GetFlag().Value.Type() == "func" {
		return Errorf("--%s: %w", e.GetFlag().Name, e.Unwrap())
	}
	e, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || len(e.GetSpecifiedName()) < 2 {
		return Error{Err: err}
	}
	var all []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			all = append(all, f.Name)
		}
	}
	cmd.Flags().VisitAll(add)
	if like := similar(e.GetSpecifiedName(), all); len(like) > 0 {
		return Errorf("%w (did you mean %s?)", err, orList(prefixed("--", like)))
	}
	return Error{Err: err}
}

// maxSimilar limits the suggestions for a mistyped name.
const maxSimilar = 3

// similar returns the names closest to a mistyped one: those that begin with it, or differ in at most a third of its characters.
func similar(name string, names []string) (like []string) {
	name = strings.ToLower(name)
	most := max(1, len(name)/3)
	rank := func(n string) int {
		if strings.HasPrefix(n, name) {
			return 0
		}
		return Distance(name, n)
	}
	for _, n := range names {
		if rank(n) <= most {
			like = append(like, n)
		}
	}
	slices.SortStableFunc(like, func(a, b string) int { return rank(a) - rank(b) })
	return like[:min(len(like), maxSimilar)]
}

// Distance returns the number of characters of a to insert, remove, replace or swap with their neighbor to get b.
func Distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	rows := make([][]int, len(from)+1)
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(from); i++ {
		for j := 1; j <= len(to); j++ {
			replace := rows[i-1][j-1]
			if from[i-1] != to[j-1] {
				replace++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replace)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(from)][len(to)]
}

func prefixed(prefix string, names []string) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = prefix + n
	}
	return all
}

// orList joins words as in "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
