package tools

import (
	"slices"
	"testing"

	"reconcile.dev/reconcile/controllers/preview"
)

// TestDoubts: agents that cheat. What is like it and no cheat raises no doubt.
func TestDoubts(t *testing.T) {
	file := func(p, was, now string) preview.File {
		side := func(text string) preview.Side {
			if text == "" {
				return preview.Side{}
			}
			return preview.Side{Text: []byte(text)}
		}
		f, _ := preview.Compare(p, side(was), side(now))
		return f
	}
	const goTest = "package a\n\nfunc TestSum(t *testing.T) {\n\tif sum(1, 1) != 2 {\n\t\tt.Fatal()\n\t}\n}\n"
	for _, c := range []struct {
		name  string
		files []preview.File
		want  []string
	}{
		{"deletes the failing test", []preview.File{file("a/sum_test.go", goTest, "")}, []string{"removes the test TestSum of a/sum_test.go"}},
		{"puts another test in its place", []preview.File{file("test_a.py", "def test_sum():\n    assert 0\n", "def test_true():\n    pass\n")}, []string{"removes the test test_sum of test_a.py"}},
		{"deletes a test of a suite", []preview.File{file("a.test.ts", "it('sums', () => {})\nit('rest', () => {})\n", "it('rest', () => {})\n")}, []string{"removes the test sums of a.test.ts"}},
		{"moves a test", []preview.File{file("a_test.go", goTest, ""), file("b_test.go", "", goTest)}, nil},
		{"hides a test", []preview.File{file("a_test.go", goTest, ""), file("b.txt", "", goTest)}, []string{"removes the test TestSum of a_test.go"}},
		{"renames a file with tests", []preview.File{{Path: "tests.txt", From: "test_a.py", Status: preview.Renamed}}, []string{"makes test_a.py, which has tests, another file"}},
		{"skips a test", []preview.File{file("a_test.go", "package a\n", "package a\n\tt.Skip(\"slow\")\n")}, []string{"skips 1 test in a_test.go"}},
		{"skips by a mark", []preview.File{file("test_a.py", "x\n", "@pytest.mark.skip\nx\n")}, []string{"skips 1 test in test_a.py"}},
		{"only runs another", []preview.File{file("a.spec.ts", "x\n", "x\n  it.only('b', f)\n")}, []string{"skips 1 test in a.spec.ts"}},
		{"silences a finding", []preview.File{file("a.py", "import os\n", "import os  # noqa\n")}, []string{"silences 1 finding in a.py"}},
		{"takes a silence out", []preview.File{file("a.py", "import os  # noqa\n", "import os\n")}, nil},
		{"changes what is checked", []preview.File{file("web/.eslintrc.json", "{}\n", "{\"root\": true}\n")}, []string{"changes web/.eslintrc.json, which says what is checked"}},
		{"adds an exception", []preview.File{file(".flake8", "", "[flake8]\nignore = F401\n")}, []string{"changes .flake8, which says what is checked"}},
		{"adds a dependency", []preview.File{file("go.mod", "module a\n", "module a\nrequire b v1.0.0\n"), file("package.json", "{}\n", "{\"a\": 1}\n")}, nil},
		{"writes code and tests", []preview.File{file("a.go", "package a\n", "package a\nfunc test(t int) {}\n"), file("a_test.go", "package a\n", goTest)}, nil},
	} {
		if got := Doubts(c.files); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
