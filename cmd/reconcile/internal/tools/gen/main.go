// Command gen writes the files that are generated from the Go types of package schemas: the published JSON Schemas
// (schemas/*.schema.json) and the field tables of docs/kinds/*.md; and the rules of package secrets, from those of
// gitleaks. It is run from the root of the repository:
//
//	go run ./cmd/reconcile/internal/tools/gen          write
//	go run ./cmd/reconcile/internal/tools/gen -check   fail if anything is out of date
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/controllers"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail if a generated file is out of date")
	root := flag.String("C", ".", "root of the repository")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run generates every file of the repository at root, and writes or compares it.
func run(root string, check bool) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	rules, err := gitleaksFiles(check)
	if err != nil && (!check || !errors.Is(err, errNoModule)) {
		return err
	}
	return apply(root, append(files, rules...), check) // without the module, its files cannot be compared
}

// apply writes the files that differ; with check it writes nothing and names them in an error.
func apply(root string, files []file, check bool) error {
	var stale []string
	for _, f := range files {
		old, err := os.ReadFile(filepath.Join(root, f.path))
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case err == nil && bytes.Equal(old, f.data):
			continue
		case check:
			stale = append(stale, f.path)
			continue
		}
		if err := os.WriteFile(filepath.Join(root, f.path), f.data, 0o644); err != nil {
			return err
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("out of date: %s; run go run ./cmd/reconcile/internal/tools/gen", strings.Join(stale, ", "))
	}
	return nil
}

type file struct {
	path string
	data []byte
}

// generate returns all generated files of the repository at root.
func generate(root string) ([]file, error) {
	r, err := reflector(filepath.Join(root, "schemas"))
	if err != nil {
		return nil, err
	}
	tools, catalog, err := catalogFile(root)
	if err != nil {
		return nil, err
	}
	formats, err := formatsFile(root)
	if err != nil {
		return nil, err
	}
	out := []file{languageFile(tools), catalog, formats}
	for _, k := range controllers.Schemas() {
		doc := document(r, k)
		b, err := encode(doc)
		if err != nil {
			return nil, err
		}
		out = append(out, file{"schemas/" + k.Singular() + ".schema.json", b})
		page, err := page(root, k, doc)
		if err != nil {
			return nil, err
		}
		out = append(out, page)
	}
	agents, err := agentsPage(root)
	if err != nil {
		return nil, err
	}
	out = append(out, agents)
	b, err := encode(workflowTOML(r))
	return append(out, file{"schemas/workflow.toml.schema.json", b}), err
}
