package trace

import (
	"bytes"
	"strings"

	"github.com/ttlab/vmwarden/internal/policy"
)

// object is what something happened to.
type object struct{ kind, namespace, name string }

func (o object) String() string {
	if o.name == "" {
		return strings.ToLower(o.kind) + "/?"
	}
	return strings.ToLower(o.kind) + "/" + o.name
}

const (
	machineKind  = string(policy.VirtualMachine)
	instanceKind = string(policy.VirtualMachineInstance)
	podKind      = string(policy.Pod)
)

// wanted knows what is asked for, and learns while it reads: a session's machines from their creation, a machine's session from its
// label, and what else belongs to that session. What is not reviewed carries no session in the audit log, only a name.
type wanted struct {
	asked string
	// machines are names of virtual machines, sessions the ids whose belongings are told.
	machines, sessions map[string]bool
	belongings         map[object]bool
	// words are all of them, one of which every line holds that is of use.
	words [][]byte
	// grew counts what was learned.
	grew int
}

func newWanted(asked string) *wanted {
	w := &wanted{asked: asked, machines: map[string]bool{}, sessions: map[string]bool{}, belongings: map[object]bool{}}
	w.machines[asked], w.sessions[asked] = true, true
	w.word(asked)
	return w
}

func (w *wanted) word(text string) { w.words = append(w.words, []byte(text)) }

func (w *wanted) mentions(line []byte) bool {
	for _, word := range w.words {
		if bytes.Contains(line, word) {
			return true
		}
	}
	return false
}

// named tells whether a text has one of the names as a word of its own.
func (w *wanted) named(text string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !strings.ContainsRune(nameLetters, r) }) {
		word = strings.Trim(word, "-.")
		if w.machines[word] || w.sessions[word] {
			return true
		}
	}
	return false
}

// nameLetters are those of names and session ids.
const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

// wants tells whether something that happened to an object of a session belongs here, and learns from it. session may be empty.
func (w *wanted) wants(o object, session string) bool {
	if machine, part := machineOf(o); part && o.name != "" {
		if w.machines[machine] {
			w.learnSession(session)
			return true
		}
		// Another machine of the session is told of where the session is asked for.
		if session == "" || session != w.asked || o.kind != machineKind {
			return false
		}
		w.machines[o.name] = true
		w.word(o.name)
		w.grew++
		return true
	}
	if session == "" || !w.sessions[session] {
		return w.belongings[o]
	}
	if o.name != "" && !w.belongings[o] {
		w.belongings[o] = true
		w.word(o.name)
		w.grew++
	}
	return true
}

func (w *wanted) learnSession(session string) {
	if session != "" && !w.sessions[session] {
		w.sessions[session] = true
		w.word(session)
		w.grew++
	}
}

// launcherPrefix leads the name of a launcher Pod; the machine's follows, and five letters that make it unique.
const (
	launcherPrefix = "virt-launcher-"
	uniqueSuffix   = len("-xxxxx")
)

// machineOf names the virtual machine of which the object is a part: itself, its instance, its launcher Pod.
func machineOf(o object) (name string, part bool) {
	switch o.kind {
	case machineKind, instanceKind:
		return o.name, true
	case podKind:
		if rest, found := strings.CutPrefix(o.name, launcherPrefix); found && len(rest) > uniqueSuffix {
			return rest[:len(rest)-uniqueSuffix], true
		}
	}
	return "", false
}
