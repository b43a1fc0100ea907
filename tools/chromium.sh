#!/usr/bin/env bash
# The browser of the console's tests: Debian's Chromium, and fonts that have Chinese.
#
#   tools/chromium.sh    installs what is missing with apt-get, as root; prints the version
#
# ROWPOST_CHROMIUM=PATH takes another one, which is never installed. Exit status: 0 it is there, 1
# it is not, with what to do.
set -euo pipefail

browser=${ROWPOST_CHROMIUM:-/usr/bin/chromium}

has_chinese() { [[ -n $(fc-list :lang=zh-cn 2>/dev/null) ]]; }

if [[ ! -x $browser ]] || ! has_chinese; then
  if [[ -n ${ROWPOST_CHROMIUM:-} || $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "no browser at $browser, or no font with Chinese: apt-get install chromium fonts-noto-cjk, or set ROWPOST_CHROMIUM" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends chromium fontconfig fonts-noto-cjk >/dev/null
fi
[[ -x $browser ]] && "$browser" --version --no-sandbox 2>/dev/null
