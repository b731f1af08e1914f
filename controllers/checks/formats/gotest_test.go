package formats

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
)

const goEvents = `{"Action":"start","Package":"example.org/a"}
{"Action":"run","Package":"example.org/a","Test":"TestA"}
{"Action":"output","Package":"example.org/a","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"run","Package":"example.org/a","Test":"TestA/one"}
{"Action":"output","Package":"example.org/a","Test":"TestA/one","Output":"    a_test.go:7: got 3, want 4\n"}
{"Action":"output","Package":"example.org/a","Test":"TestA/one","Output":"    --- FAIL: TestA/one (0.00s)\n"}
{"Action":"fail","Package":"example.org/a","Test":"TestA/one","Elapsed":0.25}
{"Action":"fail","Package":"example.org/a","Test":"TestA","Elapsed":0.5}
{"Action":"run","Package":"example.org/a","Test":"TestB"}
{"Action":"output","Package":"example.org/a","Test":"TestB","Output":"    a_test.go:12: not today\n"}
{"Action":"skip","Package":"example.org/a","Test":"TestB","Elapsed":0}
{"Action":"run","Package":"example.org/a","Test":"TestC"}
{"Action":"pass","Package":"example.org/a","Test":"TestC","Elapsed":0}
{"Action":"fail","Package":"example.org/a","Elapsed":0.6}
`

func TestGoTest(t *testing.T) {
	o := Options{Root: "/p", Module: "example.org"}
	r, err := Read("go-test-json", []byte(goEvents), o)
	if err != nil || !r.Complete || r.Ignored != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	c := checks.Count(r.Tests)
	if c.Failed != 1 || c.Skipped != 1 || c.Passed != 1 {
		t.Errorf("%+v", r.Tests)
	}
	f := r.Tests[slices.IndexFunc(r.Tests, func(t checks.Test) bool { return t.Outcome == checks.TestFailed })]
	if f.Name != "TestA/one" || f.File != "a/a_test.go" || f.Line != 7 || f.Expected != "4" || f.Actual != "3" || f.Message != "got 3, want 4" {
		t.Errorf("%+v", f)
	}
	cut := goEvents[:strings.LastIndex(goEvents, `{"Action":"fail","Package":"example.org/a","Elapsed":0.6}`)]
	if r, _ = Read("go-test-json", []byte(cut), o); r.Complete {
		t.Error("complete without the end of a package")
	}
	for _, bad := range []string{"", "FAIL\n", "<html></html>"} {
		if _, err := Read("go-test-json", []byte(bad), o); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestGoTestPanicsAndBuilds(t *testing.T) {
	events := `{"Action":"start","Package":"m/p"}
{"Action":"run","Package":"m/p","Test":"TestP"}
{"Action":"output","Package":"m/p","Test":"TestP","Output":"panic: boom\n"}
{"Action":"output","Package":"m/p","Test":"TestP","Output":"\ngoroutine 7 [running]:\n"}
{"Action":"fail","Package":"m/p","Elapsed":0.1}
{"ImportPath":"m/q [m/q.test]","Action":"build-output","Output":"# m/q [m/q.test]\n"}
{"ImportPath":"m/q [m/q.test]","Action":"build-output","Output":"q/q_test.go:3:9: undefined: x\n"}
{"ImportPath":"m/q [m/q.test]","Action":"build-fail"}
{"Action":"start","Package":"m/q"}
{"Action":"output","Package":"m/q","Output":"FAIL\tm/q [build failed]\n"}
{"Action":"fail","Package":"m/q","Elapsed":0,"FailedBuild":"m/q [m/q.test]"}
{"Action":"start","Package":"m/none"}
{"Action":"output","Package":"m/none","Output":"?   \tm/none\t[no test files]\n"}
{"Action":"skip","Package":"m/none","Elapsed":0}
`
	r, err := Read("go-test-json", []byte(events), Options{Root: "/p", Module: "m"})
	if err != nil || !r.Complete || len(r.Tests) != 1 || r.Tests[0].Outcome != checks.TestFailed || r.Tests[0].Message != "panic: boom" {
		t.Fatalf("%+v, %v", r, err)
	}
	if !slices.Equal(r.Broken, []string{"m/q"}) || len(r.Findings) != 1 || r.Findings[0].File != "q/q_test.go" || r.Findings[0].Line != 3 {
		t.Errorf("%v %+v", r.Broken, r.Findings)
	}
}

// 100,000 events.
func BenchmarkGoTestJSON(b *testing.B) {
	var text strings.Builder
	for i := 0; text.Len() == 0 || i < 25_000; i++ {
		if i%1000 == 0 {
			fmt.Fprintf(&text, `{"Time":"2026-11-28T10:00:00.123456789Z","Action":"start","Package":"example.org/p%d"}`+"\n", i/1000)
		}
		for _, what := range []string{`"run"`, `"output","Output":"=== RUN   TestX\n"`, `"output","Output":"    x_test.go:10: some words\n"`, `"pass","Elapsed":0.01`} {
			fmt.Fprintf(&text, `{"Time":"2026-11-28T10:00:00.123456789Z","Package":"example.org/p%d","Test":"TestX%d","Action":%s}`+"\n", i/1000, i, what)
		}
		if i%1000 == 999 {
			fmt.Fprintf(&text, `{"Action":"pass","Package":"example.org/p%d","Elapsed":1}`+"\n", i/1000)
		}
	}
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r, err := Read("go-test-json", data, Options{})
		if err != nil || !r.Complete || len(r.Tests) != 25_000 {
			b.Fatal(err, r.Complete, len(r.Tests))
		}
	}
}
