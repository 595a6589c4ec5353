// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// accounts returns bugs by which a user gets more than was given, or stops what belongs to others.
func accounts() []mutation {
	return []mutation{
		{
			name:   "a check drains the worker that took the place of its machine",
			edits:  []edit{{"internal/node/passivecheck/machine/slurm.go", "if err == nil && !here {", "if err == nil && !here && here {"}},
			suite:  "internal/node/passivecheck/runner",
			caught: "TestTheWorkerThatTookThePlaceOfThisOneIsNotDrained",
		},
		{
			name:   "another user takes the directory of a job in the tmpfs",
			edits:  []edit{{"internal/node/passivecheck/builtin/job.go", "if info.Mode().Perm()&othersWrite == 0 {", "if true {"}},
			suite:  "internal/node/passivecheck/builtin",
			caught: "TestNobodyTakesTheDirectoryOfAJob",
		},
		{
			name:   "a job starts without the directory that is to be its user's alone",
			edits:  []edit{{"internal/node/passivecheck/builtin/job.go", "err := closeMemoryDir(m); err != nil {", "err := closeMemoryDir(m); err != nil && m.Job == nil {"}},
			suite:  "internal/node/passivecheck/builtin",
			caught: "TestAJobDoesNotStartWhereOthersCanTakeItsDirectory",
		},
		{
			name:   "a directory with the name of a leftover stops what fills the jail",
			edits:  []edit{{"internal/node/jail/populate/state.go", "if err != nil && !errors.Is(err, unix.EISDIR) { // no run", "if err != nil { // no run"}},
			suite:  "internal/node/jail/populate",
			caught: "TestADirectoryWithTheNameOfALeftoverStopsNothing",
		},
		{
			name:   "a directory in the place of a temporary file stops what fills the jail",
			edits:  []edit{{"internal/node/jail/populate/state.go", "case !errors.Is(err, unix.EISDIR):\n\t\treturn err", "case err != nil:\n\t\treturn err"}},
			suite:  "internal/node/jail/populate",
			caught: "TestADirectoryWithTheNameOfALeftoverStopsNothing",
		},
		{
			name:   "a directory with the name of an old file stops the configuration",
			edits:  []edit{{"internal/node/jail/batch/batch.go", "!errors.Is(err, unix.EISDIR) {", "!errors.Is(err, unix.ENOTDIR) {"}},
			suite:  "internal/node/jail/batch",
			caught: "TestADirectoryWithTheNameOfAnOldFileStopsNothing",
		},
		{
			name:   "who runs a program as root of a login pod may mount",
			edits:  []edit{{"internal/cli/remote.go", "setpriv --bounding-set=-sys_admin \"$@\"; exec", "\"$@\"; exec"}},
			suite:  "internal/cli",
			caught: "TestRootOfALoginPodWithAJailMayNotMount",
		},
		{
			name:   "a home that an administrator closed is given back at the next login",
			edits:  []edit{{"internal/node/jail/home/home.go", "stat.Mode&0o7777 == unix.S_ISVTX|homeMode", "stat.Mode&0o777 == homeMode"}},
			suite:  "internal/node/jail/home",
			caught: "TestAHomeThatIsClosedToItsUserStaysClosed",
		},
		{
			name:   "the name of a job forges how much memory it has",
			edits:  []edit{{"internal/node/passivecheck/node.go", "if seen && says != memory {", "if seen && says < 0 {"}},
			suite:  "internal/node/passivecheck",
			caught: "TestTheNameOfAJobForgesNoMemory",
		},
		{
			name:   "the name of a job forges a job of another user",
			edits:  []edit{{"internal/cli/usage.go", "if !marked {", "if !marked && line == mark {"}},
			suite:  "internal/cli",
			caught: "TestNoTextOfAPersonPassesForAField",
		},
		{
			name:   "the reason of a node forges its partitions",
			edits:  []edit{{"internal/cli/usage.go", "` (Reason|Comment|Extra)=.*`", "` (Comment|Extra)=.*`"}},
			suite:  "internal/cli",
			caught: "TestNoTextOfAPersonPassesForAField",
		},
		{
			name:   "a tenant has Prometheus scrape something else",
			edits:  []edit{{"internal/compose/podmonitor.go", "if target := text(\"targetLabel\"); mayBeInternal(target) {", "if target := text(\"targetLabel\"); mayBeInternal(target) && path == \"\" {"}},
			suite:  "internal/compose",
			caught: "TestNoRelabelingChangesWhatPrometheusScrapes",
		},
		{
			name:   "workers start on a claim that nothing has filled",
			edits:  []edit{{"internal/compose/populaterun.go", `(recorded.Volume == "" || fills(recorded, wanted))`, `(recorded.Volume == "" || fills(recorded, recorded))`}},
			suite:  "internal/compose",
			caught: "TestAJailIsKnownByItsVolume",
		},
		{
			name:   "a NodeSet takes the place of the jail by its name",
			edits:  []edit{{"internal/compose/populate.go", "return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)", "return 0 * a.CreationTimestamp.Compare(b.CreationTimestamp.Time)"}},
			suite:  "internal/compose",
			caught: "TestANewNodeSetTakesNobodysJail",
		},
		{
			name:   "a jail that hangs takes nodes out",
			edits:  []edit{{"cmd/check-runner/hang.go", "\t\t\tclose(hangs)\n", ""}},
			suite:  "cmd/check-runner",
			caught: "TestAJailThatHangsTakesNoNodeOut",
		},
		{
			name:   "health-checker writes through a link of a user",
			edits:  []edit{{"internal/node/passivecheck/builtin/gpu.go", `"--tests-stdout-path", output)`, `"--tests-stdout-path", path.Join(outputsDir, healthOutputs))`}},
			suite:  "internal/node/passivecheck/builtin",
			caught: "TestHealthCheckerWritesWhereNoUserCan",
		},
		{
			name:   "kubelets see the token of the operator",
			edits:  []edit{{"internal/health/podstorage/kubelet.go", "asking.Transport = &account{", "_ = &account{"}, {"internal/health/podstorage/kubelet.go", "c = rest.AnonymousClientConfig(config)", "c.Host = config.Host"}},
			suite:  "internal/health/podstorage",
			caught: "TestNoKubeletSeesTheTokenOfTheOperator",
		},
		{
			name:   "a token that kubelets refuse is kept until its time",
			edits:  []edit{{"internal/health/podstorage/token.go", "if token == a.token && !a.early {", "if token == a.token && a.early {"}},
			suite:  "internal/health/podstorage",
			caught: "TestATokenThatAKubeletRefusesIsAskedForAnewOnce",
		},
		{
			name:   "each question to a kubelet that takes no token asks for one",
			edits:  []edit{{"internal/health/podstorage/token.go", "if token == a.token && !a.early {", "if token == a.token {"}},
			suite:  "internal/health/podstorage",
			caught: "TestATokenThatAKubeletRefusesIsAskedForAnewOnce",
		},
		{
			name:   "another kind with the name of AppArmorProfile is taken for it",
			edits:  []edit{{"internal/kube/foreignkind/foreignkind.go", `scope != "Namespaced" {`, `scope == "" {`}},
			suite:  "internal/kube/foreignkind",
			caught: "TestAKindIsKnownByItsScopeAndItsFields",
		},
		{
			name:   "a field that the kind of others does not have is written",
			edits:  []edit{{"internal/kube/foreignkind/foreignkind.go", "if len(lacks) == 0 {", "if len(lacks) >= 0 {"}},
			suite:  "internal/kube/foreignkind",
			caught: "TestAKindIsKnownByItsScopeAndItsFields",
		},
		{
			name:   "pods name a profile that nobody makes",
			edits:  []edit{{"internal/compose/apparmor.go", "!c.installed.AppArmorProfiles.Usable() || named", "!c.installed.AppArmorProfiles.Installed || named"}},
			suite:  "internal/compose",
			caught: "TestTheProfileOfLoginPodsAndWorkers",
		},
		{
			name:   "a profile is looked for where nobody may look, and stops the cluster",
			edits:  []edit{{"internal/compose/apparmor.go", "!installed.AppArmorProfiles.Usable() || cluster", "!installed.AppArmorProfiles.Installed || cluster"}},
			suite:  "internal/compose",
			caught: "TestAProfileThatIsNotWanted",
		},
		{
			name:   "slurmdbd goes when the mariadb-operator has other kinds",
			edits:  []edit{{"internal/compose/mariadb.go", "if !kinds.Installed || c.accounted == nil", "if kinds.Installed || c.accounted == nil"}},
			suite:  "internal/compose",
			caught: "TestADatabaseOfAnOperatorWithOtherKindsIsLeftAlone",
		},
		{
			name:   "what a cache has judged is judged again without its schema",
			edits:  []edit{{"internal/kube/definitions.go", `if !ok || crd.Object["spec"] == nil {`, "if !ok {"}},
			suite:  "internal/kube",
			caught: "TestADefinitionIsKeptWithoutItsSchema",
		},
		{
			name:   "the webhook reads the Secrets of others",
			edits:  []edit{{"internal/webhook/certificate.go", `query.Set("fieldSelector", "metadata.name="+name)`, `query.Set("fieldSelector", "")`}},
			suite:  "internal/webhook",
			caught: "TestTheWebhookAsksForItsOwnObjectsByName",
		},
	}
}
