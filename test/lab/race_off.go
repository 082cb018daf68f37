//go:build !race

package lab

// withRaceDetector: vmwarden's own binaries are built as they are given away.
const withRaceDetector = false
