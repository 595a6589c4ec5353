/*
 * Copyright The Coxswain Authors.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * chroot.so JAIL: a SPANK plugin that runs the tasks of jobs in another root file system.
 *
 *   plugstack.conf:   required chroot.so /mnt/jail
 *
 * slurmstepd calls it in each task it has forked, as root and before the task drops its
 * privileges. The task gets a mount namespace of its own in which JAIL, with everything that is
 * mounted below it, is the root; the worker's own root is gone from it. Mounts made on the worker
 * later still arrive (slave propagation), none made by a job leaves it. The working directory
 * stays the same path if the jail has it, else it is "/".
 *
 * A task that cannot be moved does not run. The plugin ends the task itself, since slurmstepd would go
 * on when the plugstack says "optional" instead of "required".
 *
 * The extern step is left alone: it holds processes that others start on the worker (ssh, prolog).
 */

#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

SPANK_PLUGIN(chroot, 1);

/* Reports what could not be done, with the reason in errno. */
static int refuse(const char *doing, const char *what)
{
	slurm_error("chroot: %s %s: %s", doing, what, strerror(errno));
	return -1;
}

/* The jail named in plugstack.conf, or NULL with the reason logged. */
static const char *jail_of(int argc, char **argv)
{
	if (argc != 1) {
		slurm_error("chroot: plugstack.conf must give exactly one argument, the jail's path; it gives %d", argc);
		return NULL;
	}
	if (argv[0][0] != '/' || argv[0][strspn(argv[0], "/")] == '\0') {
		slurm_error("chroot: the jail's path must be absolute and not the root: %s", argv[0]);
		return NULL;
	}
	return argv[0];
}

/* Makes the mounted directory jail the root of this process and drops the old one. */
static int change_root(const char *jail)
{
	if (chdir(jail))
		return refuse("entering", jail);
	/* Old and new root on one place: the old one is then on top, and "." is it (pivot_root(2)). */
	if (syscall(SYS_pivot_root, ".", "."))
		return refuse("making a root of", jail);
	if (umount2(".", MNT_DETACH))
		return refuse("detaching the worker's root from", jail);
	if (chdir("/"))
		return refuse("entering", "/ of the jail");
	return 0;
}

/* Gives the jail a /proc in the place of whatever the worker mounted there. */
static int mount_proc(void)
{
	/* EINVAL: nothing is mounted there. */
	if (umount2("/proc", MNT_DETACH) && errno != EINVAL)
		return refuse("unmounting", "/proc of the jail");
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return refuse("mounting", "/proc of the jail");
	return 0;
}

/* Moves this process into the jail. After an error it is in between and must not go on. */
static int enter(const char *jail)
{
	char directory[PATH_MAX];
	struct stat status;

	if (stat(jail, &status))
		return refuse("looking at the jail", jail);
	if (!S_ISDIR(status.st_mode)) {
		errno = ENOTDIR;
		return refuse("looking at the jail", jail);
	}
	if (!getcwd(directory, sizeof(directory)))
		strcpy(directory, "/");

	if (unshare(CLONE_NEWNS))
		return refuse("making a mount namespace for", jail);
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return refuse("cutting off the mounts of", "/");
	/* A root must be a mount; the bind takes along what is mounted below. */
	if (mount(jail, jail, NULL, MS_BIND | MS_REC, NULL))
		return refuse("binding", jail);
	if (change_root(jail) || mount_proc())
		return -1;
	if (chdir(directory))
		slurm_info("chroot: the jail has no %s, the task starts in /", directory);
	return 0;
}

/* Tells the administrator early: a worker with wrong arguments would refuse every job. */
int slurm_spank_slurmd_init(spank_t spank, int argc, char **argv)
{
	(void)spank;
	return jail_of(argc, argv) ? ESPANK_SUCCESS : ESPANK_BAD_ARG;
}

int slurm_spank_task_init_privileged(spank_t spank, int argc, char **argv)
{
	uint32_t step = 0;
	const char *jail;

	if (spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS && step == SLURM_EXTERN_CONT)
		return ESPANK_SUCCESS;

	jail = jail_of(argc, argv);
	if (!jail || enter(jail)) {
		slurm_error("chroot: the task is refused, it would run outside of the jail");
		_exit(1);
	}
	return ESPANK_SUCCESS;
}
