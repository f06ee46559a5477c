package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// checkTAU checks whether TAU is installed and writes ADIOS2 traces.
func (e *examination) checkTAU() {
	path, err := e.LookPath("tau_exec")
	if err != nil {
		e.add("TAU", Note, "to record traces with TAU, put its bin directory into PATH", "tau_exec is not in PATH")
		return
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	lib := filepath.Join(filepath.Dir(path), "..", "lib")
	configurations, _ := filepath.Glob(filepath.Join(lib, "Makefile.tau*")) // the pattern is valid
	plugins, _ := filepath.Glob(filepath.Join(lib, "*", "libTAU-adios2-trace-plugin.so"))
	switch {
	case len(configurations) == 0:
		e.add("TAU", Warning, "reinstall TAU, or name its tau_exec first in PATH", "%s has no configuration in %s", path, lib)
	case len(plugins) == 0:
		e.add("TAU", Failure, "configure TAU with ADIOS2 and install it again",
			"%s has %d configurations, but none writes ADIOS2 traces", path, len(configurations))
	default:
		var names []string
		for _, p := range plugins {
			names = append(names, strings.TrimPrefix(filepath.Base(filepath.Dir(p)), "shared-"))
		}
		e.add("TAU", Good, "", "%s writes ADIOS2 traces (%s)", path, strings.Join(names, ", "))
	}
}

// checkADIOS2 reports the version of ADIOS2, which Chimbuko does not need.
func (e *examination) checkADIOS2() {
	for _, program := range []string{"adios2-config", "bpls"} {
		if path, err := e.LookPath(program); err == nil {
			version, _, _ := strings.Cut(strings.TrimSpace(e.Output(path, "--version")), "\n")
			e.add("ADIOS2", Good, "", "%s: %s", path, version)
			return
		}
	}
	e.add("ADIOS2", Note, "", "its programs are not in PATH; Chimbuko reads traces without them")
}

// Environment variables of TAU's trace plugin.
const (
	engine     = "TAU_ADIOS2_ENGINE"
	fileName   = "TAU_ADIOS2_FILENAME"
	periodic   = "TAU_ADIOS2_PERIODIC"
	period     = "TAU_ADIOS2_PERIOD"
	oneFile    = "TAU_ADIOS2_ONE_FILE"
	configFile = "TAU_ADIOS2_CONFIG_FILE"
	selectFile = "TAU_ADIOS2_SELECT_FILE"
)

// engines are the engines whose traces can be read, in lower case.
var engines = []string{"bp3", "bp4", "bp5", "bpfile", "sst"}

// yes are the values that TAU accepts as true.
var yes = []string{"yes", "true", "on", "1"}

// checkVariables checks the settings of TAU's trace plugin. If there are none, there is nothing to check: chimbuko run sets them.
func (e *examination) checkVariables() {
	set := make(map[string]string)
	for _, v := range e.Environ {
		if name, value, ok := strings.Cut(v, "="); ok && strings.HasPrefix(name, "TAU_ADIOS2_") {
			set[name] = value
		}
	}
	if len(set) == 0 {
		e.add("settings", Note, "set them in the script of your job (docs/cluster.md), or let chimbuko run set them",
			"no variable TAU_ADIOS2_… is set")
		return
	}
	before := len(e.checks)
	e.checkNames(set)
	e.checkEngine(set)
	e.checkFile(set[fileName])
	for _, name := range []string{configFile, selectFile} {
		if path := set[name]; path != "" {
			if _, err := os.Stat(path); err != nil {
				e.add("settings", Failure, "correct the path", "%s: %v", name, err)
			}
		}
	}
	if len(e.checks) == before {
		e.add("settings", Good, "", "the variables TAU_ADIOS2_… are consistent")
	}
}

// checkNames reports variables that TAU does not read.
func (e *examination) checkNames(set map[string]string) {
	known := []string{engine, fileName, periodic, period, oneFile, configFile, selectFile}
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case name == "TAU_ADIOS2_SELECTION_FILE":
			e.add("settings", Warning, "use "+selectFile, "TAU's traces ignore %s, which is a setting of its profiles", name)
		case !slices.Contains(known, name):
			e.add("settings", Warning, "TAU reads "+strings.Join(known, ", "), "TAU's traces ignore %s", name)
		}
	}
}

// checkEngine checks how and when steps are written.
func (e *examination) checkEngine(set map[string]string) {
	_, err := os.Stat("adios2.xml")
	switch name, ok := set[engine]; {
	case set[configFile] == "" && err == nil:
		e.add("settings", Warning, "remove the file, or make sure that it names the engine",
			"TAU takes its settings from adios2.xml in this directory, not from %s", engine)
	case set[configFile] != "":
	case ok && !slices.Contains(engines, strings.ToLower(name)):
		e.add("settings", Failure, "use BP5 (BP4 with ADIOS2 before 2.9), or SST to stream",
			"%s is %s, whose traces cannot be read", engine, name)
	}
	isPeriodic := slices.Contains(yes, strings.ToLower(set[periodic]))
	if !isPeriodic {
		e.add("settings", Warning, "export "+periodic+"=1",
			"TAU writes all events at the end, which needs much memory and cannot be followed, because %s is not 1", periodic)
	}
	if text, ok := set[period]; ok {
		us, err := strconv.ParseInt(text, 10, 32)
		switch {
		case err != nil || us <= 0:
			e.add("settings", Failure, "give microseconds, such as 1000000", "%s is %q", period, text)
		case us < 10_000:
			e.add("settings", Warning, "it is in microseconds; a second is 1000000", "TAU writes a step every %d µs, which costs much time", us)
		}
	}
	if value, ok := set[oneFile]; ok && slices.Contains(yes, strings.ToLower(value)) {
		e.add("settings", Note, "export "+oneFile+"=0 for a dataset of each rank",
			"all ranks share one dataset, so only one analyzer can read it")
	}
}

// checkFile checks whether traces can be written.
func (e *examination) checkFile(prefix string) {
	if prefix == "" {
		e.add("settings", Warning, "export "+fileName+"=traces/tau-metrics",
			"TAU writes its traces where each program starts, because %s is not set", fileName)
		return
	}
	dir := filepath.Dir(prefix)
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		e.add("settings", Failure, "create the directory", "the directory of %s: %v", fileName, err)
		return
	}
	if err := tryWrite(dir); err != nil {
		e.add("settings", Failure, "choose a directory where you may write", "the directory of %s: %v", fileName, err)
	}
}
