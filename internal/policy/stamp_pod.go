package policy

import (
	"math"
	"time"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/ttlab/vmwarden/internal/lab"
)

// podStamps gives a Pod the time that it may run at most, so that the kubelet itself ends it if we, the database and the reaper
// are all dead; and a lab's Pod its environment.
func podStamps(contract lab.Contract, f Facts) []jsonpatch.Operation {
	if f.Requester.Kind == lab.TrustedController {
		deadline, known := launcherDeadline(f.New)
		if !known {
			return nil
		}
		// kube-apiserver takes no activeDeadlineSeconds below 1. One that is due already is denied by DeadlinePassed.
		return limitRun(f.New, max(deadline.Sub(f.Now), time.Second))
	}
	if f.Requester.Kind == lab.Unknown || !concernsLab(contract, f) {
		return nil
	}
	return append(belongingStamps(contract, f), limitRun(f.New, contract.Lifetimes.Ceiling+contract.Lifetimes.DeadlineGrace)...)
}

// limitRun sets activeDeadlineSeconds where it is missing or longer.
func limitRun(pod *Object, most time.Duration) []jsonpatch.Operation {
	seconds := int64(math.Ceil(most.Seconds()))
	if present := pod.ActiveDeadlineSeconds; present != nil && *present <= seconds {
		return nil
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/activeDeadlineSeconds", seconds)}
}
