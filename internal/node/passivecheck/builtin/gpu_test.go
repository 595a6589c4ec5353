// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
)

func TestBusyGPUs(t *testing.T) {
	w := newWorld(t)
	w.environment["PATH"] = w.path("/bin")
	w.expect("alloc_gpus_busy", passivecheck.Prolog, job(0), passivecheck.Unavailable, "nvidia-smi is not installed")
	w.environment["PATH"] += ":/usr/bin:/bin"
	w.program("nvidia-smi", `case "$*" in *--id=1,2) echo 4711 ;; esac`)
	w.expect("alloc_gpus_busy", passivecheck.Prolog, job(), passivecheck.Skipped, "no GPUs")
	w.expect("alloc_gpus_busy", passivecheck.Prolog, job(0), passivecheck.Passed, "no processes")
	w.expect("alloc_gpus_busy", passivecheck.Prolog, job(1, 2), passivecheck.Failed, "processes compute on GPUs: 4711")
	w.expect("alloc_gpus_busy", passivecheck.HealthProgram, nil, passivecheck.Passed, "no processes")
	w.program("nvidia-smi", "echo driver >&2; exit 9")
	if _, err := w.run("alloc_gpus_busy", passivecheck.Prolog, job(0)); err == nil || !strings.Contains(err.Error(), "exit status 9: driver") {
		t.Errorf("the error is %v", err)
	}
}

func TestJobsOfGPUsForDCGM(t *testing.T) {
	w := newWorld(t)
	w.expect("map_job_dcgm", passivecheck.Prolog, job(), passivecheck.Skipped, "no GPUs")
	w.expect("map_job_dcgm", passivecheck.Prolog, job(0, 3), passivecheck.Passed, "2 GPUs have job 12")
	if got := w.read("/var/run/nebius/slurm/3"); got != "12" {
		t.Errorf("the file has %q", got)
	}
	w.write("/var/run/nebius/slurm/0", "13")
	w.expect("unmap_job_dcgm", passivecheck.Epilog, job(0, 3), passivecheck.Passed, "1 GPUs")
	if w.has("/var/run/nebius/slurm/3") || w.read("/var/run/nebius/slurm/0") != "13" {
		t.Error("the wrong file is gone")
	}
}

func TestContainersOfAJob(t *testing.T) {
	w := newWorld(t)
	w.expect("cleanup_enroot", passivecheck.Epilog, job(), passivecheck.Unavailable, "enroot is not installed")
	w.write("/mnt/jail/etc/enroot/enroot.conf", "ENROOT_CACHE_PATH /x\n")
	w.expect("cleanup_enroot", passivecheck.Epilog, job(), passivecheck.Skipped, "no ENROOT_DATA_PATH")
	w.write("/mnt/jail/etc/enroot/enroot.conf", "# data\nENROOT_DATA_PATH\t/run/enroot/$(id -u)/data\n")
	w.expect("cleanup_enroot", passivecheck.Epilog, job(), passivecheck.Passed, "0 containers")
	data := "/mnt/jail/run/enroot/" + strconv.Itoa(os.Getuid()) + "/data/"
	for _, name := range []string{"pyxis_12_0", "pyxis_12", "pyxis_12.1", "pyxis_123_0", "pyxis_mine"} {
		w.write(data+name+"/etc/passwd", "x")
	}
	w.expect("cleanup_enroot", passivecheck.Epilog, job(), passivecheck.Passed, "3 containers")
	for name, stays := range map[string]bool{"pyxis_12_0": false, "pyxis_12": false, "pyxis_12.1": false, "pyxis_123_0": true, "pyxis_mine": true} {
		if w.has(data+name) != stays {
			t.Errorf("%s is there: %v", name, !stays)
		}
	}
	w.write("/mnt/jail/etc/enroot/enroot.conf", "ENROOT_DATA_PATH ${HOME}/enroot\n")
	if _, err := w.run("cleanup_enroot", passivecheck.Epilog, job()); err == nil || !strings.Contains(err.Error(), `ENROOT_DATA_PATH is "${HOME}/enroot"`) {
		t.Errorf("the error is %v", err)
	}
}

func FuzzEnrootDataPath(f *testing.F) {
	f.Add("ENROOT_DATA_PATH /a/$UID")
	f.Add("ENROOT_DATA_PATH \"\"\nENROOT_DATA_PATH $(id)")
	f.Fuzz(func(t *testing.T, text string) {
		dir, err := enrootDataPath(text, 1000)
		if err == nil && dir != "" && (dir[0] != '/' || strings.Contains(dir, "$")) {
			t.Errorf("%q: %q", text, dir)
		}
	})
}

func TestGPUHealth(t *testing.T) {
	w := newWorld(t)
	w.expect("gpu_health_check", passivecheck.Prolog, job(0), passivecheck.Unavailable, "health-checker is not installed")
	for _, test := range []struct {
		name, answer string
		want         []string
		fails        bool
	}{
		{"all is well", `{"status": "PASS", "tests": [{"name": "dmesg", "checks": [{"name": "xid", "status": "PASS"}]}]}`, nil, false},
		{"a named check fails", `{"status": "FAIL", "tests": [{"name": "dmesg", "status": "FAIL", "checks": [{"name": "xid", "state": {"status": "FAIL", "error": "Xid 79"}}]}]}`, []string{"dmesg.xid: Xid 79"}, false},
		{"a check without an error", `[{"name": "a", "checks": [{"name": "b", "status": "FAIL"}]}]`, []string{"a.b"}, false},
		{"an error is no failure", `{"status": "ERROR", "tests": [{"name": "a", "checks": [{"name": "b", "status": "ERROR"}]}]}`, nil, false},
		{"a failure without a name counts for nothing", `{"status": "FAIL", "tests": [{"checks": [{"status": "FAIL"}]}]}`, nil, false},
		{"no JSON", `Traceback`, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := failedTests([]byte(test.answer))
			if (err != nil) != test.fails {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHealthCheckerIsAskedForThePlatformAndTheContext(t *testing.T) {
	w := newWorld(t)
	if err := os.Remove(w.path("/mnt/jail")); err != nil { // the program below cannot run with such a root
		t.Fatal(err)
	}
	w.write("/proc/driver/nvidia/gpus/0000:00:01.0/information", "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 1\n")
	w.program("health-checker", `echo '{"name": "t", "checks": [{"name": "c", "status": "FAIL", "error": "bad"}]}'; exit 1`)
	w.mkdir("/usr")
	if err := os.Rename(w.path("/bin"), w.path("/usr/bin")); err != nil {
		t.Fatal(err)
	}
	w.expect("gpu_health_check", passivecheck.Epilog, job(0), passivecheck.Failed, "t.c: bad")
	want := "health-checker run -e soperator -p 1xH100 -n module,nvidia_smi,nvidia_smi_nvlink,nvidia_smi_topo,dmesg,ib_link,dcgmi_diag_r1 -f json-partial" +
		" --tests-stdout-path /run/check-runner/health-worker-0." + strconv.Itoa(os.Getpid()) + "\n"
	if got := w.calls(); got != want {
		t.Errorf("called %q", got)
	}
}

// TestHealthCheckerWritesWhereNoUserCan has links of a user in the directory in which people look for the output.
func TestHealthCheckerWritesWhereNoUserCan(t *testing.T) {
	const outputs = "/opt/soperator-outputs/health_checker_cmd_stdout"
	for name, test := range map[string]struct{ link, kept, details string }{
		"no link":                       {kept: "said\n", details: "finds nothing"},
		"in the place of a file":        {link: outputs + "/x.1.out", kept: "said\n", details: "finds nothing"},
		"in the place of the directory": {link: outputs, details: "could not be kept"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := os.Remove(w.path("/mnt/jail")); err != nil {
				t.Fatal(err)
			}
			w.write("/precious/x.1.out", "precious")
			w.write("/proc/driver/nvidia/gpus/0000:00:01.0/information", "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 1\n")
			w.program("health-checker", `for last; do :; done; echo said >"`+w.dir+`$last/x.1.out"; echo '{}'`)
			w.mkdir("/usr")
			if err := os.Rename(w.path("/bin"), w.path("/usr/bin")); err != nil {
				t.Fatal(err)
			}
			w.mkdir("/opt/soperator-outputs")
			if test.link == outputs {
				if err := os.Symlink("/precious", w.path(outputs)); err != nil {
					t.Fatal(err)
				}
			} else if test.link != "" {
				w.mkdir(outputs)
				if err := os.Symlink("/precious/x.1.out", w.path(test.link)); err != nil {
					t.Fatal(err)
				}
			}
			w.expect("gpu_health_check", passivecheck.Prolog, job(0), passivecheck.Passed, test.details)
			if got := w.read("/precious/x.1.out"); got != "precious" {
				t.Errorf("root wrote %q through a link", got)
			}
			if test.kept != "" && w.read(outputs+"/x.1.out") != test.kept {
				t.Errorf("the output is %q", w.read(outputs+"/x.1.out"))
			}
			if left, err := os.ReadDir(w.path(healthDir)); err != nil || len(left) > 0 {
				t.Errorf("there are %v left, %v", left, err)
			}
		})
	}
}

func FuzzFailedTests(f *testing.F) {
	f.Add(`{"name":"a","checks":[{"name":"b","status":"FAIL","error":"x"}]}`)
	f.Add(strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100))
	f.Fuzz(func(t *testing.T, text string) {
		found, err := failedTests([]byte(text))
		if len(found) > 0 && (err != nil || !strings.Contains(text, "name")) {
			t.Errorf("%q: %q, %v", text, found, err)
		}
	})
}

func TestArraysOverNVMe(t *testing.T) {
	const whole = "Personalities : [raid0] [raid1]\nmd0 : active raid1 nvme1n1[1] nvme0n1[0]\n      100 blocks super 1.2 [2/2] [UU]\n\nmd7 : active raid1 sda1[0]\n      9 blocks [2/1] [U_]\n"
	for _, test := range []struct {
		name, mdstat, mounts string
		state                passivecheck.State
		details              string
	}{
		{"arrays of other disks are not looked at", "md7 : active raid1 sda1[0]\n      9 blocks [2/1] [U_]\n", "", passivecheck.Skipped, "no md arrays over NVMe"},
		{"a whole array", whole, "", passivecheck.Passed, "1 md arrays"},
		{"a whole array that is mounted and can be written to", whole, "/dev/md0 /scratch\\040x ext4 rw,relatime 0 0\n", passivecheck.Passed, "1 md arrays"},
		{"a disk is lost", strings.Replace(whole, "[UU]", "[U_]", 1), "", passivecheck.Failed, "md0 has lost a disk: [U_]"},
		{"a disk has failed", strings.Replace(whole, "nvme0n1[0]", "nvme0n1[0](F)", 1), "", passivecheck.Failed, "md0 has a failed disk"},
		{"an array does not run", "md0 : inactive nvme0n1[0](S)\n", "", passivecheck.Failed, "md0 is inactive"},
		{"an array is mounted read-only", whole, "/dev/md0 /scratch\\040x ext4 ro 0 0\n", passivecheck.Failed, "md0 is mounted read-only at /scratch x"},
		{"an array cannot be written to", whole, "/dev/md0 /gone ext4 rw 0 0\n", passivecheck.Failed, "md0 cannot be written to at /gone: no such file"},
		{"a link in the path of an array is not followed", whole, "/dev/md0 /link ext4 rw 0 0\n", passivecheck.Failed, "md0 cannot be written to at /link"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.write("/proc/mdstat", test.mdstat)
			w.write("/proc/mounts", test.mounts)
			w.mkdir("/scratch x")
			if err := os.Symlink("scratch x", w.path("/link")); err != nil {
				t.Fatal(err)
			}
			w.expect("nvme_raid_health", passivecheck.HealthProgram, nil, test.state, test.details)
			if entries, err := os.ReadDir(w.path("/scratch x")); err != nil || len(entries) > 0 {
				t.Errorf("it left %v, %v", entries, err)
			}
		})
	}
}

func FuzzParseArrays(f *testing.F) {
	f.Add("md0 : active raid1 nvme0n1[0]\n [U_]\n", "/dev/md0 /a\\040 x ro 0 0")
	f.Fuzz(func(t *testing.T, mdstat, mounts string) {
		for _, a := range parseArrays(mdstat) {
			if !strings.HasPrefix(a.name, "md") {
				t.Errorf("%q: %+v", mdstat, a)
			}
		}
		for _, m := range mountsOf(mounts, "/dev/md0") {
			if m.dir == "" {
				t.Errorf("%q: a mount without a path", mounts)
			}
		}
	})
}

func FuzzParseMemory(f *testing.F) {
	f.Add("MemTotal: 1 kB\nMemAvailable: 9007199254740991 kB")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseMemory(text)
		if err == nil && (got.total <= 0 || got.available < 0) {
			t.Errorf("%q: %+v", text, got)
		}
	})
}
