package schemas

import "strings"

// Levels of a sandbox.
const (
	SandboxNone     = "none"
	SandboxLandlock = "landlock"
	SandboxBwrap    = "bwrap"
)

// What the programs in a sandbox may connect to.
const (
	NetworkOpen  = "open"
	NetworkProxy = "proxy"
)

// Sandbox says what the programs of an agent may do on the machine. See docs/sandbox.md.
type Sandbox struct {
	// Level is the only level that will do: none, landlock or bwrap. A run fails where that one is not available. Default: the best one
	// of the machine for agents that work in a clone, none for all others.
	Level string `json:"level,omitempty" jsonschema:"enum=none,enum=landlock,enum=bwrap"`
	// Required fails a run where no level but none is available.
	Required bool `json:"required,omitempty"`
	// Write are further files and folders that may be written: absolute, below the home folder (~/.cache), or below the tree. They must
	// exist.
	Write []string `json:"write,omitempty" jsonschema:"maxItems=100"`
	// Read are the files and folders that may be read, besides those of the system, the workspace and what may be written. Default: all.
	Read []string `json:"read,omitempty" jsonschema:"maxItems=100"`
	// Network is what may be connected to: open (everything) or proxy (over TCP, only reconcile's own proxy for models and the ports of
	// the workspace). Default: proxy where the agent uses that proxy, else open.
	Network string `json:"network,omitempty" jsonschema:"enum=open,enum=proxy"`
}

func (s *Sandbox) check(r *Report) {
	if s.Level == SandboxNone {
		for _, f := range []struct {
			name string
			set  bool
		}{{"required", s.Required}, {"write", len(s.Write) > 0}, {"read", len(s.Read) > 0}, {"network", s.Network != ""}} {
			if f.set {
				r.At("sandbox", f.name).Errorf("conflict", "has no effect without a sandbox").Also("the level", "sandbox", "level")
			}
		}
	}
	for i, p := range s.Write {
		checkGrant(r.At("sandbox", "write", i), p)
	}
	for i, p := range s.Read {
		checkGrant(r.At("sandbox", "read", i), p)
	}
}

// checkGrant reports a path that cannot be granted.
func checkGrant(s Spot, p string) {
	checkLine(s, p)
	switch rest := strings.TrimPrefix(p, "~/"); {
	case p == "" || p == "~":
		s.Errorf("bad-path", "names no file or folder").Suggest("write an absolute path, as /var/cache/app, or one below the home folder, as ~/.cache")
	case p[0] == '/':
		if p == "/" {
			s.Errorf("bad-path", "is the whole machine").Suggest("name a folder, or level: none")
		}
	case rest == p:
		checkPath(s, p, reads)
	case strings.Contains("/"+rest+"/", "/../"):
		s.Errorf("bad-path", "%q leaves the home folder", p)
	}
}
