#!/usr/bin/env bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:30:00
#SBATCH --signal=B:TERM@120
#
# A program under Chimbuko in a job of Slurm (20.11 or newer):
#
#     sbatch slurm.sh ./program argument...
#
# The services run on the first node, where this script does, and an analyzer on
# each node beside the ranks whose traces it reads. The script ends with the exit
# code of the program, and leaves nothing running. Two minutes before the time is
# over Slurm sends it SIGTERM (--signal above): the program gets it, too, and what
# was found so far is reviewed and stored.
#
# Settings of Chimbuko can be given as variables, as CHIMBUKO_STORE=postgres://…;
# chimbuko help serve and help ad name all. Others:
#
#   RUN_DIR     the run: a directory that all nodes see
#   TRACE_DIR   the traces, a directory below it for each node: on the node's own
#               disk, or shared
#   KEEP        yes keeps the traces of a run that ended well
#   LISTEN      where NATS listens on the first node; 10.0.0.7:0 keeps it to one network
#   PATIENCE    seconds that analyzers have to end after the program
#   INSTRUMENT  what runs the program under TAU; empty if it is linked into it
set -uo pipefail

if (($# == 0)); then
	echo "usage: sbatch slurm.sh PROGRAM [ARGUMENT]..." >&2
	exit 2
fi
export RUN_DIR=${RUN_DIR:-${SLURM_SUBMIT_DIR:-$PWD}/chimbuko-$SLURM_JOB_ID}
export TRACE_DIR=${TRACE_DIR:-/tmp/chimbuko-$SLURM_JOB_ID}
PATIENCE=${PATIENCE:-300}
read -ra instrument <<<"${INSTRUMENT-tau_exec -T mpi,adios2 -adios2_trace}"

# What TAU writes: a dataset for each rank, in which a step appears every second.
# On an older ADIOS2 than 2.9 the engine is BP4.
export TAU_ADIOS2_PERIODIC=1 TAU_ADIOS2_PERIOD=1000000 TAU_ADIOS2_ONE_FILE=0
export TAU_ADIOS2_ENGINE=${TAU_ADIOS2_ENGINE:-BP5}

# on_node is run on each node, in front of what is to run there.
on_node='traces=$TRACE_DIR/$SLURMD_NODENAME; (umask 077 && mkdir -p "$traces") || exit; export TAU_ADIOS2_FILENAME=$traces/tau-metrics'
each_node=(srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --overlap --mem=0)

serve= ads= program= stopped= ending=

running() { [[ -n $1 ]] && kill -0 "$1" 2>/dev/null; }

# within waits until a process has ended, for some seconds at most.
within() { # seconds, pid
	local i
	for ((i = 0; i < $1 * 5; i++)); do
		running "$2" || return 0
		sleep 0.2
	done
	! running "$2"
}

# stop_run ends the run with what was found so far.
stop_run() {
	[[ -n $ending ]] || { chimbuko stop "$RUN_DIR" >&2 && ending=yes; }
}

on_term() {
	stopped=yes
	echo "slurm.sh: SIGTERM: the program is ended, and the run with what was found so far" >&2
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
	echo "slurm.sh: the services of Chimbuko did not start: the program runs without" >&2
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
while running "$program"; do # a signal came
	wait "$program"
	code=$?
done

[[ -n $ads ]] || exit "$code"
if ((code != 0)); then
	stop_run # some traces will never be ended
elif ! within "$PATIENCE" "$serve"; then
	echo "slurm.sh: analyzers still wait $PATIENCE s after the end of the program: the run is ended" >&2
	stop_run
fi
if within "$PATIENCE" "$serve" && wait "$serve" && ((code == 0)) && [[ ${KEEP:-} != yes ]]; then
	within 10 "$ads"
	"${each_node[@]}" bash -c 'rm -rf "$TRACE_DIR/$SLURMD_NODENAME"; rmdir "$TRACE_DIR" 2>/dev/null'
fi
exit "$code"
