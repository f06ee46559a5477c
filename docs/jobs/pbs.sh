#!/usr/bin/env bash
#PBS -l select=2:ncpus=4:mpiprocs=4
#PBS -l walltime=00:30:00
#
# Runs a program under Chimbuko in a PBS job (OpenPBS, PBS Professional, Torque):
#
#     PROGRAM='./program argument...' qsub -v PROGRAM pbs.sh
#
# The services and this script run on the first node, and one analyzer runs on each
# node beside the ranks whose traces it reads. The script exits with the exit code
# of the program and leaves no process behind. PBS gives no warning before the time
# limit, so the script has its own timer: two minutes before, it sends SIGTERM to
# the program, then reviews and stores the results so far. After qdel it has only
# the server's kill_delay for that.
#
# Variables such as CHIMBUKO_STORE=postgres://… set options of Chimbuko; chimbuko
# help serve and help ad list them. Other variables, passed with -v like PROGRAM:
#
#   RUN_DIR     run directory, visible to all nodes
#   TRACE_DIR   trace directory, local or shared; each node uses a subdirectory
#   KEEP        yes: keep the traces of a successful run
#   LISTEN      NATS address on the first node; 10.0.0.7:0 restricts it to one network
#   PATIENCE    seconds to wait for the analyzers after the program has ended
#   INSTRUMENT  command that runs the program under TAU; empty if TAU is linked in
#   MPIEXEC     command that starts the ranks
set -uo pipefail
cd "${PBS_O_WORKDIR:-.}" || exit

if [[ -z ${PROGRAM:-} ]]; then
	echo "usage: PROGRAM='./program argument...' qsub -v PROGRAM pbs.sh" >&2
	exit 2
fi
RUN_DIR=${RUN_DIR:-$PWD/chimbuko-$PBS_JOBID}
TRACE_DIR=${TRACE_DIR:-/tmp/chimbuko-$PBS_JOBID}
PATIENCE=${PATIENCE:-300}
mapfile -t slots <"$PBS_NODEFILE" # one line per rank
ranks=${#slots[@]}
read -ra instrument <<<"${INSTRUMENT-tau_exec -T mpi,adios2 -adios2_trace}"
read -ra mpiexec <<<"${MPIEXEC:-mpiexec -n $ranks}"
read -ra program_line <<<"$PROGRAM"

# on_node precedes every command on a node, because neither pbsdsh nor every mpiexec
# passes variables. TAU writes one dataset per rank and one step per second. Use the
# engine BP4 with ADIOS2 before 2.9.
on_node="export PATH=${PATH@Q} LD_LIBRARY_PATH='${LD_LIBRARY_PATH:-}'
cd ${PWD@Q} || exit
node=\$(hostname -s) root=${TRACE_DIR@Q}
traces=\$root/\$node
(umask 077 && mkdir -p \"\$traces\") || exit
export TAU_ADIOS2_PERIODIC=1 TAU_ADIOS2_PERIOD=1000000 TAU_ADIOS2_ONE_FILE=0
export TAU_ADIOS2_ENGINE=${TAU_ADIOS2_ENGINE:-BP5} TAU_ADIOS2_FILENAME=\$traces/tau-metrics"
while IFS='=' read -r -d '' name value; do
	[[ $name == CHIMBUKO_* ]] && on_node+=$'\n'"export $name=${value@Q}"
done < <(env -0)

# each_node runs a command on each node and waits for all. The number of a node is
# the index of its first line in the list.
each_node() { # command
	local seen=" " i pids=()
	for i in "${!slots[@]}"; do
		[[ $seen == *" ${slots[i]} "* ]] && continue
		seen+="${slots[i]} "
		pbsdsh -n "$i" -- /bin/bash -c "$on_node"$'\n'"$1" &
		pids+=($!)
	done
	trap 'kill -TERM "${pids[@]}" 2>/dev/null' TERM
	wait "${pids[@]}"
	wait "${pids[@]}" # after a signal
}

serve= ads= program= timer= stopped= ending=

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
	echo "pbs.sh: SIGTERM: stopping the program, storing the results so far" >&2
	running "$program" && kill -TERM "$program"
	stop_run
}

on_exit() {
	trap '' TERM INT
	local pid
	for pid in "$timer" "$program" "$ads" "$serve"; do
		running "$pid" && kill -TERM "$pid"
	done
	for pid in "$timer" "$program" "$ads" "$serve"; do
		within 10 "$pid" || kill -KILL "$pid"
	done
}
trap on_exit EXIT
trap on_term TERM INT

limit=$(qstat -f "$PBS_JOBID" 2>/dev/null | awk -F '[=: ]+' '/Resource_List.walltime/ { print $3 * 3600 + $4 * 60 + $5 }')
if ((${limit:-0} > 0)); then
	(
		trap 'kill "$!" 2>/dev/null; exit' TERM
		sleep $((limit > 240 ? limit - 120 : limit / 2)) &
		wait "$!"
		kill -TERM $$
	) &
	timer=$!
fi

chimbuko serve --out "$RUN_DIR" --nats-listen "${LISTEN:-0.0.0.0:0}" --ranks "$ranks" &
serve=$!
for ((i = 0; i < 300; i++)); do
	chimbuko status "$RUN_DIR" >/dev/null 2>&1 && break
	running "$serve" && [[ -z $stopped ]] || break
	sleep 0.2
done
[[ -z $stopped ]] || exit 143
if ! chimbuko status "$RUN_DIR" >/dev/null 2>&1; then
	echo "pbs.sh: the services of Chimbuko did not start; running the program without them" >&2
	"${mpiexec[@]}" "${program_line[@]}" &
	program=$!
else
	each_node "exec chimbuko ad --run-dir ${RUN_DIR@Q} --node \"\$node\" \"\$traces\"" &
	ads=$!
	"${mpiexec[@]}" /bin/bash -c "$on_node"$'\n''exec "$@"' bash "${instrument[@]}" "${program_line[@]}" &
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
	echo "pbs.sh: analyzers still waiting $PATIENCE s after the end of the program; stopping the run" >&2
	stop_run
fi
if within "$PATIENCE" "$serve" && wait "$serve" && ((code == 0)) && [[ ${KEEP:-} != yes ]]; then
	within 10 "$ads"
	(each_node 'rm -rf "$traces"; rmdir "$root" 2>/dev/null')
fi
exit "$code"
