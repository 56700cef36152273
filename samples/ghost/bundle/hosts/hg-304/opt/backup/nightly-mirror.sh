#!/bin/bash
# keep rack 3 equal to the mirror while users still work on both  -- rk
set -eu
SRC=vault2:/mirror
POOL=/scratch3
LOG=/var/log/nightly-mirror.log
exec >>"$LOG" 2>&1
for tree in lupin; do
    echo "$(date -Is) $tree"
    rsync -a --delete --partial "$SRC/$tree/" "$POOL/$tree/"
done
