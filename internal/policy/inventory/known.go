package inventory

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// forgetAfter is how long a need is kept of an object that no list shows: a watch may be ahead of a list by far less.
const forgetAfter = 5 * time.Minute

// known remembers needs by UID.
type known struct {
	mutex sync.Mutex
	needs map[types.UID]measured
}

type measured struct {
	generation int64
	need       ledger.Need
	at         time.Time
}

// remember keeps a need unless a later one of the same object is known.
func (k *known) remember(uid types.UID, generation int64, need ledger.Need, now time.Time) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.needs == nil {
		k.needs = map[types.UID]measured{}
	}
	if k.needs[uid].generation <= generation {
		k.needs[uid] = measured{generation, need, now}
	}
}

func (k *known) of(uid types.UID) (measured, bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	m, found := k.needs[uid]
	return m, found
}

// forget drops the needs of objects that are gone: those that a list does not show and that were not learned just now.
func (k *known) forget(listed map[types.UID]ledger.Need, now time.Time) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for uid, m := range k.needs {
		if _, found := listed[uid]; !found && now.Sub(m.at) > forgetAfter {
			delete(k.needs, uid)
		}
	}
}
