// Command gitleaks writes the reference data for package secrets: the texts with which the authors of gitleaks test
// their rules, and the findings of the library in each. It is a separate module, because the library must not be a
// dependency of reconcile. Run it in its folder when the version of gitleaks changes:
//
//	go run . ../../../../../../schemas/secrets/testdata/gitleaks.jsonl.gz
//
// The file is compressed because it is full of text that looks like secrets, which secret scanners and push protection
// would report. Some texts hold random characters, so that each run writes another file.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zricethezav/gitleaks/v8/detect"
)

const module = "github.com/zricethezav/gitleaks/v8"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gitleaks:", err)
		os.Exit(1)
	}
}

// testCase is one line of the file.
type testCase struct {
	Rule   string `json:"rule"`           // that the text tests
	Path   string `json:"path,omitempty"` // of the file that it is from
	Text   string `json:"text"`
	Secret bool   `json:"secret"` // whether the rule is to find something
	// Found is what all rules of the library find together.
	Found []found `json:"found,omitempty"`
}

type found struct {
	Rule   string `json:"rule"`
	Secret string `json:"secret"`
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("say which file to write")
	}
	cases, err := collect()
	if err != nil {
		return err
	}
	if err := search(cases); err != nil {
		return err
	}
	f, err := os.Create(args[0])
	if err != nil {
		return err
	}
	if err := write(f, cases); err != nil {
		return err
	}
	return f.Close()
}

// collect runs the program that makes gitleaks' configuration, in a copy in which the test function of a rule is
// replaced by one that records its arguments.
func collect() ([]testCase, error) {
	dir, err := output(".", "go", "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "gitleaks")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if err := os.CopyFS(temp, os.DirFS(strings.TrimSpace(string(dir)))); err != nil {
		return nil, err
	}
	validate, err := os.ReadFile("validate.go.txt")
	if err != nil {
		return nil, err
	}
	generator := filepath.Join(temp, "cmd", "generate", "config")
	test := filepath.Join(generator, "utils", "validate.go")
	if err := errors.Join(os.Remove(test), os.WriteFile(test, validate, 0o644)); err != nil {
		return nil, err
	}
	out, err := output(generator, "go", "run", "-mod=mod", ".", filepath.Join(temp, "gitleaks.toml"))
	if err != nil {
		return nil, err
	}
	return parse(out)
}

func output(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	return cmd.Output()
}

func parse(out []byte) ([]testCase, error) {
	var cases []testCase
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var c testCase
		if err := d.Decode(&c); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	key := func(a, b testCase) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Path, b.Path))
	}
	slices.SortFunc(cases, key)
	return slices.CompactFunc(cases, func(a, b testCase) bool { return key(a, b) == 0 }), nil
}

// search adds what the library finds with its own configuration.
func search(cases []testCase) error {
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		return err
	}
	for i := range cases {
		c := &cases[i]
		for _, f := range d.Detect(detect.Fragment{Raw: c.Text, FilePath: c.Path}) {
			c.Found = append(c.Found, found{f.RuleID, f.Secret})
		}
		slices.SortFunc(c.Found, func(a, b found) int {
			return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Secret, b.Secret))
		})
	}
	return nil
}

func write(w io.Writer, cases []testCase) error {
	packed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(packed)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	for _, c := range cases {
		if err := e.Encode(c); err != nil {
			return err
		}
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return packed.Close()
}
