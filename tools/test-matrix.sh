#!/usr/bin/env bash
# Runs the unit tests, the SQLite tests and the Kafka tests under the other Node versions that we
# promise. The newest ones have a SQLite of their own (node:sqlite), and only they run
# @platformatic/kafka and better-sqlite3, so the same tests also cover these there. The rest of the
# suite talks to servers and does not depend on Node.
#
#   tools/test-matrix.sh            Node 22 and 24
#   tools/test-matrix.sh 24 26      these
#
# Needs `npm ci`; fetches a Node binary (120-145 MB each), better-sqlite3 (10 MB) and
# @platformatic/kafka (9 MB) at its first use. Exit status: 0 all green, 1 some are not.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
versions=("$@")
[[ ${#versions[@]} -gt 0 ]] || versions=(22 24)

# The tests load it from this folder, and fail where it is named and cannot be loaded.
ROWPOST_TEST_BETTER_SQLITE3=$(tools/services/node-matrix package better-sqlite3@13.2.0)
export ROWPOST_TEST_BETTER_SQLITE3
# With this variable the tests run with @platformatic/kafka too, from here.
platformatic=$(tools/services/node-matrix package @platformatic/kafka@2.12.1)
export ROWPOST_TEST_PEERS=${platformatic%/node_modules/*}

npx tsc -b
failed=()
for version in "${versions[@]}"; do
  bin=$(tools/services/node-matrix bin "$version")
  printf '\n== Node %s\n' "$("$bin/node" --version)"
  PATH="$bin:$PATH" "$bin/node" node_modules/vitest/vitest.mjs run /src/ sqlite test/package brokers/kafka consume/kafka || failed+=("$version")
done

if [[ ${#failed[@]} -gt 0 ]]; then
  printf 'red under Node %s\n' "${failed[*]}" >&2
  exit 1
fi
