package state

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

const shapedKey = "dags/checks/build-0123456789abcdef-1"

var shapedRef = schemas.Ref{Kind: "DAG", Name: "checks"}

// shapeSeeds are texts of a record and a status, as this program writes them and otherwise.
func shapeSeeds(t testing.TB) (seeds []string) {
	t.Helper()
	at := schemas.NewTime(time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC))
	zero := 0
	run := schemas.Run{Key: shapedKey, Owner: "dag/checks", Node: "build", NodeKey: "sha256:01", Seq: 1, Outcome: schemas.OutcomeSucceeded,
		StartedAt: at, FinishedAt: at, ExitCode: &zero}
	asks := run
	asks.Outcome, asks.Agent, asks.Asks = schemas.OutcomeAsked, "engineer", &schemas.Ask{To: "architect", Topic: "db", Question: "Which \"one\"?\n"}
	much := run
	much.Result, much.Output = []byte(`{"a": [1, true, "x\u001b", {}]}`), "grün \x1b[1m<b>\t\\\n"
	much.Outputs = []schemas.Output{{Path: "out/a b", Digest: "sha256:02", Size: 1 << 40}}
	much.Learned = []schemas.ObservationEntry{{Category: "error", Content: "It failed."}}
	for _, r := range []*schemas.Run{&run, &asks, &much} {
		b, err := EncodeRun(r)
		must(t, err)
		seeds = append(seeds, string(b))
	}
	common := schemas.Common{ObservedDigest: "sha256:03", Phase: "Running", Conditions: []schemas.Condition{
		{Type: schemas.Ready, Status: schemas.False, Reason: "Waits", Message: "1 of 2", LastTransitionTime: at},
		{Type: schemas.Stalled, Status: schemas.True, Reason: "Stuck"}},
		History: []schemas.HistoryEntry{{At: at, Reason: "Waits", Message: "for \"you\""}}}
	for _, st := range []schemas.Status{
		&schemas.DAGStatus{Common: common, Layers: [][]string{{"a"}, {"b"}}, Progress: schemas.Progress{Done: 1, Total: 2}, Running: 3,
			Nodes:      schemas.NodeStatusesOf(map[string]schemas.NodeStatus{"a": {State: schemas.NodeSucceeded, ExitCode: &zero, FinishedAt: at}, "b": {State: schemas.NodeBlocked}}),
			FinishedAt: at},
		&schemas.DAGStatus{},
	} {
		b, err := EncodeStatus(shapedRef, st)
		must(t, err)
		seeds = append(seeds, string(b))
	}
	return append(seeds, strings.ReplaceAll(seeds[3], "Ready", "Stalled"), strings.ReplaceAll(seeds[3], "Stalled", "Ready"),
		strings.ReplaceAll(seeds[0], "\n", "\r\n\t"), strings.Replace(seeds[0], `"seq": 1`, `"seq": 1.5`, 1),
		strings.Replace(seeds[0], `"outcome": "Succeeded"`, `"outcome": ""`, 1), strings.ReplaceAll(seeds[0], "-02-", "-02-30"))
}

// checkShape fails if a text that has the shape of a record or a status does not decode into what is told of it. had says
// which of the two it has.
func checkShape(t *testing.T, s *Store, data []byte) (had string) {
	if h := s.shapedRun(shapedKey, data); h != nil {
		had = "run"
		want, err := decodeRun(shapedKey, data, bytes.Clone(data))
		if err != nil {
			t.Fatalf("the record has the shape, and does not decode: %v\n%s", err, data)
		}
		if string(h.raw) != string(minify(nil, data)) {
			t.Fatalf("packed as %s\nwant %s", h.raw, minify(nil, data))
		}
		want.Result = minify(nil, want.Result)
		got := *h.get()
		got.Result = minify(nil, got.Result)
		if !reflect.DeepEqual(&got, want) || h.has != traitsOf(want) {
			t.Fatalf("traits %b, want %b of\n%s", h.has, traitsOf(want), data)
		}
	}
	path := s.layout().statusPath(shapedRef)
	if h := s.shapedStatus(path, data); h != nil {
		had = "status"
		want, ok := s.decodeStatusFile(path, data, nil).(*lazyStatus)
		if !ok {
			t.Fatalf("the status has the shape, and does not decode:\n%s", data)
		}
		if string(h.raw) != string(minify(nil, data)) {
			t.Fatalf("packed as %s\nwant %s", h.raw, minify(nil, data))
		}
		if got, want := *h.inBrief(), schemas.BriefOf(want.get()); !reflect.DeepEqual(got, want) {
			t.Fatalf("in brief %+v\nwant %+v", got, want)
		}
		if !reflect.DeepEqual(h.get(), want.get()) {
			t.Fatalf("it decodes otherwise:\n%s", data)
		}
		if (&Entry{status: h}).ReleaseStatus(); !reflect.DeepEqual(h.get(), want.get()) {
			t.Fatalf("after its release it decodes otherwise:\n%s", data)
		}
	}
	return had
}

func TestStatusWithoutFileIsNotReleased(t *testing.T) {
	e := &Entry{Ref: shapedRef}
	e.SetStatus(&schemas.DAGStatus{Session: "one"})
	if e.ReleaseStatus(); e.Status().(*schemas.DAGStatus).Session != "one" {
		t.Error("the status, which no file has, is gone")
	}
}

func TestShapes(t *testing.T) {
	s := open(t, t.TempDir())
	want := []string{"run", "run", "", "status", "status", "status", "status", "run", "", "", ""}
	for i, seed := range shapeSeeds(t) {
		if got := checkShape(t, s, []byte(seed)); got != want[i] {
			t.Errorf("%d has the shape of %q, want %q:\n%s", i, got, want[i], seed)
		}
	}
}

// TestShapesOfCorruptText changes and cuts texts at every byte.
func TestShapesOfCorruptText(t *testing.T) {
	s := open(t, t.TempDir())
	for _, seed := range shapeSeeds(t) {
		for i := 0; i < len(seed); i += mutants.Size(7, 1, 1) {
			checkShape(t, s, []byte(seed[:i]))
			for _, c := range []byte("\"\\{}[],:0 \n\x00\xffn") {
				data := []byte(seed)
				data[i] = c
				checkShape(t, s, data)
			}
		}
	}
}

// FuzzShape checks that what has a shape decodes, and into what was told of it.
func FuzzShape(f *testing.F) {
	for _, seed := range shapeSeeds(f) {
		f.Add([]byte(seed))
	}
	s := open(f, f.TempDir())
	f.Fuzz(func(t *testing.T, data []byte) { checkShape(t, s, data) })
}

// TestFilesAreNotDecodedBeforeSomebodyAsks loads a tree without a cache.
func TestFilesAreNotDecodedBeforeSomebodyAsks(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"specs/checks.yaml": dagYAML})
	seeds := shapeSeeds(t)
	for p, text := range map[string]string{"state/dags/checks.json": seeds[3], "state/runs/" + shapedKey + ".json": seeds[0]} {
		p = filepath.Join(dir, p)
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must(t, os.WriteFile(p, []byte(text), 0o644))
	}
	e := load(t, open(t, dir)).Entry(shapedRef)
	if e.status.raw == nil {
		t.Error("a load without a cache decoded a status that nobody asked for")
	}
	if len(e.runs.files) != 1 || e.runs.files[0].raw == nil {
		t.Error("a load without a cache decoded what nobody asked for")
	}
	if got := fmt.Sprint(e.Brief().Phase, e.Status().Base().Phase, e.Runs()[0].Outcome); got != "RunningRunningSucceeded" {
		t.Error(got)
	}
}
