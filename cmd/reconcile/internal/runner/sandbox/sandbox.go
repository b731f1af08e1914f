// Package sandbox confines programs: it limits the paths and addresses that they may write, read and connect to.
//
// There are three levels. At none, nothing is confined. At landlock, the kernel's Landlock confines a process and its children; it
// needs no privileges and no namespaces. At bwrap, the program sees the file system through a mount namespace that bubblewrap makes,
// in which all but the granted paths is read-only; there Landlock only limits signals and connections, where it can.
//
// A confined program is started by [Host.Start]: on a thread that confines itself by Landlock, and whose rules the program inherits; the
// rest of this process is not confined. At bwrap that program is bubblewrap. The program has the descriptors, the group and the
// environment that the caller gives it. A program with a main function that calls [Main] first can probe bwrap.
//
// Rights only add up at landlock: a folder that may be written cannot have a part that may not. Neither level covers sockets of UDP,
// or, before version 9 of Landlock, sockets in the file system.
package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas"
)

// Policy is what a program may do.
type Policy struct {
	Level string `json:"level"` // schemas.SandboxLandlock or schemas.SandboxBwrap
	// Write are files and folders that may be written and read: absolute, without symbolic links, existing.
	Write []string `json:"write,omitempty"`
	// Shield are files and folders below Write that may not be written; only for bwrap.
	Shield []string `json:"shield,omitempty"`
	// Read are what may be read besides Write and the system's own folders; nil: everything.
	Read []string `json:"read,omitempty"`
	// Limited says that only Ports may be connected to, over TCP.
	Limited bool  `json:"limited,omitempty"`
	Ports   []int `json:"ports,omitempty"`
}

// Spawn starts the program at path with argv. Its descriptors are four of the caller's, then more.
type Spawn func(path string, argv []string, more []*os.File) error

// Support is what a probe found about a level.
type Support struct {
	Level string `json:"level"`
	// Missing says why the level is not available; "" if it is.
	Missing string `json:"missing,omitempty"`
	// Network says that connections can be limited to ports.
	Network bool `json:"network,omitempty"`
	// Program is the program that confines, which was tried; "" for none.
	Program string `json:"program,omitempty"`
}

// foundVar is the variable in which a process of this program tells another one what its probe found.
const foundVar = "RECONCILE_SANDBOX_FOUND"

// Variable is the variable that tells s.
func (s Support) Variable() string {
	data, _ := json.Marshal(s) // of strings and flags
	return foundVar + "=" + string(data)
}

// Found returns what FoundVar tells in an environment, for [NewHost]; none if it tells nothing.
func Found(getenv func(string) string) []Support {
	var s Support
	if json.Unmarshal([]byte(getenv(foundVar)), &s) != nil || !slices.Contains(Levels, s.Level) {
		return nil
	}
	return []Support{s}
}

// Levels are the levels that confine, the best one first.
var Levels = []string{schemas.SandboxBwrap, schemas.SandboxLandlock}

// Host confines programs of this process. It is safe for concurrent use. It probes each level at most once. A nil Host confines nothing.
type Host struct {
	path   string // PATH, where bwrap is looked for
	tried  string // the bwrap that another process probed; "": none
	probes map[string]func() Support
}

// NewHost returns a Host that looks for programs in the folders of path, a PATH. It probes nothing yet, and never what another process has found.
func NewHost(path string, found ...Support) *Host {
	h := &Host{path: path, probes: map[string]func() Support{}}
	for _, level := range Levels {
		h.probes[level] = sync.OnceValue(func() Support { return h.probe(level) })
	}
	for _, s := range found {
		h.probes[s.Level] = func() Support { return s }
		if s.Level == schemas.SandboxBwrap {
			h.tried = s.Program
		}
	}
	return h
}

// Support returns the support of a level, one of Levels, by a real probe: forbidden operations are refused, and allowed ones succeed.
func (h *Host) Support(level string) Support {
	if h == nil {
		return Support{Level: level, Missing: "this process confines no programs"}
	}
	return h.probes[level]()
}

// Best returns the best level that is available. Its Missing says why, if that is LevelNone.
func (h *Host) Best() Support {
	var why []string
	for _, level := range Levels {
		s := h.Support(level)
		if s.Missing == "" {
			return s
		}
		why = append(why, level+": "+s.Missing)
	}
	return Support{Level: schemas.SandboxNone, Missing: strings.Join(why, "; ")}
}

// Choose returns the level that a spec asks for. An error says which one is available instead, and why the other one is not.
func (h *Host) Choose(s *schemas.Sandbox) (Support, error) {
	switch {
	case s.Level == schemas.SandboxNone:
		return Support{Level: schemas.SandboxNone}, nil
	case s.Level == "":
		best := h.Best()
		if best.Level == schemas.SandboxNone && s.Required {
			return best, fmt.Errorf("sandbox.required: no level is available here (%s)", best.Missing)
		}
		return best, nil
	case !slices.Contains(Levels, s.Level):
		return Support{}, fmt.Errorf("sandbox.level: %q is not a level", s.Level)
	}
	found := h.Support(s.Level)
	if found.Missing != "" {
		return found, fmt.Errorf("sandbox.level: %s is required and not available here (%s); the best level here is %s", s.Level,
			found.Missing, h.Best().Level)
	}
	return found, nil
}
