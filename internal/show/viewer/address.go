package viewer

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Variable returns the value of a variable of an environment like os.Environ, or "".
func Variable(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// Variables that batch systems set in jobs, and those with the submission host.
var (
	jobVariables    = []string{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID"}
	submitVariables = []string{"SLURM_SUBMIT_HOST", "PBS_O_HOST", "LSB_SUB_HOST"}
)

// Tunnel returns the ssh command that makes a page on this host reachable from the machine of
// a person who is logged in remotely, or "".
func Tunnel(environ []string, host, address string) string {
	_, port, err := net.SplitHostPort(HostPort(address))
	if err != nil {
		return ""
	}
	first := func(names ...string) (value string) {
		for _, name := range names {
			value = cmp.Or(value, Variable(environ, name))
		}
		return value
	}
	user := cmp.Or(first("USER", "LOGNAME"), "user")
	switch {
	case first(jobVariables...) != "":
		login := user + "@" + cmp.Or(first(submitVariables...), "login")
		if isLoopback(HostPort(address)) {
			return fmt.Sprintf("ssh -J %s -L %s:localhost:%s %s@%s", login, port, port, user, host)
		}
		return fmt.Sprintf("ssh -L %s:%s:%s %s", port, host, port, login)
	case first("SSH_CONNECTION") != "":
		return fmt.Sprintf("ssh -L %s:localhost:%s %s@%s", port, port, user, host)
	}
	return ""
}

// TunnelTo returns the command that makes an address of another host reachable.
func TunnelTo(host, address string) (string, error) {
	_, port, err := net.SplitHostPort(HostPort(address))
	return fmt.Sprintf("ssh -L %s:localhost:%s %s", port, port, host), err
}

// BrowserStart is how long a browser may take to start.
const BrowserStart = 3 * time.Second

// OpenBrowser opens an address in the browser of this machine. All users can see the command
// lines of all processes, so the address goes through a file that only its owner can read;
// the caller removes it with remove.
func OpenBrowser(ctx context.Context, environ []string, address string) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "chimbuko-view-")
	remove = func() { _ = os.RemoveAll(dir) } // a temporary file
	if err == nil {
		err = startBrowser(ctx, environ, filepath.Join(dir, "open.html"), address)
	}
	return remove, err
}

var redirection = template.Must(template.New("open").Parse(
	`<!doctype html><meta charset="utf-8"><title>Chimbuko</title><meta name="referrer" content="no-referrer">` +
		`<meta http-equiv="refresh" content="0;url={{.}}"><a href="{{.}}">Chimbuko</a>` + "\n"))

func startBrowser(ctx context.Context, environ []string, file, address string) error {
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
	if browser := Variable(environ, "BROWSER"); browser != "" && runtime.GOOS == "linux" {
		command = strings.Fields(strings.Split(browser, ":")[0])
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), command[0], append(command[1:], file)...) //nolint:gosec // the person's own browser
	cmd.Env = environ
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // may last as long as the browser
	return nil
}
