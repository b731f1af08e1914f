package runner

import (
	"iter"
	"os"
	"strconv"
	"time"
)

// chainVar is the environment variable that marks every process of a run. Its value lists the runs that contain the
// process, outermost first, separated by colons; each is "root.runner.key", three digests.
const chainVar = "RECONCILE_CHAIN"

// marks creates and recognizes the marks of one runner.
type marks struct {
	root   string // digest of the tree's path
	runner string // digest unique to this runner
	outer  string // the chain of this process, with a colon at its end; or empty
}

func newMarks(dir string, environ []string) marks {
	m := marks{root: digest(dir), runner: digest(strconv.Itoa(os.Getpid()) + time.Now().String())}
	if outer := lookup(environ, chainVar); outer != "" {
		m.outer = outer + ":"
	}
	return m
}

// chain returns the value of chainVar for a run.
func (m marks) chain(key string) string {
	return m.outer + m.root + "." + m.runner + "." + digest(key)
}

// ofRun reports whether a process with this chain is inside a run of key in our tree, started by any runner.
func (m marks) ofRun(chain, key string) bool {
	want := digest(key)
	return anyArtifactLink(chain, func(root, _, k string) bool { return root == m.root && k == want })
}

// ofRunner reports whether a process with this chain was started by this runner.
func (m marks) ofRunner(chain string) bool {
	return anyArtifactLink(chain, func(_, runner, _ string) bool { return runner == m.runner })
}

// MarkVariables are the environment variables that [InsideRun] reads.
var MarkVariables = []string{"RECONCILE_RUN", "RECONCILE_ROOT", chainVar, "RECONCILE_AGENT", "RECONCILE_SESSION", tokenVar}

// Inside is the run that contains a process.
type Inside struct {
	Key string // of the run
	// Agent and Session are the run's agent and session; "" if it has none.
	Agent, Session string
	// Unproved is set for a process that names a run whose token it does not have. Agent and Session are empty then.
	Unproved bool
	// Elsewhere is set for a run of another tree.
	Elsewhere bool
}

// InsideRun finds the run that a process is inside of, by the RECONCILE variables in its environs: one of the tree in
// dir, at any depth, else one of another tree; nil without one. environs are the environments of the process and
// its ancestors ([Ancestry]), its own first. Of several that name a run of the tree the outermost counts: reconcile set
// it, while the run's own processes choose the variables that they pass on.
func InsideRun(dir string, environs iter.Seq[[]string]) *Inside {
	real := ""
	var here, linked, other *Inside
	for environ := range environs {
		key, root, chain := lookup(environ, "RECONCILE_RUN"), lookup(environ, "RECONCILE_ROOT"), lookup(environ, chainVar)
		if key == "" && root == "" && chain == "" {
			continue
		}
		if real == "" {
			var err error
			if real, err = realPath(dir); err != nil {
				real = dir
			}
		}
		in := &Inside{Key: key, Agent: lookup(environ, "RECONCILE_AGENT"), Session: lookup(environ, "RECONCILE_SESSION")}
		want := digest(real)
		switch {
		case root == real || root == "" && chain == "":
			if in.Unproved = impostor(real, key, lookup(environ, tokenVar)); in.Unproved {
				in.Agent, in.Session = "", ""
			}
			here = in
		case linked == nil && anyArtifactLink(chain, func(root, _, _ string) bool { return root == want }):
			linked = in
		default:
			in.Elsewhere = true
			other = in
		}
	}
	switch {
	case here != nil:
		return here
	case linked != nil:
		return linked
	}
	return other
}
