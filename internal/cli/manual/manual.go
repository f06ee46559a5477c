// Package manual writes the help of commands as manual pages.
package manual

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// WriteAll writes a page for a command and for each of its visible subcommands to a directory. All pages have the given date.
func WriteAll(dir string, root *cobra.Command, date time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return writeTree(dir, root, date)
}

func writeTree(dir string, cmd *cobra.Command, date time.Time) error {
	if isLeftOut(cmd) {
		return nil
	}
	var page strings.Builder
	if err := Write(&page, cmd, date); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name(cmd)+".1"), []byte(page.String()), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if err := writeTree(dir, sub, date); err != nil {
			return err
		}
	}
	return nil
}

// isLeftOut reports whether a command has no page: hidden commands, and those that Cobra adds.
func isLeftOut(cmd *cobra.Command) bool {
	return cmd.Hidden || cmd.HasParent() && (cmd.Name() == "help" || cmd.Name() == "completion")
}

// name returns the name of the page of a command.
func name(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// Write writes the page of a command.
func Write(to io.Writer, cmd *cobra.Command, date time.Time) error {
	cmd.InitDefaultHelpFlag()
	w := bufio.NewWriter(to)
	version, _, _ := strings.Cut(cmd.Root().Version, " ")
	fmt.Fprintf(w, ".TH %q 1 %q %q %q\n", strings.ToUpper(name(cmd)), date.UTC().Format(time.DateOnly), "chimbuko "+version, "Chimbuko")
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", escape(name(cmd)), escape(cmd.Short))
	fmt.Fprintf(w, ".SH SYNOPSIS\n.B %s\n", escape(cmd.UseLine()))
	fmt.Fprint(w, ".SH DESCRIPTION\n")
	writeText(w, cmp.Or(cmd.Long, cmd.Short))
	if subs := commands(cmd); len(subs) > 0 {
		fmt.Fprint(w, ".SH COMMANDS\n")
		for _, sub := range subs {
			fmt.Fprintf(w, ".TP\n.BR %s (1)\n%s\n", escape(name(sub)), escape(sub.Short))
		}
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprint(w, ".SH OPTIONS\n")
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { writeFlag(w, f) })
	}
	if cmd.Example != "" {
		fmt.Fprint(w, ".SH EXAMPLES\n")
		writeText(w, cmd.Example)
	}
	if cmd.HasParent() {
		fmt.Fprintf(w, ".SH SEE ALSO\n.BR %s (1)\n", escape(name(cmd.Parent())))
	}
	return w.Flush()
}

func commands(cmd *cobra.Command) (all []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		if !isLeftOut(sub) {
			all = append(all, sub)
		}
	}
	return all
}

func writeFlag(w io.Writer, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	kind, usage := pflag.UnquoteUsage(f)
	fmt.Fprint(w, ".TP\n\\fB")
	if f.Shorthand != "" {
		fmt.Fprintf(w, "%s, ", escape("-"+f.Shorthand))
	}
	fmt.Fprintf(w, "%s\\fR", escape("--"+f.Name))
	if kind != "" {
		fmt.Fprintf(w, " \\fI%s\\fR", escape(kind))
	}
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
		usage += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(w, "\n%s\n", escape(usage))
}

// writeText writes paragraphs, and writes indented lines unchanged.
func writeText(w io.Writer, text string) {
	verbatim := false
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != verbatim && line != "" {
			verbatim = indented
			fmt.Fprintln(w, map[bool]string{true: ".PP\n.nf", false: ".fi\n.PP"}[indented])
		}
		switch {
		case line == "" && !verbatim:
			fmt.Fprintln(w, ".PP")
		case line == "":
			fmt.Fprintln(w)
		default:
			fmt.Fprintln(w, escape(line))
		}
	}
	if verbatim {
		fmt.Fprintln(w, ".fi")
	}
}

// escape returns text that roff prints unchanged.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
