#!/usr/bin/env bash
# Measures every figure of the benchmarks on every database, writes them down and says how long it
# took.
#
#   bench/run-all.sh [SCENARIO...]     all scenarios, or these
#
# Stop everything else first: rates mean nothing beside other programs (the table shows their share
# as "foreign CPU"). The servers have to run (npm run services); a database whose variable is empty
# is left out.
#
# Environment:
#   BENCH_MARIADB BENCH_MYSQL BENCH_POSTGRES BENCH_SQLITE (addresses)
#   BENCH_ROCKETMQ BENCH_KAFKA BENCH_RABBITMQ BENCH_NATS BENCH_REDIS (addresses of brokers)
#   BENCH_RUNS (3)
#   BENCH_LINES (file that the lines are added to, kept for the next report; default a new one in
#   reports/bench)
#   BENCH_OUTPUT (bench/RESULTS.md)
#   BENCH_BUILT (not empty: dist is up to date)
#
# Exit status: 0 all measured and every target met, 1 a target missed or a scenario failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

: "${BENCH_MARIADB=${ROWPOST_TEST_MARIADB:-mariadb://root@127.0.0.1:3306}}"
: "${BENCH_MYSQL=${ROWPOST_TEST_MYSQL9:-mysql://root@127.0.0.1:3307}}"
: "${BENCH_POSTGRES=${ROWPOST_TEST_POSTGRES:-postgres://postgres@127.0.0.1:5432/postgres}}"
: "${BENCH_SQLITE=sqlite:${TMPDIR:-/tmp}/rowpost.sqlite}"
: "${BENCH_ROCKETMQ=${ROWPOST_TEST_ROCKETMQ:-rocketmq://127.0.0.1:8081}}"
: "${BENCH_KAFKA=${ROWPOST_TEST_KAFKA:-kafka://127.0.0.1:9092}}"
: "${BENCH_RABBITMQ=${ROWPOST_TEST_RABBITMQ:-amqp://guest:guest@127.0.0.1:5672}}"
: "${BENCH_NATS=${ROWPOST_TEST_NATS:-nats://127.0.0.1:4222}}"
: "${BENCH_REDIS=${ROWPOST_TEST_REDIS:-redis://127.0.0.1:6379}}"
: "${BENCH_RUNS:=3}"
: "${BENCH_OUTPUT:=bench/RESULTS.md}"
mkdir -p reports/bench
: "${BENCH_LINES:=reports/bench/$(date +%Y%m%d-%H%M%S).jsonl}"

[[ -n ${BENCH_BUILT:-} ]] || npx tsc -b bench/tsconfig.build.json || exit 1
scenarios=("$@")
failed=()

# measure SCENARIO ADDRESS [WORD...]: one scenario on one database, its lines to the file, its
# progress to the terminal.
measure() {
  local scenario=$1 address=$2
  shift 2
  [[ -n $address ]] || return 0
  if ((${#scenarios[@]} > 0)) && [[ " ${scenarios[*]} " != *" $scenario "* ]]; then return 0; fi
  node bench/dist/main.js "$scenario" --database "$address" --runs "$BENCH_RUNS" --json "$@" >>"$BENCH_LINES" ||
    failed+=("$scenario on ${address%%:*}")
}

for address in "$BENCH_MARIADB" "$BENCH_POSTGRES" "$BENCH_SQLITE" "$BENCH_MYSQL"; do
  measure outbox-enqueue "$address"
  measure outbox-latency "$address"
  measure relay-takeover "$address"
  measure queue-append "$address"
  measure queue-consume "$address"
  measure queue-latency "$address"
  measure queue-idle "$address"
  measure inbox "$address"
  measure confirm "$address"
done
for address in "$BENCH_MARIADB" "$BENCH_POSTGRES" "$BENCH_SQLITE"; do
  measure outbox-drain "$address"
  measure outbox-memory "$address"
done
for address in "$BENCH_MARIADB" "$BENCH_POSTGRES" "$BENCH_SQLITE"; do
  measure outbox-outage "$address"
  for scenario in isolation-endpoint isolation-key isolation-backlog isolation-bytes; do measure "$scenario" "$address"; done
done
# The statements are MariaDB's; what may differ is the server.
measure outbox-drain "$BENCH_MYSQL" --variant on --variant off
for broker in "$BENCH_ROCKETMQ" "$BENCH_KAFKA" "$BENCH_RABBITMQ" "$BENCH_NATS" "$BENCH_REDIS"; do
  [[ -n $broker ]] || continue
  for address in "$BENCH_MARIADB" "$BENCH_POSTGRES"; do measure outbox-broker "$address" --broker "$broker"; done
done
[[ -z $BENCH_ROCKETMQ ]] || measure rocketmq-producers "$BENCH_SQLITE" --broker "$BENCH_ROCKETMQ"
for address in "$BENCH_POSTGRES" "$BENCH_MARIADB"; do measure outbox-peers "$address"; done
for address in "$BENCH_MARIADB" "$BENCH_POSTGRES"; do measure outbox-lone "$address"; done
ROWPOST_BENCH_REDIS=${ROWPOST_BENCH_REDIS:-$BENCH_REDIS} measure queue-peers "$BENCH_POSTGRES"

node bench/dist/main.js report "$BENCH_LINES" --output "$BENCH_OUTPUT" --check
status=$?
if ((${#failed[@]} > 0)); then
  printf 'failed: %s\n' "${failed[@]}" >&2
  status=1
fi
printf 'lines: %s; took %s s\n' "$BENCH_LINES" "$SECONDS" >&2
exit $status
