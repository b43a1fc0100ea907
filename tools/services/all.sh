#!/usr/bin/env bash
# All real servers that the tests, the benchmark and CI use.
#
#   all.sh start [NAME...]     start those that are not there yet, side by side; wait until all answer
#   all.sh status [NAME...]    ask each for its version
#   all.sh stop [NAME...]      stop those that these scripts started, and only those; data is kept
#
# Names: mariadb mysql9 mysql8 postgres rocketmq kafka rabbitmq redis nats; all of them when none is given. start and status print one line for each: name,
# ready or ABSENT, address, version or reason. Whoever answers at the address with the right account and version will do, whether started
# by these scripts, by the distribution or by Docker.
#
# Addresses (the tests read the same variables):
#   ROWPOST_TEST_MARIADB   [mariadb://root@127.0.0.1:3306]
#   ROWPOST_TEST_MYSQL9    [mysql://root@127.0.0.1:3307]
#   ROWPOST_TEST_MYSQL8    [mysql://root@127.0.0.1:3308]
#   ROWPOST_TEST_POSTGRES  [postgres://postgres@127.0.0.1:5432/postgres]
#   ROWPOST_TEST_ROCKETMQ  [rocketmq://127.0.0.1:8081]
#   ROWPOST_TEST_KAFKA     [kafka://127.0.0.1:9092]
#   ROWPOST_TEST_RABBITMQ  [amqp://guest:guest@127.0.0.1:5672]
#   ROWPOST_TEST_REDIS     [redis://127.0.0.1:6379]
#   ROWPOST_TEST_NATS      [nats://127.0.0.1:4222]
# Another port on 127.0.0.1 starts a server of its own there; another host or account is only asked, never started.
#
# ROWPOST_SERVICES_STARTED=FILE: start adds the names that it started itself to FILE, for a caller that wants to stop those again.
#
# Exit status: 0 all that were asked for are there (stop: done), 1 some are not, 2 wrong usage.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//p;}' "$0"; }

# Runs the script of a service with the settings that its address asks for.
script() { # name address verb
  local port=${2##*:}
  port=${port%%[!0-9]*}
  case $1 in
    mariadb) MARIADB_PORT=$port "$here/mariadb" "$3" ;;
    mysql9) MYSQL_LINE=9 MYSQL_PORT=$port "$here/mysql" "$3" ;;
    mysql8) MYSQL_LINE=8.0 MYSQL_PORT=$port "$here/mysql" "$3" ;;
    postgres) POSTGRES_PORT=$port "$here/postgres" "$3" ;;
    rocketmq) ROCKETMQ_GRPC_PORT=$port "$here/rocketmq" "$3" ;;
    kafka) KAFKA_PORT=$port "$here/kafka" "$3" ;;
    rabbitmq) RABBITMQ_PORT=$port "$here/rabbitmq" "$3" ;;
    redis) REDIS_PORT=$port "$here/redis" "$3" ;;
    nats) NATS_PORT=$port "$here/nats" "$3" ;;
  esac
}

# May these scripts start a server at this address? Only with the account that they set up.
ours() { # name address
  local account='root@' path='/?[a-z0-9_]*'
  case $1 in
    postgres) account='postgres@' ;;
    rabbitmq) account='guest:guest@' ;;
    rocketmq | kafka | redis | nats) account='' ;;
  esac
  [[ $2 =~ ^[a-z]+://$account(127\.0\.0\.1|localhost):[0-9]+$path$ ]]
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
for name; do
  case $name in
    mariadb | mysql9 | mysql8 | postgres | rocketmq | kafka | rabbitmq | redis | nats) ;;
    *) echo "all.sh: unknown service $name; there are mariadb mysql9 mysql8 postgres rocketmq kafka rabbitmq redis nats" >&2; exit 2 ;;
  esac
done
case $verb in
  start) start "$@" ;;
  status) report "$@"; ((${#absent[@]} == 0)) ;;
  stop) stop "$@" ;;
  help | -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
