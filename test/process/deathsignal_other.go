//go:build unix && !linux

package process

import "syscall"

// setDeathSignal does nothing where the kernel knows no such signal: there the watchdog alone sees to it.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}
