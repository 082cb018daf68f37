package reap

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// view is a snapshot with its indexes, so that judging n objects and m rows takes a time of n + m.
type view struct {
	Snapshot
	settings  Settings
	rows      map[string]*Session
	bySession map[string][]Object
	// vmsByName holds the virtual machines of the VM namespace, labelled or not.
	vmsByName map[string]Object
	vmUIDs    map[types.UID]bool
	// secretsByName holds the Secrets of the VM namespace, labelled or not.
	secretsByName map[string]Object
	// vmNameClaims and secretNameClaims count the rows by which a name would be theirs: one that two sessions claim is nobody's.
	vmNameClaims     map[string]int
	secretNameClaims map[string]int
}

func newView(s Snapshot, settings Settings) view {
	v := view{
		Snapshot:         s,
		settings:         settings,
		rows:             make(map[string]*Session, len(s.Rows.Sessions)),
		bySession:        map[string][]Object{},
		vmsByName:        map[string]Object{},
		vmUIDs:           map[types.UID]bool{},
		secretsByName:    map[string]Object{},
		vmNameClaims:     map[string]int{},
		secretNameClaims: map[string]int{},
	}
	for i := range s.Rows.Sessions {
		row := &s.Rows.Sessions[i]
		v.rows[row.ID] = row
		v.vmNameClaims[row.VMName]++
		for _, name := range secretNames(settings.SecretNames, row.ID, []string{row.VMName}) {
			v.secretNameClaims[name]++
		}
	}
	for _, object := range s.Objects {
		if object.Session != "" {
			v.bySession[object.Session] = append(v.bySession[object.Session], object)
		}
		switch object.Kind {
		case VirtualMachine:
			v.vmsByName[object.Name] = object
			v.vmUIDs[object.UID] = true
		case Secret:
			v.secretsByName[object.Name] = object
		}
	}
	return v
}

// live tells whether the row is in one of the words of a session that goes on. A row in a word that the configuration does
// not know is neither live nor over: it protects its objects, and nothing more is done about it.
func (v view) live(row Session) bool {
	return row.Status == v.settings.Words.Starting || row.Status == v.settings.Words.Running
}

// owned tells whether an instance belongs to a virtual machine that was listed: KubeVirt deletes it with its owner.
func (v view) owned(object Object) bool {
	return object.Kind == VirtualMachineInstance && slices.ContainsFunc(object.Owners, func(uid types.UID) bool { return v.vmUIDs[uid] })
}

func (v view) ours(object Object) bool { return object.Environment == v.settings.Environment }
