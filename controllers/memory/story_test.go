package memory

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"reconcile.dev/reconcile/schemas"
)

var updateStories = flag.Bool("update-fold", false, "rewrite the expected files in testdata/fold")

// TestFoldStories folds issue 29 of each tree in testdata/fold: specs/ and records/ are the truth, issue-29.json and
// archive.json the files before, "broken" names an Observation that cannot be read, "compact" says that what the first
// fold gave is compacted.
func TestFoldStories(t *testing.T) {
	paths, err := filepath.Glob("testdata/fold/*.txtar")
	if err != nil || len(paths) < 3 {
		t.Fatalf("%d stories: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			in := slices.DeleteFunc(slices.Clone(a.Files), func(f txtar.File) bool {
				return strings.HasPrefix(f.Name,
					"out/")
			})
			want := txtar.Format(&txtar.Archive{Comment: a.Comment, Files: append(in, tell(t, in)...)})
			if *updateStories {
				if err := os.WriteFile(path, want, 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got := txtar.Format(a); !bytes.Equal(got, want) {
				t.Errorf("it folds to\n%s\nrun with -update-fold and look at the difference", want)
			}
		})
	}
}

// tell folds the issue of a story.
func tell(t *testing.T, in []txtar.File) (out []txtar.File) {
	truth := Truth{Records: map[string]schemas.MemoryRecord{}, Taken: map[string]Taken{}}
	files := map[string][]byte{}
	d := schemas.NewDecoder([]schemas.Kind{schemas.ObservationKind}, 0)
	for _, f := range in {
		name := strings.TrimSuffix(filepath.Base(f.Name), filepath.Ext(f.Name))
		switch filepath.Dir(f.Name) {
		case "specs":
			o := d.Decode(f.Name, f.Data)
			if o.Object == nil {
				t.Fatal(o.Problems)
			}
			truth.Specs = append(truth.Specs, Spec{Name: o.Object.Name, Digest: o.Object.Digest,
				ObservationSpec: o.Object.Spec().(*schemas.ObservationSpec)})
		case "records":
			r, err := ParseRecord(f.Data)
			if err != nil {
				t.Fatal(err)
			}
			truth.Records[name] = r
		default:
			files[f.Name] = f.Data
		}
	}
	truth.Exists = func(name string) bool { return name == strings.TrimSpace(string(files["broken"])) }
	m, err := Parse(files["issue-29.json"])
	if err != nil {
		t.Fatal(err)
	}
	TakenIn(m, truth.Taken)
	folded := foldAll(t, truth, files["issue-29.json"], files["archive.json"])
	if _, ok := files["compact"]; ok {
		folded = compactAll(t, truth, folded)
	}
	edited := ""
	for _, name := range slices.Sorted(maps.Keys(folded.Edited)) {
		edited += fmt.Sprintf("%s was accepted as %s\n", name, folded.Edited[name])
	}
	for _, f := range []txtar.File{{Name: "out/edited", Data: []byte(edited)}, {Name: "out/issue-29.json",
		Data: folded.File},
		{Name: "out/archive/issue-29-archived.json", Data: folded.Archive}} {
		if len(f.Data) > 0 {
			out = append(out, f)
		}
	}
	return out
}

func foldAll(t *testing.T, truth Truth, file, archive []byte) Folded {
	f, err := NewFacts(truth).Fold(29, file, archive)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// compactAll compacts, removes the observation that says it was removed since, and folds.
func compactAll(t *testing.T, truth Truth, f Folded) Folded {
	r, ok := NewFacts(truth).Compact(&f)
	if !ok {
		t.Fatal("there is nothing to compact")
	}
	truth.Records["compacted"] = r
	for _, o := range f.Observations {
		if o.Content == "Removed since." {
			truth.Records["removed"] = schemas.MemoryRecord{Type: schemas.RecordRemoved, At: o.Timestamp,
				IDs: []string{o.ID}}
		}
	}
	return foldAll(t, truth, f.File, f.Archive)
}
