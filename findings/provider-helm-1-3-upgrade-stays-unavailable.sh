#!/usr/bin/env bash
# After a successful upgrade, provider-helm v1.3.0 leaves a Release at Ready=False, reason
# Unavailable, until the next poll (--poll, 10 minutes by default).
#
# The upgrade is one reconciliation. Observe sets Unavailable, because the release is not up to
# date. Update then upgrades the release and writes the new revision to status.atProvider. Only the
# next reconciliation sets Available. In v1.0.6, the controller's own change of the status triggers
# this reconciliation. In v1.3.0, the controllers of both kinds have the event filter
# `resource.DesiredStateChanged()` (pkg/controller/{cluster,namespaced}/release/release.go), which
# ignores changes of the status. So the next reconciliation starts at the next poll, or when the
# spec, a label or an annotation changes. An installation is not affected, because the reconciler
# requests the next reconciliation itself.
#
# Seen on 2026-11-28 with etcd v3.6.14 and kube-apiserver v1.34.3. The seconds count from each
# action. The values are spec.forProvider.values.
#
#   provider-helm v1.0.6: new Releases
#     1 s  cluster-v1-0-6     revision=1 deployed Synced=True Ready=True Available
#     1 s  namespaced-v1-0-6  revision=1 deployed Synced=True Ready=True Available
#   provider-helm v1.0.6: new values
#     1 s  cluster-v1-0-6     revision=2 deployed Synced=True Ready=True Available
#     1 s  namespaced-v1-0-6  revision=2 deployed Synced=True Ready=True Available
#   provider-helm v1.3.0: new Releases
#     1 s  cluster-v1-3-0     revision=1 deployed Synced=True Ready=True Available
#     1 s  namespaced-v1-3-0  revision=1 deployed Synced=True Ready=True Available
#   provider-helm v1.3.0: new values
#     1 s  cluster-v1-3-0     revision=2 deployed Synced=True Ready=False Unavailable
#     1 s  namespaced-v1-3-0  revision=2 deployed Synced=True Ready=False Unavailable
#    33 s  cluster-v1-3-0     revision=2 deployed Synced=True Ready=False Unavailable
#    33 s  namespaced-v1-3-0  revision=2 deployed Synced=True Ready=False Unavailable
#   provider-helm v1.3.0: new annotation
#     1 s  cluster-v1-3-0     revision=2 deployed Synced=True Ready=True Available
#     1 s  namespaced-v1-3-0  revision=2 deployed Synced=True Ready=True Available
#
# Fails if the behaviour changes.
#
# Needs bash, curl, jq, openssl, python3, and Go 1.26.4 or newer. Builds the programs from pinned Go
# modules in a temporary folder, which takes many minutes the first time. All ports are on loopback.
set -euo pipefail

readonly etcd_version=v3.6.14 kubernetes_version=v1.34.3
readonly provider=github.com/crossplane-contrib/provider-helm
readonly cluster_group=helm.crossplane.io/v1beta1 namespaced_group=helm.m.crossplane.io/v1beta1
readonly crds=/apis/apiextensions.k8s.io/v1/customresourcedefinitions
# How long each step may take, and how long a Release is watched, in seconds.
readonly patience=30
export CGO_ENABLED=0 GOWORK=off

folder=$(mktemp -d)
readonly folder
processes=()
finish() {
  ((${#processes[@]} == 0)) || kill "${processes[@]}" 2>/dev/null || true
  wait
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' INT TERM
mkdir "$folder/home" "$folder/logs"

# fail MESSAGE: prints the ends of the logs and the message, and exits.
fail() {
  tail --lines=5 "$folder"/logs/* >&2
  echo "$1" >&2
  exit 1
}

# eventually SECONDS COMMAND...: repeats a command until it succeeds.
eventually() {
  local end=$((SECONDS + $1))
  until "${@:2}"; do
    ((SECONDS < end)) || fail "not within $1 seconds: ${*:2}"
    sleep 0.5
  done
}

# start NAME PROGRAM ARGUMENT...: starts a program without the caller's environment, which could
# contain proxies.
start() {
  env --ignore-environment --chdir="$folder/home" PATH="$PATH" HOME="$folder/home" \
    KUBECONFIG="$folder/kubeconfig" "${@:2}" &>"$folder/logs/$1" &
  processes+=($!)
}

# stop: ends the program that was started last.
stop() {
  kill "${processes[-1]}"
  wait "${processes[-1]}" || true
  unset 'processes[-1]'
}

# downloaded MODULE VERSION FIELD: downloads a module, and prints where its folder (Dir) or its
# go.mod (GoMod) is.
downloaded() {
  (cd "$folder" && go mod download -json "$1@$2") | jq --raw-output ".$3"
}

# build NAME VERSION PACKAGE LDFLAGS [REPLACEMENT...]: builds a program whose module has `replace`
# lines. `go install` rejects such a module, so another module requires the program as a tool.
build() {
  echo "building $1 $2"
  mkdir "$folder/$1-module"
  (
    cd "$folder/$1-module"
    go mod init build
    for replacement in "${@:5}"; do go mod edit -replace "$replacement"; done
    go get -tool "$3@$2"
    go build -mod=mod -trimpath -ldflags "$4" -o "$folder/$1" "$3"
  ) &>"$folder/logs/build" || fail "go cannot build $1"
}

# build_provider VERSION: the provider has no flag for the port of its metrics. It stores charts in
# the machine's /tmp. With our change, it stores them in its working directory.
build_provider() {
  echo "building provider-helm $1"
  local copy="$folder/provider-helm-$1-module" client=pkg/clients/helm/client.go
  cp --recursive "$(downloaded "$provider" "$1" Dir)" "$copy"
  chmod --recursive u+w "$copy"
  sed --in-place 's|"/tmp/charts"|"charts"|' "$copy/$client"
  grep --quiet 'chartCache .*= "charts"' "$copy/$client" || fail "$client has no chartCache"
  (
    cd "$copy"
    go build -trimpath -o "$folder/provider-helm-$1" -ldflags \
      '-X=sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=127.0.0.1:0' \
      ./cmd/provider
  ) &>"$folder/logs/build" || fail "go cannot build provider-helm $1"
}

# api METHOD PATH [TYPE BODY]: sends a request to the API server, and prints the answer.
api() {
  local body=()
  (($# < 4)) || body=(--header "Content-Type: application/$3" --data-binary "$4")
  curl --silent --show-error --fail-with-body --noproxy '*' \
    --cacert "$folder/certificates/apiserver.crt" --header "Authorization: Bearer $token" \
    --request "$1" "${body[@]}" "$server$2" 2>>"$folder/logs/requests"
}

# is_ready: whether the API server is ready.
is_ready() { api GET /readyz >/dev/null; }

# apply PATH MANIFEST: creates or changes an object. @FILE reads the manifest from a file.
apply() {
  local answer
  answer=$(api PATCH "$1?fieldManager=finding&force=true" apply-patch+yaml "$2") || fail "$answer"
}

# merge PATH PATCH: changes fields of an object.
merge() {
  local answer
  answer=$(api PATCH "$1" merge-patch+json "$2") || fail "$answer"
}

# state PATH: prints the state of a Release.
state() {
  api GET "$1" | jq --raw-output '
    def condition(name): [.status.conditions // [] | .[] | select(.type == name)][0];
    "revision=\(.status.atProvider.revision) \(.status.atProvider.state)" +
    " Synced=\(condition("Synced").status)" +
    " Ready=\(condition("Ready").status) \(condition("Ready").reason)"'
}

# is PATH TEXT: whether the state of a Release contains the text.
is() { [[ $(state "$1") == *"$2"* ]]; }

# action TEXT: prints the next action.
action() {
  echo "$1"
  since=$SECONDS
}

# show: prints the seconds since the last action, and the states of the Releases.
show() {
  local release
  for release in "${releases[@]}"; do
    printf '%3d s  %-17s  %s\n' $((SECONDS - since)) "${release##*/}" "$(state "$release")"
  done
}

# upgrade VERSION: starts a version of the provider, with its CRDs. Creates a Release of each kind,
# and changes the values. Sets `releases` to the paths of the Releases.
upgrade() {
  local crd release name=${1//./-}
  for crd in "$(downloaded "$provider" "$1" Dir)"/package/crds/*.yaml; do
    apply "$crds/$(sed --quiet 's/^  name: //p' "$crd")" "@$crd"
  done
  eventually "$patience" are_served
  config "$cluster_group" ProviderConfig
  config "$namespaced_group" ClusterProviderConfig
  releases=(
    "/apis/$cluster_group/releases/cluster-$name"
    "/apis/$namespaced_group/namespaces/default/releases/namespaced-$name"
  )
  action "provider-helm $1: new Releases"
  start "provider-helm-$1" "$folder/provider-helm-$1" --poll=10m
  install "$cluster_group" "${releases[0]}"
  install "$namespaced_group" "${releases[1]}"
  for release in "${releases[@]}"; do
    eventually "$patience" is "$release" 'revision=1 deployed Synced=True Ready=True'
  done
  show
  action "provider-helm $1: new values"
  for release in "${releases[@]}"; do
    merge "$release" '{"spec": {"forProvider": {"values": {"greeting": "goodbye"}}}}'
  done
  for release in "${releases[@]}"; do
    eventually "$patience" is "$release" 'revision=2 deployed Synced=True'
  done
}

# are_served: whether the API server serves the kinds of the provider.
are_served() {
  api GET "/apis/$cluster_group/providerconfigs" >/dev/null &&
    api GET "/apis/$cluster_group/releases" >/dev/null &&
    api GET "/apis/$namespaced_group/clusterproviderconfigs" >/dev/null &&
    api GET "/apis/$namespaced_group/releases" >/dev/null
}

# config GROUP KIND: creates the default provider config, with the provider's own kubeconfig.
config() {
  apply "/apis/$1/${2,,}s/default" "
    apiVersion: $1
    kind: $2
    metadata: {name: default}
    spec: {credentials: {source: Filesystem, fs: {path: $folder/kubeconfig}}}"
}

# install GROUP PATH: creates a Release.
install() {
  apply "$2" "
    apiVersion: $1
    kind: Release
    metadata: {name: ${2##*/}}
    spec:
      forProvider:
        chart: {name: greeting, version: 0.1.0, repository: 'http://127.0.0.1:$charts_port'}
        namespace: default
        skipCreateNamespace: true
        wait: false
        values: {greeting: hello}"
}

build etcd "$etcd_version" go.etcd.io/etcd/server/v3 ''
modules=$(downloaded k8s.io/kubernetes "$kubernetes_version" GoMod)
mapfile -t replacements < <(
  sed --quiet "s|^\t\(.*\) => ./staging/.*|\1=\1@${kubernetes_version/v1/v0}|p" "$modules"
)
build kube-apiserver "$kubernetes_version" k8s.io/kubernetes/cmd/kube-apiserver \
  "-X=k8s.io/component-base/version.gitVersion=$kubernetes_version" "${replacements[@]}"
build_provider v1.0.6
build_provider v1.3.0

read -r etcd_port peer_port server_port charts_port < <(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
print(*[each.getsockname()[1] for each in sockets])')
server=https://127.0.0.1:$server_port
token=$(openssl rand -hex 16)
mkdir "$folder/certificates"
openssl genrsa -out "$folder/certificates/accounts.key" 2048 2>/dev/null
echo "$token,admin,admin,system:masters" >"$folder/certificates/tokens.csv"

# A chart with only a ConfigMap.
mkdir --parents "$folder/greeting/templates" "$folder/charts"
echo '{apiVersion: v2, name: greeting, version: 0.1.0}' >"$folder/greeting/Chart.yaml"
cat >"$folder/greeting/templates/greeting.yaml" <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {greeting: "{{ .Values.greeting }}"}
YAML
tar --create --gzip --file="$folder/charts/greeting-0.1.0.tgz" --directory="$folder" greeting
cat >"$folder/charts/index.yaml" <<'YAML'
apiVersion: v1
entries:
  greeting:
  - {apiVersion: v2, name: greeting, version: 0.1.0, urls: [greeting-0.1.0.tgz]}
YAML

start charts python3 -m http.server "$charts_port" --bind 127.0.0.1 --directory "$folder/charts"
start etcd "$folder/etcd" --data-dir="$folder/etcd-data" --unsafe-no-fsync \
  --listen-client-urls="http://127.0.0.1:$etcd_port" \
  --advertise-client-urls="http://127.0.0.1:$etcd_port" \
  --listen-peer-urls="http://127.0.0.1:$peer_port" \
  --initial-advertise-peer-urls="http://127.0.0.1:$peer_port" \
  --initial-cluster="default=http://127.0.0.1:$peer_port"
start kube-apiserver "$folder/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd_port" \
  --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$server_port" \
  --endpoint-reconciler-type=none --service-cluster-ip-range=10.96.0.0/16 \
  --cert-dir="$folder/certificates" --token-auth-file="$folder/certificates/tokens.csv" \
  --authorization-mode=RBAC --disable-admission-plugins=ServiceAccount \
  --service-account-issuer=https://kubernetes.default.svc \
  --service-account-key-file="$folder/certificates/accounts.key" \
  --service-account-signing-key-file="$folder/certificates/accounts.key"
eventually 120 is_ready
# The provider passes the authority's certificate to Helm. It does not pass the name of a file.
authority=$(base64 --wrap=0 "$folder/certificates/apiserver.crt")
cat >"$folder/kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters:
- name: loopback
  cluster: {server: '$server', certificate-authority-data: $authority}
users:
- {name: admin, user: {token: $token}}
contexts:
- {name: loopback, context: {cluster: loopback, user: admin}}
current-context: loopback
YAML

upgrade v1.0.6
for release in "${releases[@]}"; do
  eventually "$patience" is "$release" 'revision=2 deployed Synced=True Ready=True'
done
show
stop

upgrade v1.3.0
show
for ((end = SECONDS + patience; SECONDS < end; )); do
  for release in "${releases[@]}"; do
    is "$release" 'revision=2 deployed Synced=True Ready=False Unavailable' ||
      fail "provider-helm behaves differently now: $release $(state "$release")"
  done
  sleep 1
done
show
action 'provider-helm v1.3.0: new annotation'
for release in "${releases[@]}"; do
  merge "$release" '{"metadata": {"annotations": {"example.org/observe": "again"}}}'
done
for release in "${releases[@]}"; do
  eventually "$patience" is "$release" 'revision=2 deployed Synced=True Ready=True'
done
show
