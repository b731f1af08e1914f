package manifests_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"reconcile.dev/reconcile/controllers/manifests"
)

var update = flag.Bool("update", false, "rewrite the expected parts")

// TestParse reads each file of testdata/manifests.txtar, and compares what it declares with the file of the same name and .want.
func TestParse(t *testing.T) {
	const file = "testdata/manifests.txtar"
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range a.Files {
		if name, ok := strings.CutSuffix(f.Name, ".want"); ok {
			want[name] = string(f.Data)
		}
	}
	var out []txtar.File
	for _, f := range a.Files {
		if strings.HasSuffix(f.Name, ".want") {
			continue
		}
		got := shown(manifests.Parse(f.Name, f.Data))
		if got != want[f.Name] && !*update {
			t.Errorf("%s:\n%s\nwant\n%s", f.Name, got, want[f.Name])
		}
		out = append(out, f, txtar.File{Name: f.Name + ".want", Data: []byte(got)})
	}
	if *update {
		a.Files = out
		if err := os.WriteFile(file, txtar.Format(a), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func shown(m *manifests.Manifest, err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s lock=%v name=%q engine=%q scripts=%v", m.Ecosystem, m.Lock, m.Name, m.Engine, m.Scripts)
	if m.Deprecated != "" || m.Retracted != nil {
		fmt.Fprintf(&b, " deprecated=%q retracted=%v", m.Deprecated, m.Retracted)
	}
	b.WriteByte('\n')
	for _, d := range m.Dependencies {
		fmt.Fprintf(&b, "%d: %s %q", d.Line, d.Name, d.Version)
		for _, word := range []struct {
			is   bool
			name string
		}{{d.Dev, "dev"}, {d.Optional, "optional"}, {d.Indirect, "indirect"}} {
			if word.is {
				b.WriteString(" " + word.name)
			}
		}
		if d.Deprecated != "" {
			fmt.Fprintf(&b, " deprecated=%q", d.Deprecated)
		}
		if d.Engine != "" {
			fmt.Fprintf(&b, " engine=%q", d.Engine)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestRetraction(t *testing.T) {
	m, err := manifests.Parse("go.mod", []byte("module m\nretract [v1.2.0, v1.3.0] // broken\n"))
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]bool{"v1.1.9": false, "v1.2.0": true, "v1.2.5": true, "v1.3.1": false} {
		if _, ok := m.Retraction(version); ok != want {
			t.Errorf("%s: taken back = %v, want %v", version, ok, want)
		}
	}
}

// FuzzParse: no text makes a reader panic, a dependency has a name, and its line is in the text.
func FuzzParse(f *testing.F) {
	a, err := txtar.ParseFile("testdata/manifests.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range a.Files {
		f.Add(file.Name, file.Data)
	}
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		m, err := manifests.Parse(name, text)
		if err != nil {
			return
		}
		for _, d := range m.Dependencies {
			if d.Name == "" || d.Line < 0 || d.Line > strings.Count(string(text), "\n")+1 {
				t.Errorf("%+v", d)
			}
		}
	})
}
