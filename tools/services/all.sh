#!/usr/bin/env bash
# All real servers that the tests, the benchmark and CI use.
#
#   all.sh start [NAME...]     start those that are not there yet, side by side; wait for all
#   all.sh status [NAME...]    ask each for its version
#   all.sh stop [NAME...]      stop those that these scripts started, and only those; data is kept
#
# The names, and the address of each with the variable that moves it, stand in probe.js; the tests
# read the same variables. All of them are meant when no name is given. start and status print one
# line for each: name, ready or ABSENT, address, version or reason. Whoever answers at the address
# with the right account and version will do, whether started by these scripts, by the distribution
# or by Docker. Another port on 127.0.0.1 starts a server of its own there; another host or account
# is only asked, never started.
#
# ROWPOST_SERVICES_STARTED=FILE: start adds the names that it started itself to FILE, for a caller
# that wants to stop those again.
#
# Exit status: 0 all that were asked for are there (stop: done), 1 some are not, 2 wrong usage.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//p;}' "$0"; }

# Runs the script of a service, which has its name, with the settings that its address asks for.
script() { # name address verb
  local port=${2##*:}
  port=${port%%[!0-9]*}
  case $1 in
    mysql9) MYSQL_LINE=9 MYSQL_PORT=$port "$here/mysql" "$3" ;;
    mysql8) MYSQL_LINE=8.0 MYSQL_PORT=$port "$here/mysql" "$3" ;;
    rocketmq) ROCKETMQ_GRPC_PORT=$port "$here/rocketmq" "$3" ;;
    *) env "${1^^}_PORT=$port" "$here/$1" "$3" ;;
  esac
}

# May these scripts start a server at this address? Only with the account that they set up.
ours() { # name address
  local account='' path='/?[a-z0-9_]*'
  case $1 in
    mariadb | mysql*) account='root@' ;;
    postgres | pgbouncer) account='postgres@' ;;
    rabbitmq) account='guest:guest@' ;;
  esac
  [[ $2 =~ ^[a-z-]+://$account(127\.0\.0\.1|localhost):[0-9]+$path$ ]]
}

# Reads the probe's lines; prints a table and leaves the absent ones in the array.
absent=()
report() { # names...
  local name state variable address detail
  absent=()
  while IFS=$'\t' read -r name state variable address detail; do
    if [[ $state == present ]]; then
      printf '%-9s ready   %s  %s\n' "$name" "$address" "$detail"
    else
      absent+=("$name")
      printf '%-9s ABSENT  %s  %s (%s)\n' "$name" "$address" "$detail" "$variable"
    fi
  done < <(node "$here/probe.js" "$@" || true)
}

start() {
  local name state variable address detail logs starting=()
  logs=$(mktemp -d "${TMPDIR:-/tmp}/rowpost-services.XXXXXX")
  while IFS=$'\t' read -r name state variable address detail; do
    if [[ $state == present ]]; then continue; fi
    if ! ours "$name" "$address"; then
      echo "$variable=$address is not an address that these scripts can start a server at" >"$logs/$name"
      continue
    fi
    starting+=("$name")
    (script "$name" "$address" start >"$logs/$name" 2>&1 || echo failed >"$logs/$name.failed") &
  done < <(node "$here/probe.js" "$@" || true)
  wait
  for name in "${starting[@]}"; do
    if [[ ! -e $logs/$name.failed && -n ${ROWPOST_SERVICES_STARTED:-} ]]; then echo "$name" >>"$ROWPOST_SERVICES_STARTED"; fi
  done
  report "$@"
  for name in "${absent[@]}"; do
    if [[ -s $logs/$name ]]; then sed "s/^/  $name: /" "$logs/$name" >&2; fi
  done
  rm -rf "$logs"
  ((${#absent[@]} == 0))
}

stop() {
  local name state variable address detail
  while IFS=$'\t' read -r name state variable address detail; do
    if ours "$name" "$address"; then (script "$name" "$address" stop 2>&1 | sed "s/^/$name: /") & fi
  done < <(node "$here/probe.js" "$@" || true)
  wait
}

verb=${1:-}
(($# == 0)) || shift
names=" $(node "$here/probe.js" --names | tr '\n' ' ')"
for name; do
  if [[ $names != *" $name "* ]]; then
    echo "all.sh: unknown service $name; there are$names" >&2
    exit 2
  fi
done
case $verb in
  start) start "$@" ;;
  status) report "$@"; ((${#absent[@]} == 0)) ;;
  stop) stop "$@" ;;
  help | -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
