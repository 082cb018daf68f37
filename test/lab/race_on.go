//go:build race

package lab

// withRaceDetector: the program that runs the lab has the race detector, so vmwarden's own binaries have it too.
const withRaceDetector = true
