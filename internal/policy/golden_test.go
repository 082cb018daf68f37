package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// attached gives a stored machine one disk, attached as told; more are changes to the machine itself.
func attached(source object, more ...func(object)) object {
	return stamped("prod", append(more, set([]any{object{"name": "root", "persistentVolumeClaim": source["persistentVolumeClaim"], "ephemeral": source["ephemeral"]}},
		"spec", "template", "spec", "volumes"))...)
}

func belowLayer(claim string) object {
	return object{"ephemeral": object{"persistentVolumeClaim": object{"claimName": claim, "readOnly": true}}}
}

func writable(claim string) object {
	return object{"persistentVolumeClaim": object{"claimName": claim}}
}

func TestAGoldenDiskBelowALayerBecomesWritableByNoChange(t *testing.T) {
	const field = "spec.template.spec.volumes[0].persistentVolumeClaim.claimName"
	ownTemplate := set([]any{object{"metadata": object{"name": "plain"}}}, "spec", "dataVolumeTemplates")
	world := around{
		{PersistentVolumeClaim, "golden"}: {Exists: true, Labels: map[string]string{"ttlab.io/golden": "true"}},
		{PersistentVolumeClaim, "plain"}:  {Exists: true},
		{DataVolume, "plain"}:             {Exists: true},
	}
	for name, c := range map[string]struct {
		user     string
		old, new object
		want     []found
	}{
		"a backend takes the layer away":            {prodBackend, attached(belowLayer("golden")), attached(writable("golden")), []found{{"GoldenWritable", field}}},
		"an admin takes the layer away":             {admin, attached(belowLayer("golden")), attached(writable("golden")), []found{{"GoldenWritable", field}}},
		"the layer stays":                           {prodBackend, attached(belowLayer("golden")), attached(belowLayer("golden"), annotation("a", "b")), nil},
		"a disk that is not golden loses its layer": {prodBackend, attached(belowLayer("plain")), attached(writable("plain")), nil},
		"a disk that the machine's own template made loses its layer": {
			prodBackend, attached(belowLayer("plain"), ownTemplate), attached(writable("plain"), ownTemplate), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			validator := newValidator(roomy())
			validator.Surroundings = world
			if diff := cmp.Diff(c.want, violations(validator.Handle(t.Context(), update(c.user, c.old, c.new)))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
