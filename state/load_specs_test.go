package state

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// TestLoadSpecs: the objects of a kind and their problems are those of a whole load, nothing of the state is read, and the cache keeps
// all.
func TestLoadSpecs(t *testing.T) {
	dir, _ := cachedTree(t)
	put(t, dir, map[string]string{"specs/cased.yaml": sessionYAML, "specs/CASED.yaml": strings.ReplaceAll(dagYAML, "checks", "cased"),
		"specs/twice.yaml": sessionYAML, "specs/astray.yaml": strings.ReplaceAll(strings.ReplaceAll(dagYAML, "checks", "astray"), "health", "none")})
	settleFiles(t, dir)
	whole := load(t, open(t, dir))
	n := 0
	for _, k := range testKinds {
		if k.CheckAgainst != nil {
			continue
		}
		specs := loadSpecs(t, dir, k.Name, 0)
		for _, other := range testKinds {
			if other.Name != k.Name && len(specs.Entries(other.Name)) > 0 {
				t.Errorf("%s: there are specs of %s", k.Name, other.Name)
			}
		}
		for _, e := range whole.Entries(k.Name) {
			if e.Object == nil && !e.Broken() || strings.HasPrefix(e.StatusPath, "state/sessions/half") {
				continue
			}
			n++
			got := specs.Entry(e.Ref)
			if got == nil || !sameObject(got.Object, e.Object) || !slices.EqualFunc(got.Problems, e.Problems, equalProblems) {
				t.Fatalf("%s: %+v, want %+v", e.Ref, got, e)
			}
			if got.HasStatus() || got.RunCount() > 0 {
				t.Errorf("%s: it has a status or runs", e.Ref)
			}
		}
	}
	if n < 30 {
		t.Errorf("%d objects were compared", n)
	}

	worker := open(t, dir)
	must(t, journal(t, worker).Claim([]schemas.Run{run(1)}))
	if e := loadSpecs(t, dir, schemas.SessionKind.Name, 0).Entry(checks); e == nil || len(e.Claims) != 1 {
		t.Errorf("what runs is not known: %+v", e)
	}
	worker.Close()

	put(t, dir, map[string]string{"specs/new.yaml": strings.ReplaceAll(sessionYAML, "health", "new")})
	if specs := loadSpecs(t, dir, schemas.SessionKind.Name, 1); specs.Entry(schemas.SessionKind.Ref("new")) == nil {
		t.Error("a new session is not there")
	}
	after := open(t, dir)
	load(t, after)
	if n := after.decoded.Load(); n > 1 { // the new one may be racy
		t.Errorf("%d files were decoded again after the specs were read", n)
	}
}

// TestLoadSpecsOfTouchedFiles: a file of another kind that has to be read again, because its time changed or was too new, is as
// whole in the cache as before.
func TestLoadSpecsOfTouchedFiles(t *testing.T) {
	dir, want := cachedTree(t)
	must(t, filepath.WalkDir(filepath.Join(dir, "specs"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return os.Chtimes(p, time.Time{}, time.Unix(1e9, 0))
	}))
	s := open(t, dir)
	_, err := s.LoadSpecs(t.Context(), schemas.AgentKind.Name)
	must(t, err)
	if got := dump(load(t, open(t, dir))); got != want {
		t.Errorf("after the agents were read:\n%s\nbefore:\n%s", got, want)
	}
}

// loadSpecs reads the specs of a kind, for which it must decode a number of files.
func loadSpecs(t *testing.T, dir, kind string, decoded int64) *Tree {
	t.Helper()
	s := open(t, dir)
	specs, err := s.LoadSpecsAndClaims(t.Context(), kind)
	must(t, err)
	if got := s.decoded.Load(); got != decoded {
		t.Errorf("%s: %d files were decoded, want %d", kind, got, decoded)
	}
	return specs
}

// specsMutants are faults in what LoadSpecs leaves out.
var specsMutants = []mutants.Mutant{
	{"the names of other kinds are left out", "load_specs.go", "\t\t\tm.put(old)\n", "\t\t\tif m.refOf(old).Kind == kind {\n\t\t\t\tm.put(old)\n\t\t\t}\n"},
	{"the specs are not checked", "load_specs.go", "s.crossCheckAll(m, kind)", "s.crossCheckAll(m, kind+\" \")"},
	{"the name of a touched file is its content", "load_specs.go", "delete(known, f.path)", "_ = f"},
	{"the specs are not decoded", "cache_decode.go", "b.ref.Kind != d.only {", "true {"},
	{"what runs is left out", "load_specs.go", " || m.hasInJournals(ref)", ""},
}
