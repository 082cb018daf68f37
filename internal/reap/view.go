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
}

func newView(s Snapshot, settings Settings) view {
	v := view{
		Snapshot:  s,
		settings:  settings,
		rows:      make(map[string]*Session, len(s.Rows.Sessions)),
		bySession: map[string][]Object{},
		vmsByName: map[string]Object{},
		vmUIDs:    map[types.UID]bool{},
	}
	for i := range s.Rows.Sessions {
		v.rows[s.Rows.Sessions[i].ID] = &s.Rows.Sessions[i]
	}
	for _, object := range s.Objects {
		if object.Session != "" {
			v.bySession[object.Session] = append(v.bySession[object.Session], object)
		}
		if object.Kind == VirtualMachine {
			v.vmsByName[object.Name] = object
			v.vmUIDs[object.UID] = true
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
