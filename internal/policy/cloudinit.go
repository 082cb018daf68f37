package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ttlab/vmwarden/internal/lab"
)

// cloudInitInline denies cloud-init data in the virtual machine itself: everybody who may read the object would read the
// agent's token in it, and KubeVirt refuses more than 2048 bytes.
func cloudInitInline(_ lab.Contract, f Facts) []Violation {
	if f.New == nil || f.Requester.Kind == lab.Admin {
		return nil
	}
	before := map[string]bool{}
	if f.Old != nil {
		for _, inline := range f.Old.References.InlineCloudInit {
			before[inline] = true
		}
	}
	var violations []Violation
	for _, inline := range f.New.References.InlineCloudInit {
		if before[inline] {
			continue
		}
		violations = append(violations, Violation{
			Code:   CloudInitInline,
			Field:  field.NewPath(inline),
			Found:  "cloud-init data stands in the virtual machine",
			Remedy: "put it into a Secret of the session and name that by secretRef or networkDataSecretRef",
		})
	}
	return violations
}

// secretForeign denies a Secret of another session or environment: as cloud-init (CloudInitForeign) it would boot with a
// stranger's token, as a volume or a credential (VolumeForeign) the guest would read it. One that does not exist yet may come.
func secretForeign(contract lab.Contract, f Facts) []Violation {
	if f.New == nil || f.Requester.Kind == lab.Admin {
		return nil
	}
	var violations []Violation
	for _, secret := range f.New.References.Secrets {
		theirs := stranger(contract, f, f.Referents[Reference{Secret, secret.Name}])
		if theirs == "" {
			continue
		}
		code := VolumeForeign
		if secret.CloudInit {
			code = CloudInitForeign
		}
		violations = append(violations, Violation{
			Code:   code,
			Field:  field.NewPath(secret.Field),
			Found:  fmt.Sprintf("Secret %q belongs to %s", secret.Name, theirs),
			Remedy: "name a Secret of the virtual machine's own session",
		})
	}
	return violations
}
