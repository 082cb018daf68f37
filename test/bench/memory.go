package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// mebibyte is the unit in which memory is told.
const mebibyte = 1 << 20

// measureMemory measures what the webhook's process holds in a namespace that is far larger than any lab's, after it linked every Secret
// that has a virtual machine and decided on some creates.
func measureMemory(ctx context.Context, s sizes, r *report) error {
	return withStage(ctx, 1, func(st *stage) error {
		empty, err := memoryOf(st.Webhook.Replicas()[0].PID())
		if err != nil {
			return err
		}
		r.note("webhook with nothing in the namespace: resident", "%.1f MiB", empty.now/mebibyte)
		// Nobody is to be asked while the namespace is filled, nor is anything linked.
		if err := st.Webhook.Unregister(ctx); err != nil {
			return err
		}
		if err := st.Webhook.Stop(); err != nil {
			return err
		}
		if err := st.populate(ctx, backend.VMGolden, "prod", 0, s.machines); err != nil {
			return err
		}
		if err := st.populate(ctx, backend.CloudInitSecret, "prod", 0, s.secrets); err != nil {
			return err
		}
		if err := st.Webhook.Run(ctx, configuration(2*s.machines, 4), 1); err != nil {
			return err
		}
		started := time.Now()
		if err := st.awaitLinks(ctx, min(s.machines, s.secrets)); err != nil {
			return err
		}
		linked := time.Since(started)
		if err := st.Webhook.RegisterFirst(ctx); err != nil {
			return err
		}
		creates := &creates{stage: st}
		took, err := creates.measure(ctx, 50, []variant{everything})
		if err != nil {
			return err
		}
		held, err := memoryOf(st.Webhook.Replicas()[0].PID())
		if err != nil {
			return err
		}
		what := fmt.Sprintf("webhook with %d virtual machines and %d Secrets", s.machines, s.secrets)
		r.note(what+": all Secrets linked after", "%.1f s", linked.Seconds())
		r.note(what+": a create", "p50 %.1f ms", milliseconds(took[0].median()))
		r.note(what+": resident at its height", "%.1f MiB", held.most/mebibyte)
		r.note(what+": of the program's file, which replicas share", "%.1f MiB", held.file/mebibyte)
		r.atMost(what+": resident", held.now/mebibyte, 64, "MiB")
		return nil
	})
}

// awaitLinks waits until so many Secrets have an owner.
func (s *stage) awaitLinks(ctx context.Context, wanted int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		list, err := s.admin.Resource(secrets).Namespace(lab.VMNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing the Secrets: %w", err)
		}
		linked := 0
		for i := range list.Items {
			if len(list.Items[i].GetOwnerReferences()) > 0 {
				linked++
			}
		}
		if linked >= wanted {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the owner links: %d of %d Secrets have one: %w", linked, wanted, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// residence is what a process holds of the machine's memory, in bytes.
type residence struct {
	// now and most count everything, file what was read from the program's file.
	now, most, file float64
}

// memoryOf gives what a process holds.
func memoryOf(pid int) (residence, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return residence{}, fmt.Errorf("reading how much memory a process holds: %w", err)
	}
	var held residence
	for line := range strings.SplitSeq(string(content), "\n") {
		name, value, _ := strings.Cut(line, ":")
		kibibytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 64)
		switch {
		case err != nil:
		case name == "VmRSS":
			held.now = kibibytes * 1024
		case name == "VmHWM":
			held.most = kibibytes * 1024
		case name == "RssFile":
			held.file = kibibytes * 1024
		}
	}
	return held, nil
}
