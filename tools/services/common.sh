# shellcheck shell=bash
# What the scripts mysql, mariadb, postgres, pgbouncer, rocketmq, kafka, rabbitmq and redis have in common. Sourced, never run.
#
# A script that sources this sets
#   me        its name, for messages
#   host port where its server listens
#   pidfile   the pid of the server that it started
#   mark      a whole word of that server's command line (the data folder, say): a recycled pid does not carry it
#   output    the file with what the server prints

services_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { printf '%s: %s\n' "${me:?}" "$*" >&2; }
die() { say "$*"; exit 1; }

# Downloads stay here over fresh clones, so that only the first start on a machine is slow.
cache_folder() { printf '%s/rowpost-services/%s' "${XDG_CACHE_HOME:-$HOME/.cache}" "$1"; }

# Data is thrown away with the machine. Short, because a Unix socket's path may have 103 bytes.
data_folder() { printf '%s/rowpost-%s-%s' "${TMPDIR:-/tmp}" "$1" "$(id -u)"; }

port_open() { (exec 3<>"/dev/tcp/${host:?}/$1") 2>/dev/null; }

# All the ports that the server opens; a script with more than one overrides it.
ports() { echo "${port:?}"; }

any_port_open() {
  local each
  for each in $(ports); do if port_open "$each"; then return 0; fi; done
  return 1
}

# The words of a process's command line, one a line; nothing when it is gone.
command_words() {
  if [[ -d /proc/self ]]; then tr '\0' '\n' 2>/dev/null <"/proc/$1/cmdline" || true
  else ps -ww -p "$1" -o command= 2>/dev/null | tr ' ' '\n' || true; fi
}

# Prints the pid of our server; fails when it does not run or when the recorded pid now belongs to
# somebody else.
server_pid() {
  local pid
  { read -r pid <"${pidfile:?}"; } 2>/dev/null || return 1
  [[ $pid =~ ^[0-9]+$ ]] || return 1
  command_words "$pid" | grep -Fxq -- "${mark:?}" || return 1
  printf '%s' "$pid"
}

held_locks=()
release_locks() { ((${#held_locks[@]} == 0)) || rm -rf "${held_locks[@]}"; held_locks=(); }
trap release_locks EXIT

# One holder at a time; a lock whose holder is gone is taken over. A folder, not flock: that is
# missing on macOS, and a server started under flock would inherit the descriptor and hold the lock
# for as long as it lives.
lock() { # folder seconds
  local holder='' end=$((SECONDS + $2))
  mkdir -p "$(dirname "$1")"
  until mkdir "$1" 2>/dev/null; do
    holder=$(cat "$1/pid" 2>/dev/null || true)
    if [[ -n $holder ]] && ! kill -0 "$holder" 2>/dev/null; then rm -rf "$1"; continue; fi
    ((SECONDS < end)) || die "another command (pid ${holder:-unknown}) holds $1"
    sleep 0.1
  done
  echo $$ >"$1/pid"
  held_locks+=("$1")
}

# Is what listens on the port, started by others (the distribution, Docker, an older checkout), the
# server that we want, with the account that the tests use? Then there is nothing to do. service
# name, variable, URL as in probe.js.
answers() {
  env "$2=$3" node "$services_folder/probe.js" "$1" >/dev/null 2>&1
}

# Runs a command as a server: in the background, in a session of its own (Ctrl-C at the terminal, or
# a CI step's time limit, must not end it), with no input and none of the caller's descriptors, so
# that a caller's pipe ends with the caller.
launch() {
  local detach=(nohup)
  if command -v setsid >/dev/null; then detach=(setsid); fi
  mkdir -p "$(dirname "$pidfile")"
  # shellcheck disable=SC2016 # expanded by the inner shell, whose pid the server keeps
  "${detach[@]}" sh -c 'echo $$ >"$0"; exec "$@" 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-' "$pidfile" "$@" </dev/null >>"${output:?}" 2>&1 &
  disown
}

show_output() { grep -v '^[[:space:]]*at ' "$output" 2>/dev/null | tail -n 15 >&2 || true; }

# Until the script's own "ready" says so.
await_ready() { # seconds
  local pid end=$((SECONDS + $1)) launched=$((SECONDS + 5))
  until ready; do
    # For a moment after the launch there is no pid file yet, or the shell in it has not become the
    # server.
    if ! pid=$(server_pid) && ((SECONDS >= launched)); then show_output; die "the server ended while starting, see $output"; fi
    if ((SECONDS >= end)); then
      show_output
      [[ -z $pid ]] || kill -KILL "$pid"
      rm -f "$pidfile"
      die "not ready after $1 s, see $output"
    fi
    sleep 0.1
  done
}

# After a crash (kill -9) the process goes in steps: first its command line, then its ports, last
# its entry in the process table, which PostgreSQL looks for. A start that comes at once waits for
# that, 5 s at most.
await_last_end() {
  local pid='' end=$((SECONDS + 5))
  { read -r pid <"$pidfile"; } 2>/dev/null || return 0
  [[ $pid =~ ^[0-9]+$ ]] || return 0
  while kill -0 "$pid" 2>/dev/null && [[ -z $(command_words "$pid") ]] && ((SECONDS < end)); do sleep 0.1; done
  # Longer than a moment, and it belongs to somebody else.
  end=$((SECONDS + 1))
  while ! server_pid >/dev/null && any_port_open && ((SECONDS < end)); do sleep 0.1; done
}

# Ends our server, and nobody else's.
end_server() { # signal seconds
  local pid end=$((SECONDS + $2))
  if ! pid=$(server_pid); then rm -f "$pidfile"; say "not running"; return; fi
  kill -CONT "$pid" 2>/dev/null || true # a frozen one would never see the signal
  kill "-$1" "$pid" 2>/dev/null || true
  while server_pid >/dev/null; do
    if ((SECONDS >= end)); then say "pid $pid did not end in $2 s: SIGKILL"; kill -KILL "$pid" 2>/dev/null || true; end=$((SECONDS + 5)); fi
    sleep 0.1
  done
  rm -f "$pidfile"
  # A process that ends loses its command line before its ports.
  end=$((SECONDS + 5))
  while any_port_open && ((SECONDS < end)); do sleep 0.1; done
  say "stopped (pid $pid, SIG$1)"
}

send_signal() {
  local pid end=$((SECONDS + 5))
  pid=$(server_pid) || die "not running"
  kill "-$1" "$pid"
  # The threads of a busy server run on for a moment after SIGSTOP: what is sent after "freeze" must
  # not be answered.
  [[ $1 == STOP ]] || return 0
  while grep -qs '^State:[[:space:]]*[^Tt[:space:]]' "/proc/$pid/task/"*/status; do
    ((SECONDS < end)) || die "pid $pid does not stop"
    sleep 0.01
  done
}

resident_mb() { ps -o rss= -p "$1" 2>/dev/null | awk '{ printf "%d MB resident", $1 / 1024 }' || true; }

# The comment at the head of the script.
usage() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p;}' "$0"; }
