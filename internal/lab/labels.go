package lab

// Labels names the labels that mark a lab object. The keys belong to the platform, so they are configuration.
type Labels struct {
	// Lab marks an object as part of a lab; its value is LabValue.
	Lab      string
	LabValue string
	// Session carries the id of the session that the object belongs to.
	Session string
	// Environment carries the name of the environment whose backend created the object.
	Environment string
	// Golden marks a prepared base disk, whatever its value: owned by nobody, deleted by nobody.
	Golden string
}

// Annotations that vmwarden itself writes. They are part of its API and not configurable.
const (
	// DeadlineAnnotation is the moment (RFC 3339, UTC) after which the virtual machine may not exist.
	DeadlineAnnotation = "vmwarden.io/deadline"
	// CreatedByAnnotation is the user name of the requester who created the virtual machine.
	CreatedByAnnotation = "vmwarden.io/created-by"
)

// Marks tells whether the label set is that of a lab object: it carries the lab label or a session.
func (l Labels) Marks(labels map[string]string) bool {
	_, session := labels[l.Session]
	return session || labels[l.Lab] == l.LabValue
}
