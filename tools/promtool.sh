#!/usr/bin/env bash
# promtool, which reads the Prometheus rules of packages/server/ops as Prometheus does: that of
# Debian's package prometheus, of which nothing else is taken, so that no server is installed.
#
#   tools/promtool.sh            fetches it where it is missing, with apt-get; prints its version
#   tools/promtool.sh ARGS...    runs it
#
# ROWPOST_PROMTOOL=PATH takes another one, and so does a promtool in the PATH. Exit status: 1 it is
# not there, with what to do; else its own.
set -euo pipefail

folder=${XDG_CACHE_HOME:-$HOME/.cache}/rowpost-services/promtool
program=${ROWPOST_PROMTOOL:-$(command -v promtool || echo "$folder/promtool")}

if [[ ! -x $program && $# == 0 && -z ${ROWPOST_PROMTOOL:-} && $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
  mkdir -p "$folder"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  chmod 755 "$work"
  cd "$work"
  apt-get update -qq
  # The sandbox of apt may not write here, of which it warns.
  apt-get download -qq -o APT::Sandbox::User=root prometheus >/dev/null
  dpkg -x prometheus_*.deb unpacked
  mv unpacked/usr/bin/promtool "$folder/promtool"
fi
if [[ ! -x $program ]]; then
  echo "no promtool at $program: tools/promtool.sh fetches it on Debian, as root; or set ROWPOST_PROMTOOL" >&2
  exit 1
fi
if [[ $# == 0 ]]; then "$program" --version | head -n 1; else exec "$program" "$@"; fi
