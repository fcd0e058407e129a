#!/usr/bin/env bash
# Kubernetes 1.34.3 records no managers of an object that was created without a field.
#
# A Lease that was created with `spec: {}` has no metadata.managedFields. Later updates (PUT and
# merge patch) record no managers either, although they set fields such as spec.renewTime. So the
# object does not show when it was last written. A Lease that was created with one field has
# managedFields, and each update adds its manager and its time.
#
# The cause is in k8s.io/apimachinery v0.34.3, in pkg/util/managedfields/internal. In
# skipnonapplied.go, skipNonAppliedManager.Update does not track an update of an existing object
# without managed fields. A creation is compared with an empty object of the kind
# (structuredmerge.go), and gives managed fields only if there is a difference. An empty Lease
# already has `spec: {}`.
#
# A server-side apply starts the tracking. It gives all fields set before to the manager
# before-first-apply, with the time of the apply. Later updates then record their managers. Below,
# the last PUT takes the only field of before-first-apply.
#
# Seen on 2026-11-28 with etcd v3.6.14 and kube-apiserver v1.34.3. Each line shows a request, then
# the fields of spec or data, then the managers. "later" means that the manager's time is after the
# creation. The script fails if the requests give something else than these indented lines.
#
#   Lease, created with spec: {}
#     POST by first: no fields; no managers
#     PUT by second: renewTime; no managers
#     merge patch by third: renewTime; no managers
#     apply by fourth: holderIdentity, renewTime; fourth later, before-first-apply later
#     PUT by fifth: holderIdentity, renewTime; fourth later, fifth later
#   Lease, created with spec: {leaseDurationSeconds: 10}
#     POST by first: leaseDurationSeconds; first
#     PUT by second: leaseDurationSeconds, renewTime; first, second later
#   ConfigMap, created without data
#     POST by first: no fields; no managers
#     PUT by second: text; no managers
#
# Tried by hand, and not in this script: a custom resource that was created without a spec has no
# managers after an update either. Created with `spec: {}`, it has, because an empty custom resource
# has no spec. A Lease that was created with only a label has managers too.
#
# Needs bash, curl, jq, openssl, python3, and Go 1.26.4 or newer. Builds the programs from pinned Go
# modules in a temporary folder, which takes many minutes the first time. All ports are on loopback.
set -euo pipefail
expected=$(sed --quiet 's/^#   //p' "${BASH_SOURCE[0]}")
readonly expected etcd_version=v3.6.14 kubernetes_version=v1.34.3
readonly configmaps=/api/v1/namespaces/default/configmaps
readonly leases=/apis/coordination.k8s.io/v1/namespaces/default/leases
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
mkdir "$folder/home" "$folder/logs" "$folder/certificates"

# fail MESSAGE: prints the ends of the logs and the message, and exits.
fail() {
  tail --lines=5 "$folder"/logs/* >&2
  echo "$1" >&2
  exit 1
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
# start PROGRAM ARGUMENT...: starts a program without the caller's environment.
start() {
  env --ignore-environment --chdir="$folder/home" PATH="$PATH" HOME="$folder/home" \
    "$folder/$1" "${@:2}" &>"$folder/logs/$1" &
  processes+=($!)
}
# api METHOD PATH [TYPE BODY]: sends a request to the API server, and prints the answer.
api() {
  local body=()
  (($# < 4)) || body=(--header "Content-Type: application/$3" --data-binary "$4")
  curl --silent --show-error --fail-with-body --noproxy '*' \
    --cacert "$folder/certificates/apiserver.crt" --header "Authorization: Bearer $token" \
    --request "$1" "${body[@]}" "$server$2" 2>>"$folder/logs/requests"
}
# request TEXT MANAGER METHOD PATH TYPE BODY: sends a request, and prints the fields and managers.
request() {
  local answer
  answer=$(api "$3" "$4?fieldManager=$2" "$5" "$6") || fail "$answer"
  jq --raw-output --arg request "$1 by $2" '
    def list(none): if . == [] then none else join(", ") end;
    (.metadata.creationTimestamp | fromdate) as $created |
    (.spec // .data // {} | keys | list("no fields")) as $fields |
    [.metadata.managedFields // [] | .[] |
      .manager + (if (.time | fromdate) > $created + 1 then " later" else "" end)] |
    "  \($request): \($fields); \(list("no managers"))"' <<<"$answer"
  sleep 3
}
# create TEXT PATH MANIFEST: creates an object.
create() {
  echo "$1"
  request POST first POST "$2" json "$3"
}
# put PATH MANAGER CHANGE: reads an object, and updates it after a change with jq.
put() {
  local object
  object=$(api GET "$1" | jq "$3")
  request PUT "$2" PUT "$1" json "$object"
}

build etcd "$etcd_version" go.etcd.io/etcd/server/v3 ''
modules=$(cd "$folder" && go mod download -json "k8s.io/kubernetes@$kubernetes_version")
mapfile -t replacements < <(sed --quiet \
  "s|^\t\(.*\) => ./staging/.*|\1=\1@${kubernetes_version/v1/v0}|p" "$(jq -r .GoMod <<<"$modules")")
build kube-apiserver "$kubernetes_version" k8s.io/kubernetes/cmd/kube-apiserver \
  "-X=k8s.io/component-base/version.gitVersion=$kubernetes_version" "${replacements[@]}"

read -r etcd_port peer_port server_port < <(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*[each.getsockname()[1] for each in sockets])')
server=https://127.0.0.1:$server_port
token=$(openssl rand -hex 16)
openssl genrsa -out "$folder/certificates/accounts.key" 2048 2>/dev/null
echo "$token,admin,admin,system:masters" >"$folder/certificates/tokens.csv"
etcd=http://127.0.0.1:$etcd_port peer=http://127.0.0.1:$peer_port
start etcd --data-dir="$folder/etcd-data" --unsafe-no-fsync \
  --listen-client-urls="$etcd" --advertise-client-urls="$etcd" --listen-peer-urls="$peer" \
  --initial-advertise-peer-urls="$peer" --initial-cluster="default=$peer"
start kube-apiserver --etcd-servers="$etcd" --bind-address=127.0.0.1 \
  --advertise-address=127.0.0.1 --secure-port="$server_port" --endpoint-reconciler-type=none \
  --service-cluster-ip-range=10.96.0.0/16 --authorization-mode=RBAC \
  --cert-dir="$folder/certificates" --token-auth-file="$folder/certificates/tokens.csv" \
  --disable-admission-plugins=ServiceAccount \
  --service-account-issuer=https://kubernetes.default.svc \
  --service-account-key-file="$folder/certificates/accounts.key" \
  --service-account-signing-key-file="$folder/certificates/accounts.key"
end=$((SECONDS + 120))
until api GET /readyz && api GET /api/v1/namespaces/default; do
  ((SECONDS < end)) || fail 'the API server is not ready within 120 seconds'
  sleep 0.5
done >/dev/null

lease='"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"'
{
  create 'Lease, created with spec: {}' "$leases" \
    "{$lease, \"metadata\": {\"name\": \"empty\"}, \"spec\": {}}"
  put "$leases/empty" second '.spec.renewTime = "2026-11-28T01:00:00.000000Z"'
  request 'merge patch' third PATCH "$leases/empty" merge-patch+json \
    '{"spec": {"renewTime": "2026-11-28T02:00:00.000000Z"}}'
  request apply fourth PATCH "$leases/empty" apply-patch+yaml \
    "{$lease, \"spec\": {\"holderIdentity\": \"fourth\"}}"
  put "$leases/empty" fifth '.spec.renewTime = "2026-11-28T03:00:00.000000Z"'
  create 'Lease, created with spec: {leaseDurationSeconds: 10}' "$leases" \
    "{$lease, \"metadata\": {\"name\": \"field\"}, \"spec\": {\"leaseDurationSeconds\": 10}}"
  put "$leases/field" second '.spec.renewTime = "2026-11-28T01:00:00.000000Z"'
  create 'ConfigMap, created without data' "$configmaps" \
    '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "empty"}}'
  put "$configmaps/empty" second '.data.text = "hello"'
} | tee "$folder/seen"
[[ $(<"$folder/seen") == "$expected" ]] || fail 'Kubernetes behaves differently now'
