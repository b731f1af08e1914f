package style

import (
	"strings"
	"testing"
)

// TestInfer goes through the languages: what a small file of each shows.
func TestInfer(t *testing.T) {
	for file, c := range map[string]struct{ text, want string }{
		"a.rs": {"use std::io;\nuse std::fmt;\n\nuse other::x;\nconst MAX_SIZE: u32 = 1;\nstruct FileReader<'a> { a: &'a str }\nfn read_all() {\n    let one_two = f(\n        1,\n    );\n}\n",
			"variables=snake_case functions=snake_case types=PascalCase constants=SCREAMING_SNAKE indentStyle=spaces indentSize=4 trailingComma=yes imports=grouped"},
		"A.java": {"import a.B;\nimport a.C;\nimport a.D;\npublic class FileReader {\n  static final int MAX_SIZE = 1;\n  public void readAll() {\n    int oneTwo = 1;\n    if (oneTwo > 1) {\n      return;\n    }\n  }\n}\n",
			"variables=camelCase functions=camelCase types=PascalCase constants=SCREAMING_SNAKE indentStyle=spaces indentSize=2 errorHandling=early_return imports=ungrouped"},
		"a.c": {"#define MAX_SIZE 10\nstruct file_reader {\n\tint a;\n};\nstatic int read_all(void)\n{\n\tint one_two = 1;\n\treturn one_two;\n}\n",
			"variables=snake_case functions=snake_case types=snake_case constants=SCREAMING_SNAKE indentStyle=tabs"},
		"a.sh": {"read_all() {\n  local one_two='x'\n  if test; then\n    return\n  fi\n}\nreadonly MAX_SIZE=1\n",
			"variables=snake_case functions=snake_case constants=SCREAMING_SNAKE indentStyle=spaces indentSize=2 quoteStyle=single errorHandling=early_return"},
		"b.sh": {"for x in a; do\n  cat <<E\nbadName='y'\nE\n  set_it() { one_two=\"x\"; three_four='y z'; echo \"$x's\" \"p\"; }\n  if a; then\n    b\n    exit 1\n  fi\ndone\ndeclare -r MAX_SIZE=1\n",
			"variables=snake_case functions=snake_case constants=SCREAMING_SNAKE indentStyle=spaces indentSize=2 quoteStyle=double errorHandling=early_return"},
		"a.go": {"package a\n\nimport (\n\t\"a\"\n\n\t// c\n\t\"b\"\n\t\"c\"\n)\n\nconst (\n\tmaxSize = 1 << iota\n\tminSize\n)\n\nconst text = `\nvar bad_name = 1\n`\n\ntype (\n\tfileReader struct{}\n)\n\n" +
			"func (fileReader) readAll() (err error) {\n\tfor aKey, aValue := range m {\n\t\tif aKey != aValue {\n\t\t\tlog(aKey)\n\t\t\treturn nil\n\t\t}\n\t}\n}\n",
			"variables=camelCase (PascalCase if exported) functions=camelCase (PascalCase if exported) types=camelCase (PascalCase if exported) constants=camelCase (PascalCase if exported) indentStyle=tabs errorHandling=early_return imports=grouped"},
		"bad.go": {"package a\n\nfunc readAll( {\n\tx :=\n", "functions=camelCase (PascalCase if exported) indentStyle=tabs"},
		"zsh.sh": {"read_all() {\n  print ${${x}\n}\n", "functions=snake_case indentStyle=spaces indentSize=2"},
		"a.rb": {"class FileReader\n  MAX_SIZE = 1\n  def read_all\n    one_two = 'x'\n  end\nend\n",
			"variables=snake_case functions=snake_case types=PascalCase constants=SCREAMING_SNAKE indentStyle=spaces indentSize=2 quoteStyle=single"},
		"a.lua": {"function f()\n  return \"x\"\nend\n", "indentStyle=spaces indentSize=2 quoteStyle=double"},
	} {
		l := map[string]string{"a.rs": "rust", "A.java": "java", "a.c": "c", "a.sh": "shell", "b.sh": "shell", "zsh.sh": "shell", "a.go": "go", "bad.go": "go", "a.rb": "ruby", "a.lua": "lua"}[file]
		s := Infer(l, []File{{Path: file, Text: []byte(c.text)}, {Path: "other.txt", Text: []byte("x")}}, nil)
		if parsed := s.Parsed == 1; parsed != (l == "go" || l == "shell" && file != "zsh.sh") {
			t.Errorf("%s: parsed %v", file, parsed)
		}
		var got []string
		for _, r := range s.Rows() {
			got = append(got, r.Name+"="+r.Value)
			if !strings.HasPrefix(r.Example, file+":") {
				t.Errorf("%s: %s has the example %q", file, r.Name, r.Example)
			}
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", file, g, c.want)
		}
	}
}

// Deep nesting fills the stack of neither parser; what could is not parsed.
func TestNesting(t *testing.T) {
	for _, level := range []string{"$(", "(", "{ ", "if ", "f()("} {
		look("shell", []byte(strings.Repeat(level, largestScript/len(level))))
	}
	look("go", []byte("package a\nvar _ = "+strings.Repeat("(", 1<<20)))
	if _, parsed := look("shell", []byte(strings.Repeat("true\n", largestScript/5))); !parsed {
		t.Error("a large script is not parsed")
	}
	if _, parsed := look("shell", []byte(strings.Repeat("true\n", largestScript/5+1))); parsed {
		t.Error("a script of any size is parsed")
	}
}

func FuzzInfer(f *testing.F) {
	f.Add("python", "a = '''x\n'y' # \"\n")
	f.Fuzz(func(t *testing.T, language, text string) {
		for p, l := range map[string]string{"a.py": "python", "a.go": "go", "a.sh": "shell", "a.ts": "typescript", "a.c": "c", "a.lua": "lua"} {
			s := Infer(l, []File{{Path: p, Text: []byte(text)}}, nil)
			for _, r := range s.Rows() {
				if r.Share < 0 || r.Share > 1 || r.Samples == 0 && r.Declared == "" {
					t.Errorf("%+v", r)
				}
			}
		}
		Settings([]File{{Path: language, Text: []byte(text)}})
	})
}
