package faults

// faults are all faults, each with a row in docs/reliability.md.
func faults() []fault {
	return []fault{
		{"API server killed and restarted", apiServerRestarts, anyStatus},
		{"API server paused now and then", pauses(apiServer), anyStatus},
		{"API server paused", stops(apiServer), both(nothingAdmitted, couldNot)},
		{"our rights are taken (403)", rightsAreTaken, both(nothingAdmitted, couldNot)},
		{"too many requests (429)", tooManyRequests, anyStatus},
		{"internal errors (500)", internalErrors, both(nothingAdmitted, anyStatus)},
		{"etcd slow", pauses(etcd), anyStatus},
		{"etcd paused", stops(etcd), both(nothingAdmitted, couldNot)},
		{"controller manager paused", stops(controllerManager), anyStatus},
		{"PostgreSQL killed", databaseIsKilled, couldNot},
		{"PostgreSQL restarted in the middle", databaseRestarts, anyStatus},
		{"PostgreSQL paused", databaseIsPaused, couldNot},
		{"PostgreSQL read-only", databaseIsReadOnly, couldNot},
		{"PostgreSQL out of connections", databaseIsOutOfConnections, couldNot},
		{"replicas killed at random", replicasAreKilled, anyStatus},
		{"all replicas down", replicasAreDown, both(nothingAdmitted, anyStatus)},
		{"one replica's clock stands still, another's is ahead", clocksAreWrong, both(noDeadlineDoubted, anyStatus)},
		{"the reapers' clocks are ten hours ahead", reapersClocksAreAhead, anyStatus},
		{"a replica cut off from the API server", aReplicaIsCutOff, anyStatus},
		{"all replicas cut off from the API server", theReplicasAreCutOff, both(nothingAdmitted, anyStatus)},
		{"serving certificate ended", theCertificateEnds, both(nothingAdmitted, anyStatus)},
		{"serving certificate replaced again and again", theCertificateIsReplaced, anyStatus},
		{"caBundle blanked", theCABundleIsBlanked, both(nothingAdmitted, anyStatus)},
		{"disk full for logs and reports", theDiskIsFull, nil},
		{"passes killed at random", passesAreKilled, nil},
		{"the backend's own reaper beside", theBackendReapsToo, anyStatus},
	}
}
