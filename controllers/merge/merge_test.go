package merge_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/merge"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// join merges, and fails the test where that is not possible.
func join(t testing.TB, base, a, b []byte) []byte {
	t.Helper()
	out, err := merge.Files(controllers.Schemas(), base, a, b)
	if err != nil {
		t.Fatalf("base\n%s\na\n%s\nb\n%s\n%v", base, a, b, err)
	}
	return out
}

// laws checks what makes a merge a join, and that the result is a fixed point of it.
func laws(t testing.TB, base, a, b, c []byte) {
	t.Helper()
	ab, bc := join(t, base, a, b), join(t, base, b, c)
	same := func(law string, x, y []byte) {
		t.Helper()
		if string(x) != string(y) {
			t.Fatalf("%s\nbase\n%s\na\n%s\nb\n%s\nc\n%s\n1st\n%s\n2nd\n%s", law, base, a, b, c, x, y)
		}
	}
	same("it is not commutative", ab, join(t, base, b, a))
	same("it is not associative", join(t, base, ab, c), join(t, base, a, bc))
	same("it is not idempotent", a, join(t, base, a, a))
	same("what was taken in changes it again", ab, join(t, base, ab, a))
	if string(a) != string(b) { // two that are the same stay as they are
		same("its result is not canonical", ab, join(t, ab, ab, append(append([]byte(nil), ab...), '\n')))
	}
}

// chance makes random values from small sets, so that they often meet.
type chance struct{ *rand.Rand }

var someTimes = []schemas.Time{{}, schemas.NewTime(time.Unix(1_700_000_000, 0)), schemas.NewTime(time.Unix(1_700_000_060, 0)),
	schemas.NewTime(time.Unix(1_700_000_120, 0))}

var someResults = []string{`{"n":1}`, `{"n":  2, "m": [1]}`, `null`, `[]`, `"x"`}

func (c chance) fill(v reflect.Value) {
	switch v.Interface().(type) {
	case schemas.Time:
		v.Set(reflect.ValueOf(someTimes[c.IntN(len(someTimes))]))
		return
	case *schemas.NodeStatuses:
		var all map[string]schemas.NodeStatus
		c.fill(reflect.ValueOf(&all).Elem())
		v.Set(reflect.ValueOf(schemas.NodeStatusesOf(all)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			c.fill(v.Field(i))
		}
	case reflect.String:
		v.SetString([]string{"", "a", "b", "pending", "resolved", "stale"}[c.IntN(6)])
	case reflect.Int:
		v.SetInt(int64(c.IntN(3)))
	case reflect.Bool:
		v.SetBool(c.IntN(2) == 0)
	case reflect.Pointer:
		if c.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			c.fill(v.Elem())
		}
	case reflect.Slice:
		c.fillSlice(v)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range c.IntN(4) {
			e := reflect.New(v.Type().Elem()).Elem()
			c.fill(e)
			v.SetMapIndex(reflect.ValueOf([]string{"x", "y", "z"}[c.IntN(3)]), e)
		}
	}
}

func (c chance) fillSlice(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if c.IntN(2) == 0 {
			v.SetBytes([]byte(someResults[c.IntN(len(someResults))]))
		}
		return
	}
	n := c.IntN(4)
	if v.Type().Elem() == reflect.TypeFor[schemas.HistoryEntry]() {
		n = c.IntN(schemas.HistoryLimit + 1)
	}
	for range n {
		e := reflect.New(v.Type().Elem()).Elem()
		c.fill(e)
		v.Set(reflect.Append(v, e))
	}
}

func (c chance) status(t testing.TB, k schemas.Kind) []byte {
	t.Helper()
	status := k.NewStatus()
	c.fill(reflect.ValueOf(status).Elem())
	data, err := state.EncodeStatus(schemas.Ref{Kind: k.Name, Name: "x"}, status)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestMergeOfStatusesIsAJoin(t *testing.T) {
	for _, k := range controllers.Schemas() {
		if k.NewStatus == nil {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			for seed := range uint64(mutants.Size(5, 10, 60)) {
				c := chance{rand.New(rand.NewPCG(seed, 7))}
				base := c.status(t, k)
				if seed%5 == 0 {
					base = nil
				}
				sides := [3][]byte{}
				for i := range sides {
					if sides[i] = c.status(t, k); base != nil && c.IntN(6) == 0 {
						sides[i] = base
					}
				}
				laws(t, base, sides[0], sides[1], sides[2])
				if ref, _, err := state.DecodeStatus(controllers.Schemas(), join(t, base, sides[0], sides[1])); err != nil || ref.Name != "x" {
					t.Fatalf("seed %d: %v %v", seed, ref, err)
				}
			}
		})
	}
}

// corpus has files of each class, hostile ones among them, several of which are of one object.
var corpus = []string{
	`{"kind":"Run","apiVersion":"reconcile.dev/v1alpha1","metadata":{"name":"b-1"},"key":"dags/x/b-1","owner":"dag/x","node":"b","nodeKey":"k","seq":1,"outcome":"Failed","finishedAt":"2026-01-01T00:00:00Z"}`,
	`{"kind":"Run","apiVersion":"reconcile.dev/v1alpha1","metadata":{"name":"b-1"},"key":"dags/x/b-1","owner":"dag/x","node":"b","nodeKey":"k","seq":1,"outcome":"Succeeded","finishedAt":"2026-01-01T00:00:01Z"}`,
	`{"kind":"Run","key":"dags/x/b-1"}`,
	`{"version":1,"type":"removed","issueNumber":1,"at":"2026-01-01T00:00:00.000Z","ids":["obs-a-1-1-aaaaaa"]}`,
	`{"version":1,"type":"removed","issueNumber":1,"at":"2026-01-01T00:00:00.000Z","ids":["obs-a-1-1-aaaaab"]}`,
	`{"issueNumber":1,"clarifications":[{"id":"CLR-1-001","from":"a","to":"b","topic":"t","status":"pending","round":1,"thread":[{"round":1,"from":"a","type":"question","body":"q","timestamp":"2026-01-01T00:00:00Z","x":1}],"y":2}]}`,
	`{"issueNumber":1,"clarifications":[{"id":"CLR-1-001","from":"a","to":"b","topic":"t","status":"resolved","round":2,"thread":[]}],"z":[1]}`,
	`{"issueNumber":1,"clarifications":[]}`,
	`{"issueNumber":1,"clarifications":7}`,
	`{"version":1,"issueNumber":1,"observations":[{"id":"obs-a-1-1-aaaaaa","agent":"a","issueNumber":1,"category":"decision","content":"c","summary":"s","tokens":1,"timestamp":"2026-01-01T00:00:00.000Z","sessionId":"","mine":{"a":1}}],"sources":{"n":"sha256:1"}}`,
	`{"version":1,"issueNumber":1,"observations":[{"id":"obs-a-1-1-aaaaaa","agent":"a","issueNumber":1,"category":"decision","content":"d","summary":"s","tokens":1,"timestamp":"2026-01-01T00:00:00.000Z","sessionId":"","source":"n"}],"links":{"n":{"repeats":["obs-a-1-1-aaaaaa"]}},"more":1}`,
	`{"version":1,"issueNumber":2,"observations":[]}`,
	`{"version":1,"updatedAt":null,"entries":[{"id":"obs-a-1-1-aaaaaa","agent":"a","issueNumber":1,"category":"decision","summary":"s","tokens":1,"timestamp":"2026-01-01T00:00:00.000Z"}]}`,
	`{"version":1,"updatedAt":null,"entries":[{"id":"obs-a-1-2-aaaaaa","agent":"a","issueNumber":1,"category":"decision","summary":"s","tokens":1,"timestamp":"2026-01-02T00:00:00.000Z"}]}`,
	`{"engineer":{"status":"idle","issue":null,"lastActivity":"2026-01-01T00:00:00Z"},"tester":{"status":"idle","lastActivity":"2026-01-01T00:00:00Z"}}`,
	`{"engineer":{"status":"working","issue":4,"lastActivity":"2026-01-01T00:00:01Z"},"other":{"status":"busy","n":1}}`,
	`{"engineer":{},"other":{"status":"busy","n":{"deep":[1,2]},"<&>":"<&>"}}`,
	`{"apiVersion":"reconcile.dev/v1alpha1","kind":"DAG","metadata":{"name":"x"},"status":{"phase":"Failed","conditions":[],"history":[],"nodes":{"a":{"state":"Failed"}},"progress":{"done":0,"total":1}}}`,
	`{"apiVersion":"reconcile.dev/v1alpha1","kind":"DAG","metadata":{"name":"x"},"status":{"phase":"Running","conditions":[],"history":[],"nodes":{"a":null},"progress":{"done":0,"total":1},"new":1}}`,
	`{"apiVersion":"reconcile.dev/v1alpha1","kind":"DAG","metadata":{"name":"x"},"status":null}`,
	`{"apiVersion":"reconcile.dev/v9","kind":"DAG","metadata":{"name":"x"},"status":{"a":1}}`,
	`{"version":1,"repo":"o/r","issue":42,"comments":[{"key":"status/dag/x","id":7,"digest":"sha256:1"},{"key":"a","digest":"sha256:2","intended":"2026-01-01T00:00:00Z"}],"labels":["b","a"],"handled":[{"comment":3,"digest":"sha256:1","outcome":"accepted"}]}`,
	`{"version":1,"repo":"o/r","issue":42,"made":"dag/x","comments":[{"key":"a","id":8,"digest":"sha256:2"}],"labels":[],"read":{"since":"2026-01-01T00:00:00.5Z"},"handled":null}`,
	`{"version":1,"repo":"o/r","issue":42,"comments":[{"key":"a","id":9,"digest":"sha256:3"}],"handled":[{"comment":12,"digest":"","outcome":"refused","reply":"no"}],"x":1}`,
	`{"version":1,"repo":"o/s","issue":42,"comments":[{"key":"a","id":9},{"key":"a"}]}`,
	`{"version":1,"repo":"o/r","object":"dag/x","issue":5}`,
	`{"version":1,"repo":"o/r","object":"dag/x","intended":"2026-01-01T00:00:00Z"}`,
	`{"version":1,"keys":["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]}`,
	`{"version":1,"keys":["bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","x"]}`,
	`{"version":1,"keys":["bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"]}`,
	`{"kind":5}`, `{}`, `[]`, `null`, `1`, `"x"`, `{"a":{"b":1,"b":2}}`, `{"a":[{"b":1}]}`, `{"a":1}`,
}

func TestMergeOfAnyFilesIsAJoin(t *testing.T) {
	c := chance{rand.New(rand.NewPCG(1, 2))}
	any := func() []byte { return []byte(corpus[c.IntN(len(corpus))]) }
	for range mutants.Size(200, 500, 2000) {
		laws(t, any(), any(), any(), any())
	}
	for i, base := range corpus { // neighbours are of one class
		for j := range 4 {
			near := func(n int) []byte { return []byte(corpus[min(i+n, len(corpus)-1)]) }
			laws(t, []byte(base), near(j%2), near(1), near(2))
		}
	}
}

func FuzzFiles(f *testing.F) {
	for i, s := range corpus {
		f.Add([]byte(s), []byte(corpus[(i+1)%len(corpus)]), []byte(corpus[(i+2)%len(corpus)]))
	}
	f.Fuzz(func(t *testing.T, base, a, b []byte) {
		ab, err := merge.Files(controllers.Schemas(), base, a, b)
		ba, err2 := merge.Files(controllers.Schemas(), base, b, a)
		if (err == nil) != (err2 == nil) || string(ab) != string(ba) {
			t.Fatalf("%q and %q are not the same: %v, %v", ab, ba, err, err2)
		}
		if err != nil {
			if !errors.Is(err, merge.ErrNoJSON) {
				t.Fatal(err)
			}
			return
		}
		if again := join(t, base, ab, a); string(again) != string(ab) && string(a) != string(b) {
			t.Fatalf("%q, then %q", ab, again)
		}
	})
}

const dagForm = `{"apiVersion":"reconcile.dev/v1alpha1","kind":"DAG","metadata":{"name":"x"},"status":{%s}}`

func dag(fields string) []byte { return fmt.Appendf(nil, dagForm, fields) }

func TestWhatOneSideChangedWins(t *testing.T) {
	const node = `"nodes":{"a":{"state":"%s","startedAt":"2026-01-01T00:00:0%dZ"},"b":{"state":"%s","startedAt":"2026-01-01T00:00:0%dZ"}}`
	nodes := func(a string, at int, b string, bt int) []byte { return dag(fmt.Sprintf(node, a, at, b, bt)) }
	got := string(join(t, nodes("Running", 2, "Running", 2), nodes("Succeeded", 2, "Running", 2), nodes("Running", 2, "Failed", 1)))
	for _, want := range []string{`"a": {
        "state": "Succeeded"`, `"b": {
        "state": "Failed"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if got := string(join(t, nodes("Running", 2, "Running", 2), nodes("Failed", 3, "Running", 2), nodes("Succeeded", 4, "Running", 2))); !strings.Contains(got, "Succeeded") {
		t.Errorf("the later state of a node is lost:\n%s", got)
	}
	removed := dag(`"nodes":{"a":{"state":"Running","startedAt":"2026-01-01T00:00:02Z"}}`)
	if got := string(join(t, nodes("Running", 2, "Running", 2), removed, nodes("Failed", 3, "Running", 2))); strings.Contains(got, `"b"`) ||
		!strings.Contains(got, "Failed") {
		t.Errorf("one removed b, one changed a:\n%s", got)
	}
}

func TestConditionsAndHistoriesAreUnited(t *testing.T) {
	const side = `"conditions":[{"type":"Ready","status":"%s","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:0%dZ"}],"history":[%s]`
	entry := func(n int) string {
		return fmt.Sprintf(`{"at":"2026-01-01T00:00:%02dZ","reason":"N%d","message":""}`, n, n)
	}
	var long []string
	for n := 10; n < 29; n++ {
		long = append(long, entry(n))
	}
	got := string(join(t, nil, dag(fmt.Sprintf(side, "True", 1, strings.Join(append(long, entry(40)), ","))),
		dag(fmt.Sprintf(side, "False", 2, entry(5)+","+entry(30)))))
	if !strings.Contains(got, `"status": "False"`) || strings.Count(got, `"reason": "N`) != schemas.HistoryLimit ||
		strings.Contains(got, `"N5"`) || strings.Contains(got, `"N10"`) || strings.Index(got, `"N30"`) > strings.Index(got, `"N40"`) {
		t.Errorf("got\n%s", got)
	}
}

func TestOnlyTextThatIsNoJSONIsRefused(t *testing.T) {
	good := dag(`"phase":"Ready","conditions":[],"history":[],"progress":{"done":1,"total":1}`)
	for _, bad := range []string{"", "<<<<<<< HEAD\n", "{", "\xff", "{}{}", strings.Repeat("[", 100_000)} {
		one, other := join(t, good, []byte(bad), good), join(t, nil, good, []byte(bad))
		if string(one) != string(other) || !strings.Contains(string(one), `"phase": "Ready"`) {
			t.Errorf("beside %.10q: %s", bad, one)
		}
		if _, err := merge.Files(controllers.Schemas(), good, []byte(bad), []byte("{")); !errors.Is(err, merge.ErrNoJSON) {
			t.Errorf("%.10q: %v", bad, err)
		}
	}
}

func TestWhatIsKnownOfGitHubIsKept(t *testing.T) {
	const side = `{"version":1,"repo":"o/r","issue":42,"comments":[%s],"labels":[%s],"handled":[%s]}`
	base := fmt.Sprintf(side, `{"key":"a","digest":"sha256:1","intended":"2026-01-01T00:00:00Z"}`, `"old"`, ``)
	one := fmt.Sprintf(side, `{"key":"a","id":5,"digest":"sha256:1"}`, `"new"`, `{"comment":9,"digest":"d","outcome":"accepted"}`)
	two := fmt.Sprintf(side, `{"key":"a","digest":"sha256:1","intended":"2026-02-01T00:00:00Z"},{"key":"b","id":6,"digest":"sha256:2"}`,
		`"old"`, `{"comment":10,"digest":"d","outcome":"refused"}`)
	got := strings.Join(strings.Fields(string(join(t, []byte(base), []byte(one), []byte(two)))), "")
	for _, want := range []string{`{"key":"a","id":5,"digest":"sha256:1"},{"key":"b","id":6,`, `"labels":["new"]`, `"comment":9,`, `"comment":10,`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	object := `{"version":1,"repo":"o/r","object":"dag/x",%s}`
	got = string(join(t, nil, fmt.Appendf(nil, object, `"intended":"2026-01-01T00:00:00Z"`), fmt.Appendf(nil, object, `"issue":7`)))
	if !strings.Contains(got, `"issue": 7`) || strings.Contains(got, "intended") {
		t.Errorf("got %s", got)
	}
	keys := func(c string) []byte { return fmt.Appendf(nil, `{"version":1,"keys":["%s"]}`, strings.Repeat(c, 64)) }
	fresh := func(c string) []byte {
		return fmt.Appendf(nil, `{"version":1,"keys":["%s"],"fresh":true}`, strings.Repeat(c, 64))
	}
	if got := string(join(t, nil, fresh("b"), fresh("a"))); !strings.Contains(got, `"fresh": true`) {
		t.Errorf("neither side has seen everything: %s", got)
	}
	if got := string(join(t, nil, fresh("b"), keys("a"))); strings.Contains(got, "fresh") {
		t.Errorf("one side has seen everything: %s", got)
	}
	if got := string(join(t, nil, keys("b"), keys("a"))); strings.Index(got, "aaaa") > strings.Index(got, "bbbb") || !strings.Contains(got, "bbbb") {
		t.Errorf("got %s", got)
	}
}
