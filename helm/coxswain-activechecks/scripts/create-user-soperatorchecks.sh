#!/bin/sh
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# create-user-soperatorchecks: makes the account whose jobs those of checks are, in the jail, with its home and a key pair of ssh. What is
# there already stays as it is. It runs as root in a pod with the jail.
#
# Environment:
#   JAIL           where the jail is mounted; /mnt/jail by default
#   CHECKS_UID     uid and gid of a new account; 3000 by default
#   WAIT_SECONDS   how long slurmctld may take to know a new account; 15 by default
set -eu

jail=${JAIL:-/mnt/jail}
name=soperatorchecks
home=/opt/soperator-home/$name

# owner: uid:gid of the account; nothing if there is none.
owner() { awk -F: -v name="$name" '$1 == name { print $3 ":" $4 }' "$jail/etc/passwd"; }

made=
if [ -z "$(owner)" ]; then
	useradd --prefix "$jail" --uid "${CHECKS_UID:-3000}" --user-group --no-create-home --home-dir "$home" --shell /bin/bash "$name"
	made=yes
fi
owner=$(owner)

mkdir -p "$jail/opt/soperator-home"
[ -d "$jail$home" ] || mkdir -m 0700 "$jail$home"
# A link that somebody has put there must not give away what it leads to.
chown -h "$owner" "$jail$home"

keys=$(mktemp -d)
trap 'rm -rf "$keys"' EXIT
# ssh-keygen wants an account of its user, which this pod lacks.
ssh-keygen -q -t ed25519 -N '' -C "$name@cluster" -f "$keys/id_ed25519"
chown -R "$owner" "$keys"
# shellcheck disable=SC2016 # the inner shell expands them
setpriv --reuid "${owner%:*}" --regid "${owner#*:}" --clear-groups sh -euc '
	umask 077
	mkdir -p "$1/.ssh"
	[ ! -e "$1/.ssh/id_ed25519" ] || exit 0
	cp "$2/id_ed25519" "$2/id_ed25519.pub" "$1/.ssh/"
	cat "$2/id_ed25519.pub" >>"$1/.ssh/authorized_keys"' - "$jail$home" "$keys"

if [ -z "$made" ]; then
	echo "PASS: $name is there as $owner"
	exit 0
fi
echo "PASS: made $name as $owner; waiting until slurmctld knows it"
sleep "${WAIT_SECONDS:-15}"
