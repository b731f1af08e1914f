//go:build unix

package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// needing is a run that needs a node of that name.
func needing(key, script, need string) settle.Effect {
	e := sh(script)
	e.Key = key
	e.Command().Needs = map[string]settle.Need{need: {State: schemas.NodeSucceeded}}
	return e
}

// text is what a file of the tree holds, without space around it.
func (g *rig) text(name string) string {
	g.t.Helper()
	data, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		g.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// A file that a run was given is used for the next one, unless the run made it its own.
func TestWorkFilesAreUsedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		again  bool
		left   string // file that the first run leaves
	}{
		"read":       {`cat "$RECONCILE_NEEDS" > read`, true, "read"},
		"written":    {`echo "a longer text than that of the second run is" > "$RECONCILE_NEEDS"`, true, ""},
		"linked":     {`ln "$RECONCILE_NEEDS" linked`, false, "linked"},
		"moved":      {`mv "$RECONCILE_NEEDS" moved`, false, "moved"},
		"replaced":   {`cp "$RECONCILE_NEEDS" x; mv x "$RECONCILE_NEEDS"`, false, ""},
		"swapped":    {`mv "$RECONCILE_NEEDS" swapped; echo > "$RECONCILE_NEEDS"`, false, "swapped"},
		"removed":    {`rm "$RECONCILE_NEEDS"`, false, ""},
		"all moved":  {`cp -r .reconcile/work y; mv .reconcile/work old`, false, "y/dags~d~first.needs.json"},
		"all linked": {`mv .reconcile/work work; ln -s ../work .reconcile/work`, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, Options{})
			g.do(needing("dags/d/first", `ls -i "$RECONCILE_NEEDS" | cut -d " " -f 1 > inode; `+c.script, "a-long-name-of-a-node"))
			first := g.text("inode")
			g.do(needing("dags/d/second", `ls -i "$RECONCILE_NEEDS" | cut -d " " -f 1 > inode; cat "$RECONCILE_NEEDS" > text`, "b"))
			if again := g.text("inode") == first; c.again && !again {
				t.Error("the file is another one")
			}
			if text := g.text("text"); text != `{"b":{"state":"Succeeded"}}` {
				t.Errorf("the second run was given %s", text)
			}
			if c.left != "" && g.text(c.left) != `{"a-long-name-of-a-node":{"state":"Succeeded"}}` {
				t.Errorf("what the first run kept holds %s", g.text(c.left))
			}
			if err := g.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(filepath.Join(g.dir, state.WorkDir)); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
