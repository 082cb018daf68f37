package policy

// Code names why a request was denied. Codes are API: a code never changes its meaning.
type Code string

// The codes, each with the file that holds its rule.
const (
	// requester.go
	RequesterUnknown Code = "RequesterUnknown"
	// environment.go
	EnvironmentMismatch  Code = "EnvironmentMismatch"
	EnvironmentForeign   Code = "EnvironmentForeign"
	EnvironmentImmutable Code = "EnvironmentImmutable"
	// session.go
	SessionMissing   Code = "SessionMissing"
	SessionInvalid   Code = "SessionInvalid"
	SessionImmutable Code = "SessionImmutable"
	// deadline.go
	DeadlineTooLate   Code = "DeadlineTooLate"
	DeadlineImmutable Code = "DeadlineImmutable"
	// owner.go
	OwnerMissing Code = "OwnerMissing"
	OwnerForeign Code = "OwnerForeign"
	// cloudinit.go
	CloudInitInline  Code = "CloudInitInline"
	CloudInitForeign Code = "CloudInitForeign"
	// volume.go
	VolumeForeign Code = "VolumeForeign"
	// golden.go
	GoldenWritable  Code = "GoldenWritable"
	GoldenProtected Code = "GoldenProtected"
	// orphan.go
	OrphaningDelete Code = "OrphaningDelete"
	// instance.go
	InstanceDirect Code = "InstanceDirect"
	// launcher.go
	DeadlinePassed Code = "DeadlinePassed"
	// cap.go
	CapVMs         Code = "CapVMs"
	CapEnvironment Code = "CapEnvironment"
	CapSession     Code = "CapSession"
	CapCPU         Code = "CapCPU"
	CapMemory      Code = "CapMemory"
	// CapReserved: it would fit if nothing of what is only reserved came to be.
	CapReserved Code = "CapReserved"
	// CapUnknown: the virtual machines could not be counted, and the configuration says to deny then.
	CapUnknown Code = "CapUnknown"
	// review.go. ObjectUnreadable: the object could not be read, so no rule could judge it.
	ObjectUnreadable Code = "ObjectUnreadable"
	// validator.go. Undecided: what a rule depends on could not be read from the API server.
	Undecided Code = "Undecided"
)

// Codes lists all codes.
func Codes() []Code {
	return []Code{
		RequesterUnknown,
		EnvironmentMismatch,
		EnvironmentForeign,
		EnvironmentImmutable,
		SessionMissing,
		SessionInvalid,
		SessionImmutable,
		DeadlineTooLate,
		DeadlineImmutable,
		OwnerMissing,
		OwnerForeign,
		CloudInitInline,
		CloudInitForeign,
		VolumeForeign,
		GoldenWritable,
		GoldenProtected,
		OrphaningDelete,
		InstanceDirect,
		DeadlinePassed,
		CapVMs,
		CapEnvironment,
		CapSession,
		CapCPU,
		CapMemory,
		CapReserved,
		CapUnknown,
		ObjectUnreadable,
		Undecided,
	}
}
