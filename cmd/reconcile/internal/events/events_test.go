package events

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func open(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func at(minute int) schemas.Time {
	return schemas.NewTime(time.Date(2026, 2, 27, 10, minute, 0, 0, time.UTC))
}

func TestAppendAndRead(t *testing.T) {
	root := open(t)
	if all, err := Read(root, Filter{}); err != nil || len(all) != 0 {
		t.Fatalf("an empty log: %v, %v", all, err)
	}
	written := []Event{
		{Time: at(0), Ref: "dag/a", Node: "build", Type: Normal, Reason: "Succeeded"},
		{Time: at(1), Ref: "dag/b", Type: Warning, Reason: "Failed", Message: "line one\nline two\x1b"},
		{Time: at(2), Ref: "dag/a", Type: Normal, Reason: "Succeeded"},
	}
	for _, e := range written {
		if err := Append(root, []Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		filter Filter
		want   string
	}{
		{Filter{}, "[dag/a dag/b dag/a]"},
		{Filter{Ref: "dag/a"}, "[dag/a dag/a]"},
		{Filter{Since: at(1).Time}, "[dag/b dag/a]"},
		{Filter{Ref: "dag/c"}, "[]"},
	} {
		got, err := Read(root, c.filter)
		if err != nil || fmt.Sprint(refs(got)) != c.want {
			t.Errorf("%+v: %v, %v; want %s", c.filter, refs(got), err, c.want)
		}
	}
	all, _ := Read(root, Filter{})
	if all[1] != written[1] {
		t.Errorf("read %+v, wrote %+v", all[1], written[1])
	}
}

func refs(events []Event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, e.Ref)
	}
	return out
}

// A line that a killed process tore, at any byte, costs that line and no other.
func TestTornLine(t *testing.T) {
	line := encodeEvent([]Event{{Time: at(0), Ref: "dag/torn", Type: Normal, Reason: "Succeeded", Message: "ü"}})
	for n := range len(line) {
		root := open(t)
		if err := Append(root, []Event{{Time: at(0), Ref: "dag/a", Type: Normal, Reason: "Started"}}); err != nil {
			t.Fatal(err)
		}
		f, err := root.OpenFile(Path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.Write(line[:n])
		f.Close()
		if err := Append(root, []Event{{Time: at(1), Ref: "dag/b", Type: Normal, Reason: "Started"}}); err != nil {
			t.Fatal(err)
		}
		got, err := Read(root, Filter{})
		names := strings.Join(refs(got), " ")
		if err != nil || names != "dag/a dag/b" && names != "dag/a dag/torn dag/b" {
			t.Fatalf("torn after %d bytes: %s, %v", n, names, err)
		}
	}
}

func TestTheLogIsBounded(t *testing.T) {
	root := open(t)
	batch := make([]Event, 2000)
	for i := range batch {
		batch[i] = Event{Time: at(0), Ref: "dag/a", Type: Normal, Reason: "Started", Message: strings.Repeat("x", 2000)}
	}
	for range 12 {
		if err := Append(root, batch); err != nil {
			t.Fatal(err)
		}
	}
	total := int64(0)
	for _, path := range []string{oldPath, Path} {
		info, err := root.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if most := int64(2*fileLimit + 2*len(encodeEvent(batch))); total > most {
		t.Errorf("the log takes %d bytes, more than %d", total, most)
	}
	if got, err := Read(root, Filter{}); err != nil || len(got) == 0 {
		t.Errorf("%d events, %v", len(got), err)
	}
}

func TestALogThatIsNoFile(t *testing.T) {
	root := open(t)
	if err := root.MkdirAll(Path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Append(root, []Event{{Ref: "dag/a", Reason: "Started"}}); err == nil {
		t.Error("appended to a folder")
	}
	if got, err := Read(root, Filter{}); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"time":"2026-02-27T10:00:00Z","ref":"dag/a","type":"Normal","reason":"Started"}` + "\n{"))
	f.Add([]byte("\x00\n\n{}\nnull\n[]\n"))
	f.Add(bytes.Repeat([]byte("x"), lineLimit+10))
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := scanLines(bytes.NewReader(src), Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range got {
			if e.Ref == "" || e.Reason == "" {
				t.Errorf("not an event: %+v", e)
			}
		}
	})
}
