/*
 * Copyright The Coxswain Authors.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * spank_pyxis.so: a SPANK plugin with the options of pyxis, for steps that run in containers.
 *
 *   plugstack.conf:   required spank_pyxis.so [execute_entrypoint=B] [container_scope=job|global] [sbatch_support=B] [importer=PATH]
 *
 * It reads options, starts the program "container" once for each step on a node, and moves tasks into the namespaces that this program
 * has made. All else, images, mounts and the environment, is the program's; what both say to each other is told at records().
 *
 *   slurm_spank_init, init_post_opt   srun, sbatch, salloc: options are checked. slurmstepd: it has them, and its job's environment
 *   slurm_spank_user_init             slurmstepd, before it forks tasks: the program is started, in a user namespace of the user
 *   slurm_spank_task_init             each task waits for the program, the first shows its messages, and enters
 *   slurm_spank_exit                  the program is asked to end
 *
 * Nothing but an image or a name makes a step one with a container. A step that cannot have its container does not run: tasks end
 * themselves, since slurmstepd would go on outside of the container when the plugstack says "optional".
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <poll.h>
#include <stddef.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

SPANK_PLUGIN(pyxis, 1);

/* Where the program is: in the jail, and in a pod without one. */
static const char *const programs[] = { "/run/coxswain/slurm/libexec/container", "/usr/local/lib/coxswain/slurm/libexec/container" };

/* ---- Options ---------------------------------------------------------------------------------------------------------------- */

enum kind { TEXT, LIST, YES, NO };

/*
 * An option of the command line. Two options with one variable are opposites of each other. needs is true for those that have no effect
 * without a container.
 */
struct option {
	const char *name, *argument, *usage, *key;
	enum kind kind;
	bool needs;
};

static const struct option options[] = {
	{ "container-image", "[USER@][REGISTRY#]IMAGE[:TAG]|PATH", "run in a container with this image", "image", TEXT, false },
	{ "container-mounts", "SRC[:DST[:FLAGS]][,...]", "mount files and directories into the container", "mounts", LIST, true },
	{ "container-workdir", "PATH", "start in this directory of the container", "workdir", TEXT, true },
	{ "container-name", "NAME[:auto|create|exec|no_exec]", "keep the container's files by this name, and use them again", "name", TEXT, false },
	{ "container-save", "PATH", "save the container as an image when the step has ended", "save", TEXT, true },
	{ "container-mount-home", NULL, "mount the home directory into the container", "mount_home", YES, true },
	{ "no-container-mount-home", NULL, "do not mount the home directory into the container", "mount_home", NO, true },
	{ "container-remap-root", NULL, "be root in the container", "remap_root", YES, true },
	{ "no-container-remap-root", NULL, "do not be root in the container", "remap_root", NO, true },
	{ "container-entrypoint", NULL, "run the entrypoint of the image", "entrypoint", YES, true },
	{ "no-container-entrypoint", NULL, "do not run the entrypoint of the image", "entrypoint", NO, true },
	{ "container-entrypoint-log", NULL, "print what the entrypoint prints", "entrypoint_log", YES, true },
	{ "container-writable", NULL, "let the container's files be written", "writable", YES, true },
	{ "container-readonly", NULL, "let nobody write the container's files", "writable", NO, true },
	{ "container-env", "NAME[,NAME...]", "take these variables from the job and not from the image", "env", TEXT, false },
	{ "container-unshare", "net|ipc|uts[,...]", "have own namespaces in the container", "unshare", TEXT, false },
};
enum { OPTIONS = sizeof(options) / sizeof(*options), IMAGE = 0, MOUNTS = 1, NAME = 3, SAVE = 4, REMAP_ROOT = 7, ENTRYPOINT = 9, UNSHARE = 15 };

/*
 * What was given for an option: its text, or "" for a flag; NULL for nothing. An inherited one is of the sbatch or salloc around an srun.
 * All that is said for one key is in the first option with it.
 */
static struct given {
	char *text;
	bool inherited, yes;
} given[OPTIONS];

/* Arguments of plugstack.conf. */
static bool execute_entrypoint, scope_job, sbatch_support = true;
static const char *importer = "";

/* The first option with the key of option i, where its value is. */
static int first_of(int i)
{
	int j = 0;

	while (strcmp(options[j].key, options[i].key))
		j++;
	return j;
}

/* The variable that stands for an option in the environment: PYXIS_CONTAINER_MOUNT_HOME. */
static void variable_of(const char *key, char *out, size_t size)
{
	snprintf(out, size, "PYXIS_CONTAINER_%s", key);
	for (char *c = out; *c; c++)
		if (*c >= 'a' && *c <= 'z')
			*c -= 'a' - 'A';
}

/* Reads a boolean: 1 or 0, or -1 for a text that is none. */
static int boolean(const char *text)
{
	static const char *const words[] = { "0", "1", "false", "true", "no", "yes", "n", "y" };

	for (int i = 0; i < 8; i++)
		if (!strcasecmp(text, words[i]))
			return i % 2;
	return -1;
}

/* Whether srun has this value of an option from the sbatch or salloc around it. Slurm puts it there (spank(7)). */
static bool is_inherited(const struct option *o, const char *text)
{
	char name[128];
	const char *value;

	snprintf(name, sizeof(name), "SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_%s", o->name);
	for (char *c = name; *c; c++)
		if (*c == '-')
			*c = '_';
	value = getenv(name);
	return value && !strcmp(value, text);
}

/* Adds text to a list that commas separate. */
static int append(char **list, const char *text)
{
	char *all;

	if (!*list)
		return (*list = strdup(text)) ? 0 : -1;
	if (asprintf(&all, "%s,%s", *list, text) < 0)
		return -1;
	free(*list);
	*list = all;
	return 0;
}

static int set_option(int i, const char *argument, int remote)
{
	const struct option *o = &options[i];
	struct given *g = &given[first_of(i)];
	const char *text = argument ? argument : "";
	bool inherited = !remote && !g->text && is_inherited(o, text);

	if (o->argument && !*text) {
		slurm_error("pyxis: --%s: argument required", o->name);
		return -1;
	}
	if (g->text && g->inherited) {
		free(g->text);
		g->text = NULL;
	}
	if (g->text && o->kind == TEXT && strcmp(g->text, text)) {
		slurm_error("pyxis: --%s specified multiple times", o->name);
		return -1;
	}
	if (g->text && !o->argument && g->yes != (o->kind == YES)) {
		int j = first_of(i);
		slurm_error("pyxis: both --%s and --%s were specified", options[j].name, options[j + 1].name);
		return -1;
	}
	g->yes = o->kind == YES;
	g->inherited = inherited;
	/* slurmstepd and an inner srun get the last of several lists from Slurm. The variable, which has all of them, replaces it there. */
	if (o->kind == LIST && !inherited && !remote)
		return append(&g->text, text);
	if (!g->text && !(g->text = strdup(text)))
		return -1;
	return 0;
}

/* Takes an option from the variable that stands for it, unless it was given. A flag's variable with another text is as if unset. */
static int take_variable(const char *key, const char *text, bool inverse, bool remote)
{
	for (int i = 0; i < OPTIONS; i++) {
		struct given *g = &given[i];
		int value;

		if (strcmp(options[i].key, key))
			continue;
		if (g->text && options[i].kind == LIST && (g->inherited || remote)) {
			free(g->text);
			g->text = NULL;
		}
		if (g->text)
			return 0;
		if (options[i].argument)
			return *text && !(g->text = strdup(text)) ? -1 : 0;
		if ((value = boolean(text)) < 0)
			return 0;
		g->yes = value != inverse;
		return (g->text = strdup("")) ? 0 : -1;
	}
	return 0;
}

/* Reads the environment: that of this process on the submitting side, that of the job on a node. */
static int take_environment(spank_t spank)
{
	char text[65536], name[64];

	for (int i = 0; i <= OPTIONS; i++) {
		const char *key = i < OPTIONS ? options[i].key : "readonly", *value;

		variable_of(key, name, sizeof(name));
		if (spank_remote(spank) == 1)
			value = spank_getenv(spank, name, text, sizeof(text)) == ESPANK_SUCCESS ? text : NULL;
		else
			value = getenv(name);
		if (value && take_variable(i < OPTIONS ? key : "writable", value, i == OPTIONS, spank_remote(spank) == 1))
			return -1;
	}
	return 0;
}

/* Whether the step is to run in a container. */
static bool is_container_step(void) { return given[IMAGE].text || given[NAME].text; }

/* Tells of options that do nothing without a container. */
static void tell_ignored(void)
{
	for (int i = 0; i < OPTIONS; i++)
		if (options[i].needs && given[i].text && first_of(i) == i)
			slurm_error("pyxis: ignoring --%s because neither --container-image nor --container-name is set",
				    options[given[i].yes || options[i].argument ? i : i + 1].name);
}

/* Reads the arguments of plugstack.conf: those of pyxis, of which some have no meaning here. */
static int take_arguments(int argc, char **argv)
{
	static const char *const without_meaning[] = { "runtime_path", "use_enroot_load", "use_squashfuse", "container_image_save" };

	for (int i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		size_t length = value ? (size_t)(value - argv[i]) : strlen(argv[i]);
		bool *flag = NULL;
		int known = 0;

		if (!value++)
			goto wrong;
#define IS(name) (length == strlen(name) && !strncmp(argv[i], name, length))
		for (size_t j = 0; j < sizeof(without_meaning) / sizeof(*without_meaning); j++)
			known |= IS(without_meaning[j]);
		if (IS("execute_entrypoint"))
			flag = &execute_entrypoint;
		else if (IS("sbatch_support"))
			flag = &sbatch_support;
		else if (IS("importer"))
			importer = value;
		else if (IS("container_scope") && (!strcmp(value, "job") || !strcmp(value, "global")))
			scope_job = !strcmp(value, "job");
		else if (!known)
			goto wrong;
#undef IS
		if (flag) {
			int b = boolean(value);
			if (b < 0)
				goto wrong;
			*flag = b;
		}
		continue;
wrong:
		slurm_error("pyxis: plugstack.conf has the argument %s, which is none of this plugin", argv[i]);
		return -1;
	}
	return 0;
}

/* Whether options are registered here: everywhere but in slurmd and its scripts. */
static bool has_options(spank_context_t context)
{
	return context == S_CTX_LOCAL || context == S_CTX_REMOTE || (context == S_CTX_ALLOCATOR && sbatch_support);
}

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	if (take_arguments(argc, argv))
		return ESPANK_BAD_ARG;
	if (!has_options(spank_context()))
		return ESPANK_SUCCESS;
	for (int i = 0; i < OPTIONS; i++) {
		struct spank_option option = {
			.name = (char *)options[i].name, .arginfo = (char *)options[i].argument, .usage = (char *)options[i].usage,
			.has_arg = options[i].argument != NULL, .val = i, .cb = set_option,
		};
		if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
			slurm_error("pyxis: Slurm does not take the option --%s", options[i].name);
			return ESPANK_ERROR;
		}
	}
	return ESPANK_SUCCESS;
}

/* Whether this process is slurmstepd, of a step that users' tasks run in. */
static bool is_step(spank_t spank)
{
	uint32_t step = 0;

	return spank_context() == S_CTX_REMOTE && spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS && step != SLURM_EXTERN_CONT;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!has_options(spank_context()) || (spank_context() == S_CTX_REMOTE && !is_step(spank)))
		return ESPANK_SUCCESS;
	if (take_environment(spank))
		return ESPANK_ERROR;
	if (spank_context() != S_CTX_REMOTE && !is_container_step())
		tell_ignored();
	/* Slurm sends the last of several --container-mounts alone (set_option). */
	if (spank_context() != S_CTX_REMOTE && given[MOUNTS].text && setenv("PYXIS_CONTAINER_MOUNTS", given[MOUNTS].text, 1))
		return ESPANK_ERROR;
	return ESPANK_SUCCESS;
}

/* ---- The program ------------------------------------------------------------------------------------------------------------- */

/* How long a step waits at its end for the program, and how long for one that saves the container. */
enum { END_SECONDS = 10, SAVE_SECONDS = 1800 };

/* What slurmstepd and its tasks know of the program. Tasks inherit it. */
static struct {
	bool wanted;
	/* Why there is none, if so. What slurmstepd says before it forks does not reach the user. */
	char why[512];
	/* The program ends when life is closed. Messages of the program come from messages, until the container is ready or is not. */
	int life, messages;
	/* What the program says in the end: records(). */
	int result;
	/* Held by the program as long as it runs. */
	int gone;
} program = { .life = -1, .messages = -1, .result = -1, .gone = -1 };

static int refuse(const char *doing)
{
	snprintf(program.why, sizeof(program.why), "%s: %s", doing, strerror(errno));
	return -1;
}

/*
 * A file in memory of records that end with a zero byte: what the program is asked for, and what it answers.
 *
 *   asked     key=value     keys of options, with yes or no for flags; job, step, uid, gid, directory, script, scope, importer
 *             :NAME=VALUE   a variable of the job
 *   answered  E...          why there is no container, a sentence; the last record then
 *             P...          the number of a process in its namespaces
 *             N...          a namespace to enter besides user and mnt, as /proc/PID/ns names it
 *             W...          the directory to start in
 *             C             keep the capabilities in the user namespace
 *             +NAME=VALUE   a variable to set, -NAME one to unset
 *             R             all is ready; the last record
 */
static int records(const char *name) { return (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC); }

static int ask(FILE *f, const char *key, const char *value)
{
	return value ? fprintf(f, "%s=%s%c", key, value, 0) : 0;
}

static int ask_number(FILE *f, const char *key, uint64_t value)
{
	return fprintf(f, "%s=%llu%c", key, (unsigned long long)value, 0);
}

/* Writes what the program is asked for. */
static int write_request(spank_t spank, FILE *f)
{
	uint32_t job = 0, step = 0, tasks = 0;
	uid_t uid = 0;
	gid_t gid = 0;
	char **environment = NULL, **argv = NULL, directory[4096];
	int argc = 0;

	if (spank_get_item(spank, S_JOB_ID, &job) || spank_get_item(spank, S_JOB_STEPID, &step) || spank_get_item(spank, S_JOB_UID, &uid) ||
	    spank_get_item(spank, S_JOB_GID, &gid) || spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) ||
	    spank_get_item(spank, S_JOB_ENV, &environment) || spank_get_item(spank, S_JOB_ARGV, &argc, &argv)) {
		errno = ENODATA;
		return -1;
	}
	for (int i = 0; i < OPTIONS; i++)
		if (given[i].text && first_of(i) == i)
			(void)ask(f, options[i].key, options[i].argument ? given[i].text : given[i].yes ? "yes" : "no");
	if (execute_entrypoint && !given[ENTRYPOINT].text)
		(void)ask(f, "entrypoint", "yes");
	(void)ask_number(f, "job", job);
	(void)ask_number(f, "step", step);
	(void)ask_number(f, "tasks", tasks);
	(void)ask_number(f, "uid", uid);
	(void)ask_number(f, "gid", gid);
	(void)ask(f, "scope", scope_job ? "job" : "global");
	(void)ask(f, "importer", importer);
	(void)ask(f, "script", step == SLURM_BATCH_SCRIPT && argc > 0 ? argv[0] : NULL);
	(void)ask(f, "directory", spank_getenv(spank, "PWD", directory, sizeof(directory)) == ESPANK_SUCCESS ? directory : NULL);
	for (char **variable = environment; variable && *variable; variable++)
		(void)fprintf(f, ":%s%c", *variable, 0);
	return fflush(f) || ferror(f) ? -1 : 0;
}

/* Writes a line to a file below /proc/self. */
static int write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), failed;

	if (fd < 0)
		return -1;
	failed = write(fd, text, strlen(text)) < 0;
	return close(fd) || failed ? -1 : 0;
}

/* Gives the program, which is not root, all capabilities of the user namespace that was made for it. */
static int keep_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[0].inheritable = data[0].permitted;
	data[1].inheritable = data[1].permitted;
	if (syscall(SYS_capset, &header, data))
		return -1;
	for (int i = 0; i < 64; i++)
		if (data[i / 32].permitted & (1u << i % 32) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0))
			return -1;
	return 0;
}

/* The namespaces of --container-unshare. The program refuses words that are none. */
static int own_namespaces(void)
{
	static const struct { const char *name; int flag; } all[] = { { "net", CLONE_NEWNET }, { "ipc", CLONE_NEWIPC }, { "uts", CLONE_NEWUTS } };
	int flags = 0;

	for (int i = 0; given[UNSHARE].text && i < 3; i++)
		if (strstr(given[UNSHARE].text, all[i].name))
			flags |= all[i].flag;
	return flags;
}

/*
 * Becomes the user, in a user namespace that the user owns, with one user and one group. Root makes it, so that it does not matter whether
 * users may: root's capabilities last until then.
 */
static const char *become(uid_t uid, gid_t gid, bool root)
{
	char uids[64], gids[64];

	if (syscall(SYS_setresuid, 0, 0, 0))
		return "becoming root";
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) || syscall(SYS_setresgid, gid, gid, gid) || syscall(SYS_setresuid, uid, uid, uid))
		return "becoming the user";
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | own_namespaces()))
		return "making namespaces for the container";
	snprintf(uids, sizeof(uids), "%u %u 1", root ? 0 : uid, uid);
	snprintf(gids, sizeof(gids), "%u %u 1", root ? 0 : gid, gid);
	/* A process that has changed its user is not its own in /proc. */
	if (prctl(PR_SET_DUMPABLE, 1) || write_map("/proc/self/setgroups", "deny") || write_map("/proc/self/uid_map", uids) ||
	    write_map("/proc/self/gid_map", gids))
		return "mapping the user into the container";
	if (keep_capabilities())
		return "keeping capabilities in the container's user namespace";
	return NULL;
}

/* Answers for the program that it cannot run. */
static void fail(int result, const char *doing)
{
	dprintf(result, "E%s: %s%c", doing, strerror(errno), 0);
	_exit(1);
}

/* Runs the program in a process of its own, below init, so that slurmstepd does not wait for it as for a task. */
static void run_program(int request, int result, int messages, int life, int gone, uid_t uid, gid_t gid, bool root)
{
	static char *const argv[] = { "container", "step", NULL };
	static char *const environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	const char *doing;
	pid_t child = fork();

	if (child)
		_exit(child < 0);
	/* In their order: none that is needed later has a low number. slurmstepd's output is that of the tasks, and ends with the last who has it. */
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC), fds[] = { life, null, null, request, result, messages, gone };
	if ((doing = become(uid, gid, root)))
		fail(result, doing);
	for (int i = 0; i < 7; i++)
		if (dup2(fds[i], i) < 0)
			fail(result, "handing files to the container's program");
	(void)syscall(SYS_close_range, 7, ~0U, 0);
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		execve(programs[i], argv, environment);
	fail(4, "starting the container's program");
}

/* A pipe whose ends are no low numbers, closed in the tasks' programs. */
static int high_pipe(int ends[2])
{
	int low[2];

	if (pipe2(low, O_CLOEXEC))
		return -1;
	for (int i = 0; i < 2; i++) {
		ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 10);
		close(low[i]);
	}
	return ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

static int start(spank_t spank)
{
	int request = fcntl(records("request"), F_DUPFD_CLOEXEC, 10), life[2], messages[2], gone[2], status;
	FILE *f = request < 0 ? NULL : fdopen(dup(request), "w");
	uid_t uid = 0;
	gid_t gid = 0;
	pid_t child;

	program.result = fcntl(records("result"), F_DUPFD_CLOEXEC, 10);
	if (!f || program.result < 0 || high_pipe(life) || high_pipe(messages) || high_pipe(gone))
		return refuse("making files for the container's program");
	if (write_request(spank, f) || fclose(f) || lseek(request, 0, SEEK_SET) < 0 || spank_get_item(spank, S_JOB_UID, &uid) ||
	    spank_get_item(spank, S_JOB_GID, &gid))
		return refuse("asking for the container");
	child = fork();
	if (child < 0)
		return refuse("starting a process for the container");
	if (!child)
		run_program(request, program.result, messages[1], life[0], gone[1], uid, gid, given[REMAP_ROOT].text && given[REMAP_ROOT].yes);
	close(request);
	close(messages[1]);
	close(life[0]);
	close(gone[1]);
	program.life = life[1];
	program.messages = messages[0];
	program.gone = gone[0];
	/* Whoever else waits for children of slurmstepd may have this one, which is all the same. */
	(void)waitpid(child, &status, 0);
	return 0;
}

int slurm_spank_user_init(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!is_step(spank) || !is_container_step())
		return ESPANK_SUCCESS;
	program.wanted = true;
	(void)start(spank);
	/* An error here does not end the step: tasks tell it. */
	return ESPANK_SUCCESS;
}

/* ---- Tasks ------------------------------------------------------------------------------------------------------------------- */

/* Shows what the program says until it has the container, or has not. One task shows it to the user. */
static void wait_for_program(bool shows)
{
	char line[4096];
	FILE *f;

	/* A cancelled step gets signals. Slurm sends none to what has the name of slurmstepd, whose handlers a task of 24.11 still has. */
	(void)prctl(PR_SET_NAME, "container");
	(void)signal(SIGTERM, SIG_DFL);
	if (!shows) {
		struct pollfd p = { .fd = program.messages };
		while (poll(&p, 1, -1) < 0 && errno == EINTR)
			;
		return;
	}
	f = fdopen(program.messages, "r");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		slurm_spank_log("pyxis: %s", line);
	}
}

/* The records of the result, one after the other: NULL behind the last. */
static char *result_text;
static size_t result_size;

static int read_result(void)
{
	struct stat status;

	if (fstat(program.result, &status) || !(result_text = calloc(1, (size_t)status.st_size + 1)))
		return -1;
	result_size = (size_t)status.st_size;
	return pread(program.result, result_text, result_size, 0) == (ssize_t)result_size ? 0 : -1;
}

static const char *next_record(const char *record)
{
	record = record ? record + strlen(record) + 1 : result_text;
	return record < result_text + result_size ? record : NULL;
}

/* The record of a kind; NULL if there is none. */
static const char *record_of(char kind)
{
	for (const char *r = NULL; (r = next_record(r));)
		if (*r == kind)
			return r + 1;
	return NULL;
}

/* Gives up all rights that the user namespace gives its owner. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) || syscall(SYS_capset, &header, none) ? -1 : 0;
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__powerpc64__) && __BYTE_ORDER == __LITTLE_ENDIAN
#define ARCHITECTURE AUDIT_ARCH_PPC64LE
#endif

/*
 * Lets calls that give files or processes to other users succeed and do nothing: there is one user in the container, and package managers
 * want others. It takes no right away, and gives none.
 */
static int pretend_users(void)
{
#ifdef ARCHITECTURE
#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define PRETEND BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define CALL(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), PRETEND
	struct sock_filter filter[] = {
		FIELD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0), ALLOW,
		FIELD(nr),
#ifdef SYS_chown
		CALL(chown), CALL(lchown),
#endif
		CALL(fchown), CALL(fchownat), CALL(setuid), CALL(setgid), CALL(setreuid), CALL(setregid), CALL(setresuid), CALL(setresgid), CALL(setgroups),
		/* These ask with -1. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setfsuid, 1, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setfsgid, 0, 2),
		FIELD(args[0]), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 0, 1),
		ALLOW, PRETEND,
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(*filter), .filter = filter };

	if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program))
		return 0;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
#else
	return 0;
#endif
}

/* Enters the namespaces of the program. */
static int enter(void)
{
	static const char *const names[] = { "user", "mnt", "ipc", "uts", "net" };
	const char *pid = record_of('P'), *directory = record_of('W');
	int fds[5];
	char path[64];

	for (int i = 0; i < 5; i++) {
		bool enters = i < 2;
		for (const char *r = NULL; (r = next_record(r));)
			enters |= *r == 'N' && !strcmp(r + 1, names[i]);
		snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid ? pid : "", names[i]);
		if ((fds[i] = enters ? open(path, O_RDONLY | O_CLOEXEC) : -1) < 0 && enters)
			return refuse(path);
	}
	for (int i = 0; i < 5; i++) {
		if (fds[i] < 0)
			continue;
		if (setns(fds[i], 0)) {
			snprintf(path, sizeof(path), "entering the container's namespace %s", names[i]);
			return refuse(path);
		}
		close(fds[i]);
	}
	if (chdir(directory ? directory : "/")) {
		snprintf(program.why, sizeof(program.why), "couldn't chdir to %s: %s", directory ? directory : "/", strerror(errno));
		return -1;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || (!record_of('C') && drop_capabilities()))
		return refuse("giving up privileges");
	if (pretend_users())
		return refuse("letting calls for other users succeed");
	return 0;
}

/* Puts the environment of the container over that of the job. */
static int set_environment(spank_t spank)
{
	char name[4096];

	for (const char *r = NULL; (r = next_record(r));) {
		const char *end = strchr(r, '=');

		if (*r == '-' && spank_unsetenv(spank, r + 1) != ESPANK_SUCCESS)
			return -1;
		if (*r != '+' || !end || (size_t)(end - r) > sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(end - r - 1), r + 1);
		if (spank_setenv(spank, name, end + 1, 1) != ESPANK_SUCCESS)
			return -1;
	}
	return 0;
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	int task = 0;
	const char *error;

	(void)argc;
	(void)argv;
	if (!program.wanted)
		return ESPANK_SUCCESS;
	(void)spank_get_item(spank, S_TASK_ID, &task);
	if (!*program.why) {
		wait_for_program(task == 0);
		if (read_result())
			(void)refuse("reading what the container's program says");
		else if ((error = record_of('E')))
			snprintf(program.why, sizeof(program.why), "%s", error);
		else if (!record_of('R'))
			snprintf(program.why, sizeof(program.why), "the container's program has ended without a word");
		else if (!set_environment(spank) && !enter())
			return ESPANK_SUCCESS;
	}
	if (task == 0 || !record_of('E'))
		slurm_error("pyxis: %s", *program.why ? program.why : "the environment of the container does not fit");
	_exit(1);
}

int slurm_spank_exit(spank_t spank, int argc, char **argv)
{
	struct pollfd p = { .fd = program.gone };

	(void)spank;
	(void)argc;
	(void)argv;
	if (program.life < 0)
		return ESPANK_SUCCESS;
	close(program.life);
	while (poll(&p, 1, (given[SAVE].text ? SAVE_SECONDS : END_SECONDS) * 1000) < 0 && errno == EINTR)
		;
	return ESPANK_SUCCESS;
}
