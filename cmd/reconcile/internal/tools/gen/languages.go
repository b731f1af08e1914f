package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-enry/go-enry/v2"
	"github.com/go-enry/go-enry/v2/data"
	"sigs.k8s.io/yaml"

	"reconcile.dev/reconcile/controllers/tools"
)

// languageTable is what controllers/tools/languages.json has: GitHub's knowledge of languages, without the texts and patterns that would make
// every start of the program slower. Names are in lower case.
type languageTable struct {
	Extensions map[string][]string `json:"extensions"` // the likely ones first
	Filenames  map[string][]string `json:"filenames"`
	// Interpreters are the programs that run scripts.
	Interpreters map[string][]string `json:"interpreters"`
	Vendored     []string            `json:"vendored"` // patterns of paths whose files others wrote
}

// languageFile generates the table of languages from go-enry.
func languageFile() (file, error) {
	t := languageTable{languagesOf(data.LanguagesByExtension), languagesOf(data.LanguagesByFilename), languagesOf(data.LanguagesByInterpreter), nil}
	for _, p := range data.VendorMatchers {
		t.Vendored = append(t.Vendored, p.String())
	}
	slices.Sort(t.Vendored)
	return tableFile("languages", t)
}

// tableFile is a table of package tools as JSON.
func tableFile(name string, t any) (file, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(t)
	return file{"controllers/tools/" + name + ".json", b.Bytes()}, err
}

// catalogFile writes the catalogue of tools as JSON, which has only the fields that package tools reads.
func catalogFile(root string) (file, error) {
	const from = "controllers/tools/catalog.yaml"
	text, err := os.ReadFile(filepath.Join(root, from))
	if err != nil {
		return file{}, err
	}
	var all []tools.Tool
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return file{}, fmt.Errorf("%s: %w", from, err)
	}
	return tableFile("catalog", all)
}

// languagesOf keeps languages for programming and markup, and YAML.
func languagesOf(all map[string][]string) map[string][]string {
	out := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		for _, l := range all[key] {
			if kind := enry.GetLanguageType(l); kind == enry.Programming || kind == enry.Markup || l == "YAML" {
				out[key] = append(out[key], strings.ToLower(l))
			}
		}
	}
	return out
}
