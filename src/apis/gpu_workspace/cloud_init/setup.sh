#!/bin/bash
# Prepares this workspace. Safe to run again: what is done is kept, /var/lib/paved/ready says that all of it is.
set -Eeuo pipefail
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a
log=/var/log/user-data.log state=/var/lib/paved venv=/opt/paved/venv uv=/opt/paved/uv needs=/opt/paved/requirements.txt
cd /
mkdir -p "$state"
[ -e "$state/ready" ] && exit 0
exec >>"$log" 2>&1

step() {
  current=$1
  echo "$(date -u +%FT%TZ) $current"
}

failed() {
  local code=$?
  trap - ERR
  echo "$(date -u +%FT%TZ) failed: $current (exit code $code)"
  { echo "$current (exit code $code)"; tail -n 12 "$log"; } >"$state/failed"
  exit "$code"
}
trap failed ERR

# Networks, mirrors and the package manager's lock come back: try five times within some minutes.
retry() {
  local wait
  for wait in 5 15 45 90; do
    "$@" && return
    echo "again in $wait s: $*"
    sleep "$wait"
  done
  "$@"
}

as_developer() {
  runuser -u developer -- env HOME=/home/developer PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 "$@"
}

fits() {
  python3 -c 'import sys; sys.exit(sys.version_info[:2] > tuple(map(int, sys.argv[1].split("."))))' "$1"
}

# OpenCV's older wheels know no newer Python: then one of the right age is fetched.
make_venv() {
  local newest
  newest=$(sed -n 's/^# python<=//p' "$needs")
  if [ -z "$newest" ] || fits "$newest"; then
    as_developer python3 -m venv --clear "$venv"
  else
    as_developer python3 -m venv --clear "$uv" &&
      as_developer "$uv/bin/pip" install uv &&
      as_developer UV_PYTHON_INSTALL_DIR="$uv/python" "$uv/bin/uv" venv --seed --allow-existing --python "$newest" "$venv"
  fi
}

step 'adding developer to the group docker'
if getent group docker; then usermod -aG docker developer; fi

step 'installing what Python environments need'
if ! python3 -c 'import ensurepip'; then
  retry apt-get -o DPkg::Lock::Timeout=300 update
  retry apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends python3-venv
fi

step 'making the Python environment'
install -d -o developer "$venv" "$uv"
if [ ! -x "$venv/bin/pip" ]; then retry make_venv; fi

step 'installing OpenCV'
retry as_developer "$venv/bin/pip" install --only-binary :all: --requirement "$needs"

step 'checking OpenCV'
as_developer "$venv/bin/python" -c 'import cv2, numpy; print("OpenCV", cv2.__version__, "NumPy", numpy.__version__)'

step 'looking for GPUs'
nvidia-smi -L || echo 'no GPU answers'

step 'ready'
rm -f "$state/failed"
touch "$state/ready"
