package main

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	vmwarden "github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

const (
	prodSession = "c0000000-0000-4000-8000-000000000001"
	devSession  = "c0000001-0000-4000-8000-000000000002"
	// capacity is the cap of the lab's configuration.
	capacity = 8
	// crowd is how many students press the button at once.
	crowd = 40
)

// admission shows what the webhook stamps and denies.
func admission(ctx context.Context, s *story) error {
	prod, dev := s.lab.Backends["prod"], s.lab.Backends["dev"]
	s.chapter("Admission: whose machine is it?")

	s.tell("prod's backend opens a session: a Secret, then the virtual machine, exactly as test/backend/manifests/vm-golden.yaml has it.")
	stored, err := prod.Open(ctx, prodSession, backend.VMGolden)
	if err != nil {
		return fmt.Errorf("opening a session of prod: %w", err)
	}
	annotations := stored.GetAnnotations()
	s.answer("201 Created: %s\nlabel ttlab.io/env = %s\nannotation %s = %s\nannotation %s = %s", stored.GetName(), stored.GetLabels()["ttlab.io/env"],
		vmwarden.DeadlineAnnotation, annotations[vmwarden.DeadlineAnnotation], vmwarden.CreatedByAnnotation, annotations[vmwarden.CreatedByAnnotation])
	s.shown("prod's machine is admitted and stamped with its deadline", annotations[vmwarden.DeadlineAnnotation] != "")

	s.tell("dev's backend sends a machine that claims to be prod's.")
	claim, err := backend.Objects(backend.VMContainerDisk, backend.Lesson{Session: devSession, Environment: "prod"})
	if err != nil {
		return err
	}
	_, err = dev.CreateObject(ctx, claim[0], metav1.CreateOptions{})
	s.answer("%s", inWords(err))
	s.shown("dev claiming prod is denied", deniedBy(err, "EnvironmentMismatch"))

	s.tell("dev's backend deletes prod's machine, and then everything that it can see.")
	one := dev.Machines(lab.VMNamespace).Delete(ctx, stored.GetName(), metav1.DeleteOptions{})
	s.answer("delete: %s", inWords(one))
	all := dev.Machines(lab.VMNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	s.answer("deletecollection: %s", inWords(all))
	_, err = prod.Machines(lab.VMNamespace).Get(ctx, stored.GetName(), metav1.GetOptions{})
	s.shown("dev deleting prod's machine is denied", deniedBy(one, "EnvironmentForeign") && deniedBy(all, "EnvironmentForeign") && err == nil)

	s.tell("prod's backend deletes it.")
	err = prod.Machines(lab.VMNamespace).Delete(ctx, stored.GetName(), metav1.DeleteOptions{})
	s.answer("%s", inWords(err))
	s.shown("prod deletes what is prod's", err == nil)
	return nil
}

// places shows that the cap is exact.
func places(ctx context.Context, s *story) error {
	s.chapter("The cap: eight places, forty students")
	s.tell("%d creates at the same moment, from both environments, through three replicas of the webhook.", crowd)
	answers := make([]error, crowd)
	var wait sync.WaitGroup
	for i := range crowd {
		environment := lab.Environments[i%len(lab.Environments)]
		lesson := backend.Lesson{Session: fmt.Sprintf("d%07d-0000-4000-8000-%012d", i, i), Environment: environment}
		objects, err := backend.Objects(backend.VMContainerDisk, lesson)
		if err != nil {
			return err
		}
		wait.Go(func() {
			_, answers[i] = s.lab.Backends[environment].CreateObject(ctx, objects[0], metav1.CreateOptions{})
		})
	}
	wait.Wait()
	admitted, denied := 0, 0
	var sample error
	for _, err := range answers {
		switch {
		case err == nil:
			admitted++
		case deniedBy(err, "CapVMs") || deniedBy(err, "CapReserved"):
			denied++
			sample = err
		default:
			return fmt.Errorf("a create of the crowd: %w", err)
		}
	}
	s.answer("%d admitted, %d denied; one of the denials:\n%s", admitted, denied, inWords(sample))
	machines, err := s.lab.AdminBackend.Machines(lab.VMNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("counting the virtual machines: %w", err)
	}
	s.answer("kubectl get vm: %d virtual machines", len(machines.Items))
	s.shown("of 40 concurrent creates exactly 8 are admitted", admitted == capacity && len(machines.Items) == capacity)

	s.tell("One machine goes, and a student who was turned away tries again.")
	if err := s.lab.AdminBackend.Machines(lab.VMNamespace).Delete(ctx, machines.Items[0].Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting a virtual machine: %w", err)
	}
	next, err := backend.Objects(backend.VMContainerDisk, backend.Lesson{Session: prodSession, Environment: "prod"})
	if err != nil {
		return err
	}
	_, err = s.lab.Backends["prod"].CreateObject(ctx, next[0], metav1.CreateOptions{})
	s.answer("%s", inWords(err))
	s.shown("a place is free as soon as its machine is gone", err == nil)
	return emptyRoom(ctx, s.lab)
}

// emptyRoom deletes all virtual machines and waits until they are gone.
func emptyRoom(ctx context.Context, l *lab.Lab) error {
	machines := l.AdminBackend.Machines(lab.VMNamespace)
	if err := machines.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("emptying the namespace: %w", err)
	}
	left, err := machines.List(ctx, metav1.ListOptions{})
	for err == nil && len(left.Items) > 0 {
		left, err = machines.List(ctx, metav1.ListOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("waiting for the namespace to be empty: %w", err)
	}
	return nil
}
