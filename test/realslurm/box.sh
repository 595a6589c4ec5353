#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# box.sh ROOT SHARED: process 1 of a box, in namespaces of its own (mounts, host name, IPC, network, processes). It lays what
# daemons write over the read-only root file system ROOT, with SHARED as /mnt, and then waits for its children for ever.
set -euo pipefail
root=$1 shared=$2

mount --make-rprivate /
hostname box
ip link set lo up
# A daemon in a network of loopback alone does not start.
ip link add eth0 type veth peer name eth1
ip address add 10.9.8.7/24 dev eth0
ip link set eth0 up
ip link set eth1 up

mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind "$shared" "$root/mnt"
mount --bind "$shared/etc" "$root/etc"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys" 2>/dev/null || mount --rbind /sys "$root/sys"
for dir in dev run tmp var/log var/spool; do mount -t tmpfs -o mode=755 tmpfs "$root/$dir"; done
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
chmod 1777 "$root/tmp"
mkdir -p "$root/dev/shm" "$root/run/slurm" "$root/run/slurmctld" "$root/var/spool/slurmd"
chown --reference="$shared/state" "$root/run/slurmctld"
# Only then is the root of this process, which others enter, that of the box. Where it is no root of a mount namespace, nobody makes user
# namespaces.
cd "$root"
pivot_root . .
umount --lazy .
exec /bin/bash -c 'cd /; echo ready >/mnt/ready; trap : CHLD; while :; do sleep 3600 & wait $!; done'
