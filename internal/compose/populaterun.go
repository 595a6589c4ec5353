// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
)

const (
	// annotationPopulateRun on the Job records what its run is for.
	annotationPopulateRun = "coxswain.dev/populate-run"
	// AnnotationPopulateProgress on the Job is written by its pod.
	AnnotationPopulateProgress = "coxswain.dev/populate-progress"
)

// ObservedPopulate is what is known of the Job that fills the jail.
type ObservedPopulate struct {
	// Job is nil if there is none.
	Job *batchv1.Job
	// Log is the last output of its pod that failed last.
	Log string
	// Claim is the UID of the claim that JailClaim names; empty if there is none.
	Claim types.UID
	// Users is how many login and worker pods have the jail mounted. It is counted if Overwrites.
	Users int
	// Writers is how many pods of sconfigcontroller have it mounted. It is counted with Users.
	Writers int
}

// Jail is what becomes of the jail of a SlurmCluster.
type Jail struct {
	// Condition is JailPopulated; nil without a jail.
	Condition *metav1.Condition
	// Overwritten is condition JailOverwritten; nil for none.
	Overwritten *metav1.Condition
	// Awaited is true while NodeSets and LoginSet are left as they are until the jail is filled for the first time, or is whole again.
	Awaited bool
	// Job is the present Job, if it is what it should be; nil if a composed one replaces it, or none is wanted.
	Job *batchv1.Job
	// Filled is the volume of a jail that is filled, or assumed to be; nil while it is not.
	Filled *nebiusv1.PopulatedJail
	// ForPods is true if the jail is to be overwritten and pods use it.
	ForPods bool
	// Paused is true while no files of JailedConfigs are written, since the jail is overwritten.
	Paused bool
}

// populateRun is what a Job is for, in digests.
type populateRun struct {
	Volume string `json:"volume"`
	// Claim is empty where the volume is no claim, or where there was none yet. Programs before this one left it empty.
	Claim       types.UID `json:"claim,omitempty"`
	MountPoints string    `json:"mountPoints"`
	// Overwrites is true if the run copies over what is there. Overwritten is what was last copied so, by this run or before.
	Overwrites  bool   `json:"overwrites,omitempty"`
	Overwritten string `json:"overwritten,omitempty"`
	Template    string `json:"template"`
}

func (r populateRun) text() string {
	data, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("encoding a run of populate-jail: %v", err)) // strings and a bool
	}
	return string(data)
}

// runOf is the run of a Job; the zero value for a Job of somebody else, without the annotation.
func runOf(job *batchv1.Job) (run populateRun) {
	if job == nil || json.Unmarshal([]byte(job.Annotations[annotationPopulateRun]), &run) != nil {
		return populateRun{}
	}
	return run
}

// recordedJail is the volume that is filled according to the status of a cluster; the zero value for none.
func recordedJail(cluster *nebiusv1.SlurmCluster) nebiusv1.PopulatedJail {
	if cluster.Status.PopulatedJail == nil {
		return nebiusv1.PopulatedJail{}
	}
	return *cluster.Status.PopulatedJail
}

// fills reports whether a volume that has been filled is the one that is wanted.
func fills(filled, wanted nebiusv1.PopulatedJail) bool {
	return filled.Volume == wanted.Volume && (filled.ClaimUID == "" || filled.ClaimUID == wanted.ClaimUID)
}

// jail is the volume of a run. The claim of a run that does not record it is known if condition JailPopulated has recorded it.
func (r populateRun) jail(recorded nebiusv1.PopulatedJail) nebiusv1.PopulatedJail {
	if r.Claim == "" && r.Volume == recorded.Volume {
		return recorded
	}
	return nebiusv1.PopulatedJail{Volume: r.Volume, ClaimUID: r.Claim}
}

func digestOf(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encoding a %T: %v", value, err)) // types of the API
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

func jobHas(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	return job != nil && slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// Overwrites reports whether a SlurmCluster may come to a run that overwrites its jail, so that its users have to be counted.
func Overwrites(cluster *nebiusv1.SlurmCluster, job *batchv1.Job) bool {
	if cluster.Spec.Maintenance == nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail {
		return !jobHas(job, batchv1.JobComplete) || modeChanges(cluster)
	}
	return cluster.Spec.PopulateJail.Overwrite || unfinished(cluster, job)
}

// unfinished reports whether a run that overwrites the jail has begun, and none is complete. The next Job goes on with it.
// Condition JailOverwritten keeps that beyond the Job, until somebody fills the jail by other means.
func unfinished(cluster *nebiusv1.SlurmCluster, job *batchv1.Job) bool {
	begun := meta.IsStatusConditionFalse(cluster.Status.Conditions, nebiusv1.ConditionJailOverwritten)
	if job == nil {
		return begun && cluster.Spec.Maintenance != nebiusv1.MaintenanceSkipPopulateJail
	}
	return (begun || runOf(job).Overwrites) && !jobHas(job, batchv1.JobComplete)
}

// modeChanges reports whether the mode of maintenance differs from that in the status.
func modeChanges(cluster *nebiusv1.SlurmCluster) bool {
	condition := meta.FindStatusCondition(cluster.Status.Conditions, nebiusv1.ConditionPopulateJailMode)
	return condition != nil && condition.Reason != string(cluster.Spec.Maintenance)
}

// populate composes the Job that fills the jail, or leaves the present one alone.
func (c *composer) populate(observed *Observed) {
	seen := observed.Populate
	volume := c.jailVolume()
	if volume == nil {
		c.differs(populatePath, c.spec.PopulateJail, defaultPopulateJail())
		return
	}
	spec, mode := c.spec.PopulateJail, c.spec.Maintenance
	skipped := mode == nebiusv1.MaintenanceSkipPopulateJail
	c.dropFilter(skipped, &spec.K8sNodeFilterName, populatePath)
	c.populateImage = cmp.Or(c.image(spec.Image, populatePath+".image"), c.images.PopulateJail())
	p := &populating{
		seen: seen, users: observed.jailUsers(), cluster: c.cluster.PopulateJailName(), live: runOf(seen.Job),
		complete: jobHas(seen.Job, batchv1.JobComplete), failed: jobHas(seen.Job, batchv1.JobFailed),
	}
	p.want = populateRun{Volume: digestOf(volume), Claim: seen.Claim, MountPoints: digestOf(c.jailMountPoints())}
	wanted := nebiusv1.PopulatedJail{Volume: p.want.Volume, ClaimUID: p.want.Claim}
	recorded := recordedJail(c.cluster)
	p.ofVolume = fills(p.live.jail(recorded), wanted)
	// Operators before this one recorded no volume.
	known := meta.IsStatusConditionTrue(c.cluster.Status.Conditions, nebiusv1.ConditionJailPopulated) &&
		(recorded.Volume == "" || fills(recorded, wanted)) && (seen.Job == nil || p.ofVolume)
	half := unfinished(c.cluster, seen.Job)
	p.awaits = p.runs() && (half || !known)
	image := digestOf([]any{c.populateImage, spec.JailSnapshotVolume})
	done := p.live.Overwritten == image && (p.complete || !p.live.Overwrites)
	// A run that overwrites is not left half-way, or the jail would be of two images.
	p.want.Overwrites = mode == nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail || spec.Overwrite && !done || half
	if p.want.Overwrites || done {
		p.want.Overwritten = image
	}
	pod := c.populatePod(spec, *volume, p.want.Overwrites)
	p.want.Template = digestOf(pod)
	makes := p.decide(mode, modeChanges(c.cluster))
	half = half || makes && p.want.Overwrites
	p.ready = skipped && !p.awaits || !half && (known || p.complete && p.ofVolume)

	jail := &c.out.Jail
	if p.ready {
		jail.Filled = &wanted
	}
	jail.Awaited = !p.ready && !p.pauses && !mode.Downscaled() // while it pauses, nobody comes either
	jail.Condition, jail.ForPods, jail.Paused = p.condition(), p.forPods, p.pauses
	jail.Overwritten = p.overwritten(half)
	if p.keeps {
		jail.Job = seen.Job
	}
	if makes || p.keeps {
		c.populateRights()
	}
	if makes {
		c.out.Add(c.populateJob(pod, p.want))
	}
}

// populating decides over the Job of a jail.
type populating struct {
	seen ObservedPopulate
	// users describes the pods that have the jail mounted, or may get it; empty for none.
	users            string
	cluster          string
	live, want       populateRun
	complete, failed bool
	// ofVolume is true if the present Job is about the volume that is the jail.
	ofVolume bool
	// ready is true if pods may have the jail.
	ready bool
	// keeps is true if the present Job stays, forPods if it would not without pods that use the jail.
	keeps, forPods bool
	// awaits is true if the jail is not whole before the running Job ends.
	awaits bool
	// pauses is true if sconfigcontroller leaves the jail to the Job.
	pauses          bool
	reason, message string
}

// overwriting reports whether the present Job is exchanging the files of the jail.
func (p *populating) overwriting() bool { return p.live.Overwrites && p.runs() }

// runs reports whether there is a Job, and that it has not ended.
func (p *populating) runs() bool { return p.seen.Job != nil && !p.complete && !p.failed }

// decide reports whether a Job is to be made, also in the place of the present one.
func (p *populating) decide(mode nebiusv1.MaintenanceMode, entering bool) (makes bool) {
	job := p.seen.Job
	p.tell()
	switch mode {
	case nebiusv1.MaintenanceSkipPopulateJail:
		p.keeps, p.pauses = job != nil, p.overwriting()
		p.reason, p.message = nebiusv1.ReasonSkipped, "spec.maintenance is skipPopulateJail: the jail is assumed to be filled by other means"
		if p.awaits {
			p.message += " once Job " + job.Name + ", which is still filling it, has ended. If that Job cannot continue, delete it"
		}
		return false
	case nebiusv1.MaintenanceDownscale:
		p.keeps = job != nil
		if job == nil {
			p.waits("spec.maintenance is downscale: no Job is made to fill the jail")
		}
		return false
	case nebiusv1.MaintenanceDownscaleAndDeletePopulateJail:
		p.waits("spec.maintenance is downscaleAndDeletePopulateJail: there is no Job to fill the jail")
		return false
	case nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail:
		if entering && job != nil {
			p.waits("the previous Job is being deleted; the next one overwrites the jail")
			return false
		}
	}
	if !p.needed(mode) {
		p.keeps, p.pauses = true, p.overwriting()
		return false
	}
	if p.want.Overwrites && p.users != "" {
		p.keeps, p.forPods = job != nil, true
		p.waits("a jail is overwritten only while no pods use it, and " + p.users + "; with spec.maintenance: downscaleAndOverwritePopulateJail they end first")
		return false
	}
	if p.pauses = p.want.Overwrites; p.pauses && p.seen.Writers > 0 {
		p.keeps, p.forPods = job != nil, true
		p.waits("pods of sconfigcontroller end before the jail is overwritten")
		return false
	}
	p.reason, p.message = nebiusv1.ReasonPopulating, "Job "+p.cluster+" is being made"
	return true
}

// jailUsers describes the pods that have the jail mounted, or may get it soon; it is empty when there are none. If there is no pod at
// the moment, one may still be about to come.
func (o *Observed) jailUsers() string {
	if o.Populate.Users > 0 {
		return fmt.Sprintf("%d login and worker pods do", o.Populate.Users)
	}
	for i := range o.NodeSets {
		if set := o.NodeSets[i].Object; set.Replicas() > 0 {
			return fmt.Sprintf("NodeSet %s is to have %d", set.Name, set.Replicas())
		}
	}
	if login := o.Rest.LoginSet; login != nil && (login.Spec.Replicas == nil || *login.Spec.Replicas > 0) {
		return "LoginSet " + login.Name + " is to have some"
	}
	return ""
}

// needed reports whether what is wanted takes another Job than the present one.
func (p *populating) needed(mode nebiusv1.MaintenanceMode) bool {
	switch {
	case p.seen.Job == nil:
		return true
	case !p.complete:
		return p.live.Template != p.want.Template
	case mode == nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail:
		return false // it has been done in this mode
	}
	return !p.ofVolume || p.live.MountPoints != p.want.MountPoints || p.want.Overwrites
}

func (p *populating) waits(message string) { p.reason, p.message = nebiusv1.ReasonWaiting, message }

// progress is the annotation that the Job's pod writes.
type progress struct {
	Files   int64 `json:"files"`
	Bytes   int64 `json:"bytes"`
	Seconds int64 `json:"seconds"`
}

// tell sets reason and message from the present Job.
func (p *populating) tell() {
	job := p.seen.Job
	if job == nil {
		return
	}
	far := ""
	var told progress
	if json.Unmarshal([]byte(job.Annotations[AnnotationPopulateProgress]), &told) == nil && told != (progress{}) {
		far = fmt.Sprintf("%d files, %d bytes in %d s", told.Files, told.Bytes, told.Seconds)
	}
	log := strings.Join(strings.FieldsFunc(p.seen.Log, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	switch {
	case p.complete:
		p.reason, p.message = nebiusv1.ReasonPopulated, "Job "+job.Name+" is complete: "+cmp.Or(far, "it did not report what it copied")
	case p.failed:
		p.reason = nebiusv1.ReasonPopulateFailed
		p.message = fmt.Sprintf("Job %s has failed: %s. Correct the cause and delete the Job; the next one continues where it stopped", job.Name, cmp.Or(log, "its log is gone"))
	default:
		p.reason, p.message = nebiusv1.ReasonPopulating, "Job "+job.Name+": "+cmp.Or(far, "its pod has not begun yet")
		if job.Status.Failed > 0 {
			p.message += fmt.Sprintf("; attempt %d, the previous one ended with: %s", job.Status.Failed+1, cmp.Or(log, "no message"))
		}
	}
}

func (p *populating) condition() *metav1.Condition {
	out := &metav1.Condition{Type: nebiusv1.ConditionJailPopulated, Status: metav1.ConditionFalse, Reason: p.reason, Message: p.message}
	if p.ready {
		out.Status = metav1.ConditionTrue
	}
	return out
}

// overwritten is condition JailOverwritten, if there is one.
func (p *populating) overwritten(half bool) *metav1.Condition {
	out := &metav1.Condition{Type: nebiusv1.ConditionJailOverwritten, Status: metav1.ConditionTrue, Reason: nebiusv1.ReasonPopulated, Message: "the run is complete"}
	switch {
	case half:
		out.Status, out.Reason = metav1.ConditionFalse, nebiusv1.ReasonUnfinished
		out.Message = "a run that overwrites the jail has begun; the next Job goes on with it, see condition " + nebiusv1.ConditionJailPopulated
	case !p.live.Overwrites:
		return nil
	}
	return out
}
