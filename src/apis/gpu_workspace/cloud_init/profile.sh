# shellcheck shell=sh
# The workspace's Python comes first for those who log in. Not for root: its users may write there.
if [ "$(id -u)" -ne 0 ]; then
  PATH=/opt/paved/venv/bin:$PATH
fi
