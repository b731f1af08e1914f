package main

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkFormat compares every Go file of the project with its formatted text; it needs no gofmt command.
func checkFormat(_ context.Context, c *checker) result {
	var text strings.Builder
	err := filepath.WalkDir(c.root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != c.root || d.Name() == "testdata"):
			return fs.SkipDir
		case !d.Type().IsRegular() || filepath.Ext(name) != ".go":
			return nil
		}
		if problem := unformatted(name); problem != "" {
			rel, _ := filepath.Rel(c.root, name)
			fmt.Fprintf(&text, "%s: %s\n", rel, problem)
		}
		return nil
	})
	if err != nil {
		fmt.Fprintln(&text, err)
	}
	if text.Len() > 0 {
		return failed(text.String())
	}
	return passed()
}

// unformatted returns the format error of a Go file; "" if it has none.
func unformatted(name string) string {
	is, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	should, err := format.Source(is)
	if err != nil {
		return err.Error()
	}
	if !bytes.Equal(is, should) {
		return "not formatted; run gofmt -w on it, or go fmt ./..."
	}
	return ""
}
