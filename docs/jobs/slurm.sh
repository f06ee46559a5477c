#!/usr/bin/env bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:30:00
#SBATCH --signal=B:TERM@120
#
# Runs a program under Chimbuko in a Slurm job (20.11 or newer):
#
#     sbatch slurm.sh ./program argument...
#
# The services and this script run on the first node, and one analyzer runs on each
# node beside the ranks whose traces it reads. The script exits with the exit code
# of the program and leaves no process behind. Two minutes before the time limit
# Slurm sends it SIGTERM (--signal above). The script forwards the signal to the
# program, then reviews and stores the results so far.
#
# Variables such as CHIMBUKO_STORE=postgres://… set options of Chimbuko; chimbuko
# help serve and help ad list them. Other variables:
#
#   RUN_DIR     run directory, visible to all nodes
#   TRACE_DIR   trace directory, local or shared; each node uses a subdirectory
#   KEEP        yes: keep the traces of a successful run
#   LISTEN      NATS address on the first node; 10.0.0.7:0 restricts it to one network
#   PATIENCE    seconds to wait for the analyzers after the program has ended
#   INSTRUMENT  command that runs the program under TAU; empty if TAU is linked in
set -uo pipefail

if (($# == 0)); then
	echo "usage: sbatch slurm.sh PROGRAM [ARGUMENT]..." >&2
	exit 2
fi
export RUN_DIR=${RUN_DIR:-${SLURM_SUBMIT_DIR:-$PWD}/chimbuko-$SLURM_JOB_ID}
export TRACE_DIR=${TRACE_DIR:-/tmp/chimbuko-$SLURM_JOB_ID}
PATIENCE=${PATIENCE:-300}
read -ra instrument <<<"${INSTRUMENT-tau_exec -T mpi,adios2 -adios2_trace}"

# TAU writes one dataset per rank and one step per second. Use the engine BP4 with
# ADIOS2 before 2.9.
export TAU_ADIOS2_PERIODIC=1 TAU_ADIOS2_PERIOD=1000000 TAU_ADIOS2_ONE_FILE=0
export TAU_ADIOS2_ENGINE=${TAU_ADIOS2_ENGINE:-BP5}

# on_node precedes every command on a node.
on_node='traces=$TRACE_DIR/$SLURMD_NODENAME; (umask 077 && mkdir -p "$traces") || exit; export TAU_ADIOS2_FILENAME=$traces/tau-metrics'
each_node=(srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --overlap --mem=0)

serve= ads= program= stopped= ending=

running() { [[ -n $1 ]] && kill -0 "$1" 2>/dev/null; }

# within waits for the end of a process, with a time limit.
within() { # seconds, pid
	local i
	for ((i = 0; i < $1 * 5; i++)); do
		running "$2" || return 0
		sleep 0.2
	done
	! running "$2"
}

# stop_run ends the run with the results so far.
stop_run() {
	[[ -n $ending ]] || { chimbuko stop "$RUN_DIR" >&2 && ending=yes; }
}

on_term() {
	stopped=yes
	echo "slurm.sh: SIGTERM: stopping the program, storing the results so far" >&2
	running "$program" && kill -TERM "$program"
	stop_run
}

on_exit() {
	trap '' TERM INT
	local pid
	for pid in "$program" "$ads" "$serve"; do
		running "$pid" && kill -TERM "$pid"
	done
	for pid in "$program" "$ads" "$serve"; do
		within 10 "$pid" || kill -KILL "$pid"
	done
}
trap on_exit EXIT
trap on_term TERM INT

chimbuko serve --out "$RUN_DIR" --nats-listen "${LISTEN:-0.0.0.0:0}" --ranks "$SLURM_NTASKS" &
serve=$!
for ((i = 0; i < 300; i++)); do
	chimbuko status "$RUN_DIR" >/dev/null 2>&1 && break
	running "$serve" && [[ -z $stopped ]] || break
	sleep 0.2
done
[[ -z $stopped ]] || exit 143
if ! chimbuko status "$RUN_DIR" >/dev/null 2>&1; then
	echo "slurm.sh: the services of Chimbuko did not start; running the program without them" >&2
	srun --kill-on-bad-exit=1 "$@" &
	program=$!
else
	"${each_node[@]}" bash -c "$on_node"'; exec chimbuko ad --run-dir "$RUN_DIR" --node "$SLURMD_NODENAME" "$traces"' &
	ads=$!
	srun --kill-on-bad-exit=1 bash -c "$on_node"'; exec "$@"' bash "${instrument[@]}" "$@" &
	program=$!
fi

wait "$program"
code=$?
while running "$program"; do # a signal arrived
	wait "$program"
	code=$?
done
if [[ -n $stopped ]]; then # the program may have ended before the handler
	wait "$program"
	code=$?
fi

[[ -n $ads ]] || exit "$code"
if ((code != 0)); then
	stop_run # some traces will never end
elif ! within "$PATIENCE" "$serve"; then
	echo "slurm.sh: analyzers still waiting $PATIENCE s after the end of the program; stopping the run" >&2
	stop_run
fi
if within "$PATIENCE" "$serve" && wait "$serve" && ((code == 0)) && [[ ${KEEP:-} != yes ]]; then
	within 10 "$ads"
	"${each_node[@]}" bash -c 'rm -rf "$TRACE_DIR/$SLURMD_NODENAME"; rmdir "$TRACE_DIR" 2>/dev/null'
fi
exit "$code"
