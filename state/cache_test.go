package state

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/mutants"
)

// cachedTree makes a tree that has something of everything, and its cache.
func cachedTree(t testing.TB) (dir, want string) {
	t.Helper()
	dir = t.TempDir()
	generate(t, dir, 30)
	put(t, dir, map[string]string{
		"specs/checks.yaml":                  dagYAML,
		"specs/broken.yaml":                  "kind: Session\nmetadata: {name: broken}\nspec: {titel: x}\n",
		"specs/labelled.yaml":                "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: labelled, labels: {a: b, e: f, g: h}, annotations: {c: d, i: j}}\nspec: {}\n",
		"state/sessions/half.json":           "{",
		"state/agent-status.json":            "{}",
		"state/memory/manifest.json":         "{}",
		ledger42:                             ledgerOf(42, "resolved", "pending"),
		"state/clarifications/issue-43.json": ledgerOf(42),
		"src/main.go":                        "package main",
		"state/runs/dags/checks/x.json":      "{}",
	})
	load(t, open(t, dir))
	s := open(t, dir)
	want = dump(load(t, s))
	s.Close()
	settleFiles(t, dir)
	return dir, want
}

// settleFiles waits until none of the files is racy, and has the cache know it.
func settleFiles(t testing.TB, dir string) {
	t.Helper()
	s := open(t, dir)
	defer s.Close()
	load(t, s)
	if !s.waitOutTick() {
		t.Fatal("the clock of the file system is another")
	}
	load(t, s)
}

func TestSecondLoadDecodesNothing(t *testing.T) {
	dir, want := cachedTree(t)
	s := open(t, dir)
	if got := dump(load(t, s)); got != want {
		t.Errorf("through the cache:\n%s\nwithout:\n%s", got, want)
	}
	if n := s.decoded.Load(); n != 0 {
		t.Errorf("%d files were decoded again", n)
	}
	put(t, dir, map[string]string{"specs/new.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: new}\nspec: {}\n"})
	s = open(t, dir)
	load(t, s)
	if n := s.decoded.Load(); n != 1 {
		t.Errorf("%d files were decoded, not the one that is new", n)
	}
}

// TestSettledFilesAreInTheCache checks that a process decodes nothing of what an earlier one wrote, or read when it was
// young, and settled; and that what somebody else changed before that is not taken for it.
func TestSettledFilesAreInTheCache(t *testing.T) {
	for _, meddle := range []bool{false, true} {
		dir := t.TempDir()
		put(t, dir, map[string]string{"specs/checks.yaml": dagYAML, "specs/health.yaml": sessionYAML, "state/runs/dags/checks/build-1.json": "{}"})
		s := open(t, dir)
		load(t, s)
		locked(t, s, func() { write(t, s, Change{Path: s.StatusPath(health), Data: statusOf(t, health, "Active")}) })
		if meddle {
			put(t, dir, map[string]string{s.StatusPath(health): string(statusOf(t, health, "Paused"))})
		}
		must(t, s.Settle(Summary{}))
		next := open(t, dir)
		if _, fresh := next.Fresh(); fresh == meddle {
			t.Errorf("another wrote %v: fresh %v", meddle, fresh)
		}
		want := "Active"
		if meddle {
			want = "Paused"
		}
		if got := load(t, next).Entry(health).Brief().Phase; got != want {
			t.Errorf("another wrote %v: phase %s, want %s", meddle, got, want)
		}
		if n := next.decoded.Load(); n != 0 {
			t.Errorf("another wrote %v: %d files were decoded again", meddle, n)
		}
	}
}

// TestCacheDamage checks that no damage to the cache changes what is loaded.
// TestCacheKeepsBriefs: each field of a brief is in the cache.
func TestCacheKeepsBriefs(t *testing.T) {
	var want schemas.Brief
	of := reflect.ValueOf(&want).Elem()
	for i := range of.NumField() {
		switch f := of.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(of.Type().Field(i).Name)
		case reflect.Int:
			f.SetInt(int64(i) + 1)
		case reflect.Bool:
			f.SetBool(true)
		}
	}
	want.Progress = schemas.Progress{Done: 3, Total: 4}
	want.FinishedAt = schemas.Time{Time: time.UnixMilli(1).UTC()}
	for i := range of.NumField() {
		if of.Field(i).IsZero() {
			t.Fatalf("the test sets no %s", of.Type().Field(i).Name)
		}
	}
	e := new(encoder)
	e.brief(&want)
	if got := (&decoder{Decoder: sections.Decoder{B: e.B}}).brief(); got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestCacheDamage(t *testing.T) {
	dir, want := cachedTree(t)
	p := filepath.Join(dir, cachePath)
	whole, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	decoder := open(t, dir).decoder
	try := func(what string, at int, data []byte) {
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		defer s.Close()
		s.decoder = decoder
		if got := dump(load(t, s)); got != want {
			t.Fatalf("%s at %d:\n%s\nwant:\n%s", what, at, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		at := r.IntN(len(whole))
		try("cut", at, whole[:at])
		flipped := bytes.Clone(whole)
		flipped[at] ^= 1 << r.IntN(8)
		try("flipped", at, flipped)
	}
	try("another program's", 0, append([]byte("something else"), whole...))
	try("followed by litter", len(whole), append(bytes.Clone(whole), "litter"...))
	s := open(t, dir)
	load(t, s)
	if n := s.decoded.Load(); n != 0 {
		t.Errorf("the cache was not written anew: %d files were decoded", n)
	}
}

func TestCacheOfAnotherBuild(t *testing.T) {
	dir, want := cachedTree(t)
	s, err := Open(dir, Options{Kinds: testKinds, Now: time.Now, Build: "another"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := dump(load(t, s)); got != want || s.decoded.Load() == 0 {
		t.Error("the cache of another build was used")
	}
}

func TestCacheIsCompacted(t *testing.T) {
	dir, want := cachedTree(t)
	s := open(t, dir)
	tree := load(t, s)
	path := filepath.Join(dir, "specs/labelled.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 1200 {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		tree, _ = refresh(t, s, tree, "specs/labelled.yaml")
	}
	if s.cache.records > 1200 {
		t.Errorf("the cache holds %d records", s.cache.records)
	}
	s.Close()
	s = open(t, dir)
	if got := dump(load(t, s)); got != want || s.decoded.Load() > 0 {
		t.Errorf("%d files were decoded; tree:\n%s\nwant:\n%s", s.decoded.Load(), got, want)
	}
}

// TestRacyEdits changes files so that size and modification time stay.
func TestRacyEdits(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"specs/health.yaml": sessionYAML})
	p := filepath.Join(dir, "specs/health.yaml")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var tree *Tree
	watching := open(t, dir)
	for i, title := range []string{"Aaaaaa", "Bbbbbb", "Cccccc", "Dddddd", "Eeeeee", "Ffffff"} {
		edited := bytes.Replace([]byte(sessionYAML), []byte("Health"), []byte(title), 1)
		if err := os.WriteFile(p, edited, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(p, at, at); err != nil {
			t.Fatal(err)
		}
		if tree == nil {
			tree = load(t, watching)
		} else {
			tree, _ = refresh(t, watching, tree, "specs/health.yaml")
		}
		for j, tr := range []*Tree{tree, load(t, open(t, dir)), load(t, watching)} {
			if got := schemas.SpecAs[*schemas.SessionSpec](tr.Entry(health).Object).Title; got != title {
				t.Errorf("edit %d, reader %d: title %q, want %q", i, j, got, title)
			}
		}
	}
}

// FuzzCache checks that no payload of a block, whatever its hash says, makes the decoder panic.
func FuzzCache(f *testing.F) {
	dir, _ := cachedTree(f)
	s := open(f, dir)
	file, err := os.Open(filepath.Join(dir, cachePath))
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	s.useSettings(s.settings)
	blocks, ok := s.cache.blocks(file)
	if !ok {
		f.Fatal("the cache is damaged")
	}
	for _, b := range blocks {
		payload, err := b.read(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) == 0 {
			return
		}
		part := newDecoder(s).payload(payload, 0)
		if !part.ok {
			return
		}
		m := newModel(s.layout())
		m.settings = &settingsFile{spec: s.settings}
		for _, f := range part.files {
			m.put(f)
		}
		s.crossCheckAll(m, "")
		for _, l := range m.tree().Ledgers() {
			l.Records()
		}
	})
}

// TestRacyFilesAreComparedAgain changes a file and makes the store believe that the file system says nothing of it:
// only the mark that the file was racy when it was read can tell.
func TestRacyFilesAreComparedAgain(t *testing.T) {
	const p = "specs/health.yaml"
	for _, racy := range []bool{true, false} {
		dir := t.TempDir()
		put(t, dir, map[string]string{p: sessionYAML})
		s := open(t, dir)
		tree := load(t, s)
		put(t, dir, map[string]string{p: string(bytes.Replace([]byte(sessionYAML), []byte("Health"), []byte("Wealth"), 1))})
		f := *s.model.files[p]
		st, err := disk.Lstat(s.root, p)
		must(t, err)
		f.stat, f.racy = st, racy
		s.model.put(&f)
		_, refs := refresh(t, s, tree, p)
		if noticed := len(refs) == 1; noticed != racy {
			t.Errorf("racy %v: noticed %v", racy, noticed)
		}
	}
}

func TestRacyAt(t *testing.T) {
	now, tick := time.Unix(1000, 0), 8*time.Millisecond
	for _, c := range []struct {
		changed time.Duration
		want    bool
	}{{-time.Hour, false}, {-tick - 1, false}, {-tick, true}, {0, true}, {time.Hour, true}} {
		st := disk.Stat{Ctime: now.Add(c.changed).UnixNano()}
		if got := st.RacyAt(now, tick); got != c.want {
			t.Errorf("changed %v before the look: racy %v", -c.changed, got)
		}
	}
}

// TestLedgersInTheCache: the records of a long ledger are read when they are asked for, and from the ledger if the cache is damaged there.
func TestLedgersInTheCache(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{ledger42: ledgerOf(42, slices.Repeat([]string{"resolved", "pending"}, 10)...), "state/clarifications/issue-7.json": ledgerOf(7, "pending")})
	settleFiles(t, dir)
	s := open(t, dir)
	load(t, s)
	at := filepath.Join(dir, cachePath)
	whole, err := os.ReadFile(at)
	must(t, err)
	long, short := s.model.files[ledger42], s.model.files["state/clarifications/issue-7.json"]
	want := long.body.(*Ledger)
	size := int64(binary.LittleEndian.Uint32(whole[long.at:]))
	read := func(f *file, change int64) (left, all *file) {
		data := bytes.Clone(whole)
		if change > 0 {
			data[change] ^= 1
		}
		must(t, os.WriteFile(at, data, 0o644))
		open, err := os.Open(at)
		must(t, err)
		t.Cleanup(func() { open.Close() })
		reader := func() *cacheReader { return &cacheReader{File: open, decoder: newDecoder(s), ahead: readOne} }
		was := baseFile{path: hashOf(f.path), content: f.content(), at: uint64(f.at)}
		return reader().readLedger(was), reader().read(was)
	}
	if left, all := read(short, 0); left != nil || all == nil || len(all.body.(*Ledger).Records()) != 1 {
		t.Errorf("a short ledger: %v, %v", left, all)
	}
	tail := binary.PutUvarint(make([]byte, 8), uint64(len(want.encoded()))) + len(want.encoded())
	open := long.at + recordHeader + size - int64(tail) - 8 - 4 // in front of the hash: last, open, foreign, doubled, and the number that are rejected
	if left, all := read(long, open); left != nil || all != nil {
		t.Errorf("with another head: %v, %v", left, all)
	}
	for change, damaged := range map[int64]bool{0: false, long.at + recordHeader + size - 1: true} {
		left, all := read(long, change)
		if left == nil || (all == nil) != damaged {
			t.Fatalf("damaged %v: %v, %v", damaged, left, all)
		}
		l := left.body.(*Ledger)
		if l.packed != nil || l.Last != want.Last || l.Open != want.Open || l.Path != want.Path {
			t.Errorf("damaged %v: %+v", damaged, l)
		}
		if !sameLedger(l, want) || !reflect.DeepEqual(l.Records(), want.Records()) {
			t.Errorf("damaged %v: %d records, want %d", damaged, len(l.Records()), len(want.Records()))
		}
		if s.needsFullLoad.Load() != damaged {
			t.Errorf("damaged %v: everything is loaded next: %v", damaged, s.needsFullLoad.Load())
		}
		s.needsFullLoad.Store(false)
	}
}

var cachedLedgerMutants = []mutants.Mutant{
	{"the head of a ledger is not checked", "cache_read.go", "sum != uint32(xxhash.Sum64(record[:len(record)-hashed])) || ", "hashed < 0 || "},
	{"the records of a ledger are not checked", "cache_read.go", "err == nil && xxhash.Sum64(records) == l.hash {", "err == nil {"},
	{"a damaged cache goes on in use", "cache_read.go", "\ts.needsFullLoad.Store(true)\n", ""},
}
