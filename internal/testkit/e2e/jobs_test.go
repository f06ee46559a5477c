package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// scheduler starts the script of docs/jobs for one, with programs of
// testdata/cluster in place of the scheduler's, and a program with arguments in
// place of one under TAU.
type scheduler struct {
	name  string
	start func(s *scene, environ []string, program ...string) *process
}

var schedulers = []scheduler{
	{"slurm", func(s *scene, environ []string, program ...string) *process {
		environ = append(environ, "SLURM_JOB_ID=42", "SLURM_JOB_NUM_NODES=2", "SLURM_NTASKS=3", "SLURM_SUBMIT_DIR="+s.dir)
		return startAs(s.t, "the script for Slurm", nil, slices.Concat([]string{"env"}, environ,
			[]string{"bash", "../../../docs/jobs/slurm.sh"}, program))
	}},
	{"pbs", func(s *scene, environ []string, program ...string) *process {
		nodes := s.write("nodes", "nid00000\nnid00000\nnid00001\n")
		environ = append(environ, "PBS_JOBID=42.server", "PBS_NODEFILE="+nodes, "PBS_O_WORKDIR="+s.dir, "PROGRAM="+strings.Join(program, " "))
		script, err := filepath.Abs("../../../docs/jobs/pbs.sh")
		if err != nil {
			s.t.Fatal(err)
		}
		return startAs(s.t, "the script for PBS", nil, slices.Concat([]string{"env"}, environ, []string{"bash", script}))
	}},
}

// job starts the script for a scheduler. The traces are three ranks on two nodes.
func (s *scene) job(sched scheduler, environ []string, args ...string) *process {
	s.t.Helper()
	bin, err := filepath.Abs("testdata/cluster")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.Symlink(program, s.path("chimbuko")); err != nil {
		s.t.Fatal(err)
	}
	environ = append([]string{
		"PATH=" + bin + ":" + s.dir + ":" + os.Getenv("PATH"), "RUN_DIR=" + s.run, "TRACE_DIR=" + s.path("live"), "LISTEN=127.0.0.1:0",
		"CHIMBUKO_SAVE_MODEL=" + s.path("model"), "CHIMBUKO_SNAPSHOT=200ms", "CHIMBUKO_STORE_DELAY=100ms", "CHIMBUKO_EXCHANGE=100ms",
	}, environ...)
	return sched.start(s, environ, append([]string{filepath.Join(bin, "program")}, args...)...)
}

// nothingLeft fails if processes of a job are left.
func nothingLeft(t testing.TB, job *process) {
	t.Helper()
	eventually(t, "all processes of the job have ended", func() error {
		if left := children(t, job); len(left) > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
}

func TestJobRunsProgramWithAnalyzerOnEachNode(t *testing.T) {
	t.Parallel()
	for _, sched := range schedulers {
		t.Run(sched.name, func(t *testing.T) {
			t.Parallel()
			r := threeRanks(t)
			s := newScene(t)
			job := s.job(sched, nil, r.dir(), "4")
			if code := job.wait(); code != 0 {
				t.Errorf("exit code %d\n%s", code, tail(job.stderr.String()))
			}
			nothingLeft(t, job)
			agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
			if left, _ := os.ReadDir(s.path("live")); len(left) > 0 {
				t.Errorf("after the end there are traces: %v", left)
			}
		})
	}
}

func TestJobWithCrashedProgramKeepsExitCodeAndResults(t *testing.T) {
	t.Parallel()
	for _, sched := range schedulers {
		t.Run(sched.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			job := s.job(sched, nil, threeRanks(t).dir(), holder(t), s.path("crash"))
			s.steps(24)
			s.write("crash", "")
			if code := job.wait(); code != 3 {
				t.Errorf("exit code %d\n%s", code, tail(job.stderr.String()))
			}
			nothingLeft(t, job)
			s.stored()
			for _, node := range []string{"nid00000", "nid00001"} {
				if _, err := os.Stat(filepath.Join(s.path("live"), node)); err != nil {
					t.Errorf("the traces of the crash are gone: %v", err)
				}
			}
		})
	}
}

func TestJobUsesExistingNATS(t *testing.T) {
	t.Parallel()
	for _, sched := range schedulers {
		t.Run(sched.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			nats := startNATS(t, natsOptions{Auth: natsCredentials, TLS: true})
			job := s.job(sched, []string{
				"CHIMBUKO_NATS=" + nats.URL(), "CHIMBUKO_NATS_CA=" + nats.CA, "CHIMBUKO_NATS_CREDS=" +
					nats.Credentials(t, "job", documented(t, "run")["serve"]),
			}, threeRanks(t).dir(), holder(t), s.path("crash"))
			s.steps(24)
			s.write("crash", "") // so that the script has to stop the run
			if code := job.wait(); code != 3 {
				t.Errorf("exit code %d\n%s", code, tail(job.stderr.String()))
			}
			nothingLeft(t, job)
			s.stored()
			if left := nats.Streams(); len(left) > 0 {
				t.Errorf("the server has the streams %v", left)
			}
		})
	}
}

func TestJobEndsBeforeItsTimeLimit(t *testing.T) {
	t.Parallel()
	for _, sched := range schedulers {
		t.Run(sched.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			job := s.job(sched, nil, threeRanks(t).dir(), holder(t), s.path("crash"))
			s.steps(24)
			job.signal(syscall.SIGTERM)
			if code := job.wait(); code != 3 {
				t.Errorf("exit code %d\n%s", code, tail(job.stderr.String()))
			}
			contains(t, job.stderr.String(), "SIGTERM: stopping the program")
			nothingLeft(t, job)
			s.stored()
		})
	}
}

func TestPBSJobKnowsItsTimeLimit(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	job := s.job(schedulers[1], []string{"STANDIN_WALLTIME=00:00:20"}, threeRanks(t).dir(), "0.02")
	if code := job.wait(); code == 0 {
		t.Errorf("exit code %d\n%s", code, tail(job.stderr.String()))
	}
	contains(t, job.stderr.String(), "SIGTERM: stopping the program")
	nothingLeft(t, job)
}

func TestJobWithoutChimbukoRunsProgram(t *testing.T) {
	t.Parallel()
	for _, sched := range schedulers {
		t.Run(sched.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			job := s.job(sched, []string{"LISTEN=nowhere"}, threeRanks(t).dir(), "max")
			if code := job.wait(); code != 7 {
				t.Errorf("exit code %d\n%s", code, tail(job.stderr.String()))
			}
			contains(t, job.stderr.String(), "--nats-listen", "running the program without them")
			contains(t, job.stdout.String(), "rank 0 without TAU", "rank 1 without TAU", "rank 2 without TAU")
			nothingLeft(t, job)
		})
	}
}
