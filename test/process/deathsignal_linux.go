package process

import "syscall"

// setDeathSignal makes the kernel end the process together with its owner: it covers the moment between the start and the
// watchdog's learning of it.
func setDeathSignal(attributes *syscall.SysProcAttr, signal syscall.Signal) {
	attributes.Pdeathsig = signal
}
