#!/usr/bin/env bash
# Runs the unit tests, the SQLite tests and the Kafka tests under the other Node versions that we promise. The newest ones have a SQLite of
# their own (node:sqlite), and only they run @platformatic/kafka, so the same tests also cover these drivers there. The rest of the suite talks
# to servers and does not depend on Node.
#
#   tools/test-matrix.sh            Node 22 and 24
#   tools/test-matrix.sh 24 26      these
#
# Needs `npm ci`; fetches a Node binary at its first use (120-145 MB each). Exit status: 0 all green, 1 some are not.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
versions=("$@")
[[ ${#versions[@]} -gt 0 ]] || versions=(22 24)

npx tsc -b
failed=()
for version in "${versions[@]}"; do
  bin=$(tools/services/node-matrix bin "$version")
  printf '\n== Node %s\n' "$("$bin/node" --version)"
  PATH="$bin:$PATH" "$bin/node" node_modules/vitest/vitest.mjs run /src/ sqlite test/package brokers/kafka || failed+=("$version")
done

if [[ ${#failed[@]} -gt 0 ]]; then
  printf 'red under Node %s\n' "${failed[*]}" >&2
  exit 1
fi
