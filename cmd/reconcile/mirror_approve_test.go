package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

// gatedTree is added to that of a desk: gates that only proved people open, and requests for changes of the plan.
const gatedTree = `
-- specs/dags/ship.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: ship}
spec:
  session: health
  nodes:
    - {name: build, run: ["true"]}
    - {name: release, needs: [build], run: [touch, released], approve: {by: [lead]}}
    - {name: announce, needs: [build], run: [touch, announced], approve: {by: [leads], count: 2}}
-- specs/planchanges/more.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: PlanChange
metadata: {name: more}
spec: {target: dag/ship, change: extend, reason: Nobody tests it., suggestions: {add: [{name: tests, run: [touch, tested]}]}}
-- specs/planchanges/other.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: PlanChange
metadata: {name: other}
spec: {target: dag/ship, change: extend, reason: Nobody packs it., suggestions: {add: [{name: pack, run: [touch, packed]}]}}
-- specs/planchanges/third.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: PlanChange
metadata: {name: third}
spec: {target: dag/ship, change: extend, reason: Nobody signs it., suggestions: {add: [{name: sign, run: [touch, signed]}]}}
`

const gatePeople = `, people: [{name: lead, github: OWNER, teams: [leads]}, {name: mona, github: MONA, teams: [leads]}]}
`

// TestCommentsProve: the author of a comment is the proof of who opens a gate, and comments answer requests for changes of the plan.
func TestCommentsProve(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	files := map[string]string{}
	for _, f := range txtar.Parse([]byte(gatedTree)).Files {
		files[f.Name] = string(f.Data)
	}
	settings := strings.TrimSuffix(d.reads("reconcile.yaml"), "}\n")
	files["reconcile.yaml"] = settings + strings.NewReplacer("OWNER", githubtest.Owner, "MONA", githubtest.Mona).Replace(gatePeople)
	writeFiles(t, d.dir, files)
	d.run()
	shown := func(node string) string { // as a person copies it, with the marks between its parts that keep GitHub from linking it
		t.Helper()
		m := regexp.MustCompile("approve dag/ship " + node + ` --digest ([0-9a-f\x{200b}]+)`).FindStringSubmatch(d.comments())
		if m == nil || !strings.Contains(m[1], "\u200b") {
			t.Fatalf("no comment shows how to approve %s:\n%s", node, d.comments())
		}
		return "/approve dag/ship " + node + " " + m[1]
	}
	there := func(want bool, names ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(d.dir, name)); (err == nil) != want {
				t.Errorf("%s is there: %v, want %v; %s", name, err == nil, want, d.reads("state/dags/ship.json"))
			}
		}
	}
	release, announce := shown("release"), shown("announce")
	d.rig.Comment(t, githubtest.Mona, d.issue, release) // may give commands, and is not the one
	d.rig.Comment(t, githubtest.Stranger, d.issue, release)
	d.rig.Comment(t, githubtest.Owner, d.issue, announce)
	d.rig.Comment(t, githubtest.Owner, d.issue, announce) // the same person
	d.rig.Comment(t, githubtest.Stranger, d.issue, "/approve planchange/more")
	d.run()
	there(false, "released", "announced", "tested")

	d.rig.Comment(t, githubtest.Owner, d.issue, release)
	d.rig.Comment(t, githubtest.Mona, d.issue, announce)
	d.rig.Comment(t, githubtest.Mona, d.issue, "/approve planchange/more")
	d.rig.Comment(t, githubtest.Owner, d.issue, "/approve planchange/other\n```yaml\nedit: {add: [{name: wrap, run: [touch, wrapped]}]}\n```")
	d.rig.Comment(t, githubtest.Owner, d.issue, "/deny planchange/third not now")
	d.run()
	there(true, "released", "announced", "tested", "wrapped")
	there(false, "packed", "signed")
	for path, want := range map[string]string{
		"state/dags/ship.json":         `"by": "github:` + githubtest.Owner + `",\s*"proof": "github"`,
		"state/planchanges/more.json":  `"phase": "Applied"(?s:.*)"by": "github:` + githubtest.Mona + `"`,
		"state/planchanges/other.json": `"phase": "Applied"(?s:.*)"by": "github:` + githubtest.Owner + `"`,
		"state/planchanges/third.json": `"phase": "Refused"(?s:.*)not now`,
	} {
		if got := d.reads(path); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s does not have %s:\n%s", path, want, got)
		}
	}
	d.quiet()
}
