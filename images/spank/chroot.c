/*
 * Copyright The Coxswain Authors.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * chroot.so JAIL: a SPANK plugin that runs the tasks of jobs in another root file system.
 *
 *   plugstack.conf:   required chroot.so /mnt/jail
 *
 * slurmstepd calls it as root, before it opens the files of a job, and before it forks the tasks. The
 * thread that does both gets a mount namespace of its own in which JAIL, with everything that is mounted
 * below it, is the root; the worker's own root is gone from it. So the files for input and output, the
 * working directory, TaskProlog and the tasks are all those of the jail. Mounts made on the worker later
 * still arrive (slave propagation), none made by a job leaves it.
 *
 * A step that cannot be moved does not run. The plugin remembers that, and ends each task itself, since
 * slurmstepd would go on when the plugstack says "optional" instead of "required".
 *
 * The extern step is left alone: it holds processes that others start on the worker (ssh, prolog).
 */

#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

SPANK_PLUGIN(chroot, 1);

/* Why this step is not in the jail. What slurmstepd says before the tasks start does not reach the user. */
static char why[PATH_MAX + 256] = "the plugin was not asked to move slurmstepd";

/* Keeps what could not be done, with the reason in errno. */
static int refuse(const char *doing, const char *what)
{
	snprintf(why, sizeof(why), "%s %s: %s", doing, what, strerror(errno));
	return -1;
}

/* The jail named in plugstack.conf, or NULL with the reason kept. */
static const char *jail_of(int argc, char **argv)
{
	if (argc != 1) {
		snprintf(why, sizeof(why), "plugstack.conf must give exactly one argument, the jail's path; it gives %d", argc);
		return NULL;
	}
	if (argv[0][0] != '/' || argv[0][strspn(argv[0], "/")] == '\0') {
		snprintf(why, sizeof(why), "the jail's path must be absolute and not the root: %s", argv[0]);
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

/*
 * Loads the worker's name services. slurmstepd asks them for the user later, as root: the C library would load those of the
 * jail, which are its users' files. It keeps a configuration that it has read when the root changes. Every service is asked,
 * since nobody has a name as long as this.
 */
static void load_name_services(void)
{
	char name[LOGIN_NAME_MAX + 2];

	memset(name, ':', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	(void)getpwnam(name);
	(void)getgrnam(name);
}

/*
 * Keeps mpi/pmix from loading components of PMIx and of hwloc, and from files that would have PMIx load some. It starts its
 * server after the move, as root, and would take them from the jail. What is compiled into both libraries is enough. Jobs do
 * not get the environment of slurmstepd.
 */
static void load_no_components(void)
{
	(void)setenv("PMIX_MCA_mca_base_component_disable_dlopen", "1", 1);
	(void)setenv("PMIX_MCA_mca_base_param_files", "none", 1);
	(void)setenv("PMIX_MCA_mca_base_override_param_file", "none", 1);
	(void)setenv("PMIX_MCA_pcompress_base_silence_warning", "1", 1);
	(void)setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
}

/* Moves this process into the jail. After an error it is in between and must not go on. */
static int enter(const char *jail)
{
	char directory[PATH_MAX], null[PATH_MAX];
	struct stat status;

	if (stat(jail, &status))
		return refuse("looking at the jail", jail);
	if (!S_ISDIR(status.st_mode)) {
		errno = ENOTDIR;
		return refuse("looking at the jail", jail);
	}
	/* Without what is the pod's, slurmstepd would wait for the socket of its own authentication for ever. */
	snprintf(null, sizeof(null), "%s/dev/null", jail);
	if (access(null, R_OK | W_OK))
		return refuse("finding what \"jail mount\" mounts,", null);
	if (!getcwd(directory, sizeof(directory)))
		strcpy(directory, "/");

	load_name_services();
	load_no_components();
	if (unshare(CLONE_NEWNS))
		return refuse("making a mount namespace for", jail);
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return refuse("cutting off the mounts of", "/");
	/* A root must be a mount; the bind takes along what is mounted below. */
	if (mount(jail, jail, NULL, MS_BIND | MS_REC, NULL))
		return refuse("binding", jail);
	if (change_root(jail) || mount_proc())
		return -1;
	/* slurmstepd changes to the job's directory later; until then it is where it was. */
	if (chdir(directory) && chdir("/"))
		return refuse("entering", directory);
	return 0;
}

/* Tells the administrator early: a worker with wrong arguments would refuse every job. */
int slurm_spank_slurmd_init(spank_t spank, int argc, char **argv)
{
	(void)spank;
	if (jail_of(argc, argv))
		return ESPANK_SUCCESS;
	slurm_error("chroot: %s", why);
	return ESPANK_BAD_ARG;
}

/* Whether this step runs in the jail; the extern step does not. */
static int moves(spank_t spank)
{
	uint32_t step = 0;

	return spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS || step != SLURM_EXTERN_CONT;
}

static int moved;

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	const char *jail;

	if (spank_context() != S_CTX_REMOTE || !moves(spank))
		return ESPANK_SUCCESS;
	jail = jail_of(argc, argv);
	moved = jail && !enter(jail);
	/* An error here would end the step before anybody could tell the user why. */
	return ESPANK_SUCCESS;
}

int slurm_spank_task_init_privileged(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (moved || !moves(spank))
		return ESPANK_SUCCESS;
	slurm_error("chroot: %s; the task is refused, it would run outside of the jail", why);
	_exit(1);
}
