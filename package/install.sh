#!/bin/sh
# Installs `paved` with its completions and manual pages from a release archive, or removes it.
# `install.sh --help` describes the flags. It needs a shell, the programs of coreutils, tar and gzip,
# and for a URL curl or wget.
#
# The files are checked and prepared in a folder below the prefix, and then moved into place. If a
# step fails, the installation is as before.
set -eu
umask 022

RELEASES=https://github.com/paved-road/paved-road/releases/latest/download
# The workflow that signs releases, as in docs/how-to/verify-a-release.md.
ISSUER=https://token.actions.githubusercontent.com
SIGNER='^https://github\.com/paved-road/paved-road/\.github/workflows/release\.yaml@refs/tags/v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?$'

usage() {
  cat <<'TEXT'
Install `paved` with its completions and manual pages, or remove it.

Usage: install.sh [--prefix DIR] [--key FILE] [SOURCE]
       install.sh --uninstall [--prefix DIR]

SOURCE is one of these:
  - a release archive, with SHA256SUMS beside it
  - a folder with release archives and SHA256SUMS
  - the folder of an unpacked archive [default: the folder of this script, if it is one]
  - a URL of an archive or of a folder with archives [default: the latest release]

  --prefix DIR   folder to install to [default: ~/.local]
  --key FILE     public key of the signature, instead of the release workflow's identity
  --uninstall    remove the files that this script has installed
  --help         print this help

The script checks the checksum. With cosign, it also checks the signature of SHA256SUMS.
TEXT
}

fail() {
  echo "error: $1" >&2
  exit 1
}

main() {
  prefix="${HOME:-}/.local" key='' source='' action=install
  while [ $# -gt 0 ]; do
    case "$1" in
      --help | -h) usage && exit 0 ;;
      --uninstall) action=uninstall ;;
      --prefix | --key)
        [ $# -ge 2 ] || fail "$1: a value is missing; see install.sh --help"
        if [ "$1" = --prefix ]; then prefix=$2; else key=$2; fi
        shift
        ;;
      --prefix=*) prefix=${1#*=} ;;
      --key=*) key=${1#*=} ;;
      -*) fail "$1: unknown flag; allowed: --prefix, --key, --uninstall, --help" ;;
      *)
        [ -z "$source" ] || fail "$1: one SOURCE is allowed, and $source is already named"
        source=$1
        ;;
    esac
    shift
  done
  case "$prefix" in
    /.local) fail '--prefix: HOME is not set. Name a folder, for example --prefix /usr/local' ;;
    /*) ;;
    '') fail '--prefix: found nothing; allowed: a folder' ;;
    *) prefix=$PWD/$prefix ;;
  esac
  record=$prefix/share/paved-road/installed
  scratch='' is_new=''
  trap 'cleanup' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  if [ "$action" = uninstall ]; then uninstall; else install_release; fi
}

cleanup() {
  [ -z "$scratch" ] || rm -rf "$scratch"
  [ -z "$is_new" ] || remove_folders
}

install_release() {
  platform
  prepare_prefix
  find_release
  stage
  replace
  is_new=''
  echo "installed $version in $prefix/bin/paved"
  case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) echo "note: $prefix/bin is not in PATH. Add it: export PATH=\"$prefix/bin:\$PATH\"" ;;
  esac
  echo 'next: paved demo'
}

# Sets `name` to the name of this machine's archive.
platform() {
  system=$(uname -s) machine=$(uname -m)
  case "$system $machine" in
    'Linux x86_64' | 'Linux amd64') name=paved-linux-amd64 ;;
    'Linux aarch64' | 'Linux arm64') name=paved-linux-arm64 ;;
    *) fail "no release for $system on $machine; allowed: Linux on x86_64 or aarch64. Build paved from its sources: see README.md" ;;
  esac
}

# Creates the prefix and the scratch folder. The scratch folder is below the prefix, because only a
# move on one file system cannot fail half-way.
prepare_prefix() {
  hint="Choose a folder that you can write to with --prefix, for example --prefix \"\$HOME/.local\""
  [ -d "$prefix" ] || is_new=yes
  mkdir -p "$prefix" 2>/dev/null || fail "could not create $prefix. $hint"
  scratch=$(mktemp -d "$prefix/.paved-install.XXXXXX" 2>/dev/null) || fail "could not write to $prefix. $hint"
}

# Unpacks the release to $scratch/$name.
find_release() {
  if [ -z "$source" ]; then
    here=$(dirname "$0")
    if [ -f "$here/paved" ] && [ -d "$here/completions" ]; then source=$here; else source=$RELEASES; fi
  fi
  case "$source" in
    *://*) download ;;
    *)
      if [ -d "$source" ] && [ -f "$source/paved" ]; then
        cp -R "$source" "$scratch/$name" || fail "could not read $source"
        return
      fi
      if [ -d "$source" ]; then source=$source/$name.tar.gz; fi
      [ -f "$source" ] || fail "$source does not exist; allowed: a release archive, a folder with $name.tar.gz, or a URL"
      archive=$source sums=$(dirname "$source")/SHA256SUMS
      ;;
  esac
  check_name
  check_sum
  check_signature
  tar -xzf "$archive" -C "$scratch" || fail "could not unpack $archive. Nothing was installed"
  [ -d "$scratch/$name" ] || fail "$archive has no folder $name. Nothing was installed"
}

download() {
  case "$source" in
    *.tar.gz) base=${source%/*} archive=$scratch/${source##*/} ;;
    *) base=${source%/} archive=$scratch/$name.tar.gz ;;
  esac
  sums=$scratch/SHA256SUMS
  fetch "$base/${archive##*/}" "$archive" || fail "could not download $base/${archive##*/}. Check the address and the network"
  fetch "$base/SHA256SUMS" "$sums" || fail "could not download $base/SHA256SUMS, which has the checksum. Nothing was installed"
  fetch "$base/SHA256SUMS.sigstore.json" "$sums.sigstore.json" 2>/dev/null || rm -f "$sums.sigstore.json"
}

# fetch URL FILE
fetch() {
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --output "$2" "$1"
  elif command -v wget >/dev/null; then
    wget --quiet --output-document "$2" "$1"
  else
    fail 'a URL needs curl or wget. Download the archive and SHA256SUMS, and name the archive'
  fi
}

check_name() {
  [ "${archive##*/}" = "$name.tar.gz" ] || fail "${archive##*/} is for another platform; this machine needs $name.tar.gz. Nothing was installed"
}

check_sum() {
  [ -f "$sums" ] || fail "$sums does not exist. It has the checksum of $name.tar.gz: download it to the same folder"
  expected=''
  while read -r sum file; do
    if [ "$file" = "$name.tar.gz" ]; then expected=$sum; fi
  done <"$sums"
  [ -n "$expected" ] || fail "$sums has no checksum of $name.tar.gz. Nothing was installed"
  found=$(sha256sum <"$archive")
  found=${found%% *}
  [ "$found" = "$expected" ] || fail "wrong checksum of $name.tar.gz: found $found, but SHA256SUMS has $expected. The file is incomplete or changed: download it again. Nothing was installed"
}

check_signature() {
  bundle=$sums.sigstore.json
  if ! command -v cosign >/dev/null; then
    [ -z "$key" ] || fail '--key needs cosign, which is not installed. Nothing was installed'
    echo 'note: the signature is not checked, because cosign is not installed'
  elif [ ! -f "$bundle" ]; then
    [ -z "$key" ] || fail "--key needs the signature, but $bundle does not exist. Nothing was installed"
    echo "note: the signature is not checked, because SHA256SUMS.sigstore.json is missing"
  else
    set -- "--certificate-oidc-issuer=$ISSUER" "--certificate-identity-regexp=$SIGNER"
    [ -z "$key" ] || set -- "--key=$key" --insecure-ignore-tlog
    cosign verify-blob "$@" --bundle "$bundle" "$sums" || fail 'wrong signature of SHA256SUMS. Do not use these files. Nothing was installed'
  fi
}

# Checks the unpacked files, and lists the target of each in $scratch/targets: FOLDER/NAME.
stage() {
  unpacked=$scratch/$name
  for file in SHA256SUMS paved completions/paved.bash completions/_paved completions/paved.fish man/paved.1; do
    [ -f "$unpacked/$file" ] || fail "the release lacks $file. Nothing was installed"
  done
  (cd "$unpacked" && sha256sum --check --strict --quiet SHA256SUMS) >/dev/null 2>&1 ||
    fail 'a file of the release is missing or changed. Download it again. Nothing was installed'
  version=$("$unpacked/paved" --version 2>/dev/null) ||
    fail "the release's program does not run on this machine, which needs $name. Nothing was installed"
  files=$scratch/files
  mkdir -p "$files/bin" "$files/share/bash-completion/completions" "$files/share/zsh/site-functions" \
    "$files/share/fish/vendor_completions.d" "$files/share/man/man1" "$files/share/paved-road"
  mv "$unpacked"/man/*.1 "$files/share/man/man1/"
  mv "$unpacked/completions/paved.bash" "$files/share/bash-completion/completions/paved"
  mv "$unpacked/completions/_paved" "$files/share/zsh/site-functions/_paved"
  mv "$unpacked/completions/paved.fish" "$files/share/fish/vendor_completions.d/paved.fish"
  mv "$unpacked/paved" "$files/bin/paved"
  # The program is last, so that it exists only in a complete installation.
  : >"$scratch/targets"
  for file in "$files"/share/man/man1/* "$files/share/bash-completion/completions/paved" \
    "$files/share/zsh/site-functions/_paved" "$files/share/fish/vendor_completions.d/paved.fish" \
    "$files/bin/paved"; do
    echo "${file#"$files/"}" >>"$scratch/targets"
  done
}

# Moves the files into place. Before the first move, it checks that every move can succeed.
replace() {
  while read -r target; do
    folder=$prefix/$(dirname "$target")
    mkdir -p "$folder" 2>/dev/null || fail "could not create $folder. Nothing was installed. $hint"
    [ -w "$folder" ] || fail "could not write to $folder. Nothing was installed. $hint"
    [ ! -d "$prefix/$target" ] || fail "$prefix/$target is a folder. Move it away. Nothing was installed"
  done <"$scratch/targets"
  mkdir -p "$(dirname "$record")" 2>/dev/null || fail "could not create $(dirname "$record"). $hint"
  while read -r target; do
    if [ -f "$prefix/$target" ]; then
      mkdir -p "$scratch/old/$(dirname "$target")"
      cp -p "$prefix/$target" "$scratch/old/$target" || fail "could not read $prefix/$target. Nothing was installed"
    fi
  done <"$scratch/targets"
  while read -r target; do
    mv -f "$files/$target" "$prefix/$target" || restore "$target"
  done <"$scratch/targets"
  # Files of an earlier version that this one no longer has.
  if [ -f "$record" ]; then
    while read -r old; do
      if ! has_line "$old" "$scratch/targets"; then remove "$old"; fi
    done <"$record"
  fi
  cp "$scratch/targets" "$scratch/record"
  mv -f "$scratch/record" "$record"
}

# Puts the earlier files back after a move has failed.
restore() {
  while read -r target; do
    if [ -f "$scratch/old/$target" ]; then
      mv -f "$scratch/old/$target" "$prefix/$target" || true
    elif [ ! -f "$files/$target" ]; then
      rm -f "$prefix/$target"
    fi
  done <"$scratch/targets"
  fail "could not write $prefix/$1. Nothing was installed. $hint"
}

# has_line LINE FILE: whether the file has the line. grep is not in coreutils.
has_line() {
  while read -r line; do
    if [ "$line" = "$1" ]; then return 0; fi
  done <"$2"
  return 1
}

# Removes one recorded file. A record with another path was not written by this script.
remove() {
  case "/$1/" in
    *//* | */../*) fail "$record names $1, which is outside of $prefix" ;;
    /bin/* | /share/*) rm -f "$prefix/$1" || fail "could not remove $prefix/$1" ;;
    *) fail "$record names $1, which is outside of $prefix" ;;
  esac
}

uninstall() {
  if [ ! -f "$record" ]; then
    echo "paved is not installed in $prefix"
    return
  fi
  while read -r target; do remove "$target"; done <"$record"
  rm -f "$record" || fail "could not remove $record"
  remove_folders
  echo "removed paved from $prefix"
}

# Removes the folders of an installation that are empty.
remove_folders() {
  for folder in share/paved-road share/man/man1 share/man share/bash-completion/completions \
    share/bash-completion share/zsh/site-functions share/zsh share/fish/vendor_completions.d \
    share/fish share bin ''; do
    rmdir "$prefix/$folder" 2>/dev/null || true
  done
}

main "$@"
