package cli

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// variable is a variable of the environment; "" if it is not set.
func (env *Env) variable(name string) string {
	for _, entry := range slices.Backward(env.Environ) {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// tellAddress prints the address of a page in a line of its own, for people and
// programs, and how to reach it from where the person sits.
func tellAddress(env *Env, address, token string) {
	fmt.Fprintln(env.Stdout, visitOf(address, token))
	host, _ := os.Hostname() // only shown
	if line := tunnelTo(env, host, address); line != "" {
		fmt.Fprintf(env.Stderr, "chimbuko: from your own machine it is there after: %s\n", line)
	}
}

// shownTo is the address of a page as it may be written to w: with the token for a
// person at a terminal, and without for a file, as that of a job, which others may be
// able to read.
func shownTo(w io.Writer, visit string) (text string, whole bool) {
	if isTerminal(w) {
		return visit, true
	}
	bare, _, _ := strings.Cut(visit, "?")
	return bare, false
}

// tellAddressOn prints the address of a page that is on another machine only.
func tellAddressOn(env *Env, host, address, token string) error {
	_, port, err := net.SplitHostPort(hostPort(address))
	if err != nil {
		return err
	}
	fmt.Fprintln(env.Stdout, visitOf(address, token))
	fmt.Fprintf(env.Stderr, "chimbuko: it is there after: ssh -L %s:localhost:%s %s\n", port, port, host)
	return nil
}

// Variables that batch systems set: that there is a job, and where it was submitted.
var (
	jobVariables    = []string{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID"}
	submitVariables = []string{"SLURM_SUBMIT_HOST", "PBS_O_HOST", "LSB_SUB_HOST"}
)

// tunnelTo is the command that makes a page of this host reachable for a person who is
// logged in from elsewhere; "" if nobody seems to be.
func tunnelTo(env *Env, host, address string) string {
	_, port, err := net.SplitHostPort(hostPort(address))
	if err != nil {
		return ""
	}
	first := func(names []string) (value string) {
		for _, name := range names {
			value = cmp.Or(value, env.variable(name))
		}
		return value
	}
	user := cmp.Or(env.variable("USER"), env.variable("LOGNAME"), "user")
	switch {
	case first(jobVariables) != "":
		login := user + "@" + cmp.Or(first(submitVariables), "login")
		if isLoopback(hostPort(address)) {
			return fmt.Sprintf("ssh -J %s -L %s:localhost:%s %s@%s", login, port, port, user, host)
		}
		return fmt.Sprintf("ssh -L %s:%s:%s %s", port, host, port, login)
	case env.variable("SSH_CONNECTION") != "":
		return fmt.Sprintf("ssh -L %s:localhost:%s %s@%s", port, port, user, host)
	}
	return ""
}

// openPatience is how long a browser may take to start when nobody waits for it.
const openPatience = 3 * time.Second

// openBrowser opens an address in the browser of this machine, and says if it cannot.
// All can see the command lines of all processes, so the address goes through a file
// that only its owner can read. What is returned removes it.
func openBrowser(ctx context.Context, env *Env, address string) (remove func()) {
	dir, err := os.MkdirTemp("", "chimbuko-view-")
	remove = func() { _ = os.RemoveAll(dir) } // a temporary file
	if err == nil {
		err = startBrowser(ctx, env, filepath.Join(dir, "open.html"), address)
	}
	if err != nil {
		fmt.Fprintf(env.Stderr, "chimbuko: no browser could be opened: %v; open the address yourself\n", err)
	}
	return remove
}

var redirection = template.Must(template.New("open").Parse(
	`<!doctype html><meta charset="utf-8"><title>Chimbuko</title><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={{.}}"><a href="{{.}}">Chimbuko</a>` + "\n"))

func startBrowser(ctx context.Context, env *Env, file, address string) error {
	var b strings.Builder
	if err := redirection.Execute(&b, address); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		return err
	}
	command := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	if browser := env.variable("BROWSER"); browser != "" && runtime.GOOS == "linux" {
		command = strings.Fields(strings.Split(browser, ":")[0])
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), command[0], append(command[1:], file)...) //nolint:gosec // the person's own browser
	cmd.Env = env.Environ
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // it may last as long as the browser
	return nil
}
