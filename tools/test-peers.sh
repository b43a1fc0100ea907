#!/usr/bin/env bash
# Runs the packed package with the oldest version of every peer that its manifest allows; the rest
# of the suite runs with the newest. npm itself says whether they can be installed together. Then
# every driver enqueues and every broker's client publishes on the real servers, and the broker
# contracts and the transactions of our own run with these clients. And drizzle-kit pushes a schema
# beside rowpost's tables.
#
#   tools/test-peers.sh
#
# Needs `npm run build` and the servers of docs/services.md. Exit status: 0 all green, 1 not.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

node tools/peers/oldest.mjs "$folder"
(cd "$folder" && npm install --no-audit --no-fund --loglevel=error)
cp tools/peers/round.mjs "$folder"

addresses=()
for name in mariadb mysql9 postgres rabbitmq redis nats mosquitto kafka rocketmq; do
  addresses+=("$(node tools/services/probe.js "$name" | cut -f 4)")
done
tools/services/rocketmq topic rowpost-peers
node "$folder/round.mjs" "${addresses[@]}"

test=packages/rowpost/test
ROWPOST_TEST_PEERS=$folder npx vitest run \
  $test/brokers/{rabbitmq,redis,nats,mqtt,sqs}-contract $test/transactions/own-{mysql,postgres}

drizzle=$folder/drizzle
mkdir "$drizzle"
echo '{"private":true,"type":"module"}' >"$drizzle/package.json"
(cd "$drizzle" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error \
  drizzle-kit@0.31.11 drizzle-orm@0.45.4 mysql2@3.24.5)
ROWPOST_TEST_DRIZZLE_KIT=$drizzle npx vitest run $test/docs/schema-tools
