package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-enry/go-enry/v2"
	"github.com/go-enry/go-enry/v2/data"
	"sigs.k8s.io/yaml"

	"reconcile.dev/reconcile/controllers/tools"
)

// languageFile generates the table of languages from go-enry: GitHub's knowledge of languages, without the texts and patterns that would make
// every start of the program slower, and only for the languages of the catalogue.
func languageFile(catalog []tools.Tool) file {
	known := map[string]bool{}
	for _, t := range catalog {
		for _, l := range t.Languages {
			known[l] = true
		}
	}
	var lines []string
	for about, all := range map[string]map[string][]string{"extension": data.LanguagesByExtension, "filename": data.LanguagesByFilename, "interpreter": data.LanguagesByInterpreter} {
		for name, languages := range all {
			if code := codeOf(languages); len(code) > 0 {
				lines = append(lines, about+"\t"+name+"\t"+strings.Join(inCatalog(code, known), ","))
			}
		}
	}
	folders, patterns := vendorFolders()
	for _, name := range folders {
		lines = append(lines, "folder\t"+name+"\t")
	}
	lines = append(lines, "pattern\t\t(?:"+strings.Join(patterns, ")|(?:")+")")
	slices.Sort(lines)
	return file{"controllers/tools/languages.txt", []byte(strings.Join(lines, "\n") + "\n")}
}

// codeOf keeps languages for programming and markup, and YAML, the likely ones first, in lower case.
func codeOf(languages []string) (out []string) {
	for _, l := range languages {
		if kind := enry.GetLanguageType(l); kind == enry.Programming || kind == enry.Markup || l == "YAML" {
			out = append(out, strings.ToLower(l))
		}
	}
	return out
}

// inCatalog keeps languages of the catalogue, in its words.
func inCatalog(languages []string, known map[string]bool) (out []string) {
	for _, l := range languages {
		l = cmp.Or(map[string]string{"shell": "bash", "tsx": "typescript", "hcl": "terraform"}[l], l)
		if known[l] && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// vendorFolders returns the names of folders whose files others wrote, and the patterns of paths of further ones.
func vendorFolders() (folders, patterns []string) {
	folders = []string{"testdata", "CMakeFiles"}
	name := regexp.MustCompile(`^[\w.-]+$`)
	for _, m := range data.VendorMatchers {
		p := m.String()
		rest, inAny := strings.CutPrefix(p, "(^|/)")
		rest, isFolder := strings.CutSuffix(rest, "/")
		if plain := strings.ReplaceAll(rest, `\.`, "."); isFolder && inAny && name.MatchString(plain) {
			folders = append(folders, plain)
		} else if isFolder {
			patterns = append(patterns, p)
		}
	}
	slices.Sort(patterns)
	return folders, patterns
}

// catalogFile returns the catalogue of tools, and the file that has it as JSON, with only the fields that package tools reads.
func catalogFile(root string) (all []tools.Tool, out file, err error) {
	const from = "controllers/tools/catalog"
	text, err := os.ReadFile(filepath.Join(root, from+".yaml"))
	if err == nil {
		err = yaml.UnmarshalStrict(text, &all)
	}
	if err != nil {
		return nil, file{}, fmt.Errorf("%s: %w", from, err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err = e.Encode(all)
	return all, file{from + ".json", b.Bytes()}, err
}

// formatsFile writes the declared formats as JSON.
func formatsFile(root string) (file, error) {
	const from = "controllers/checks/formats/declared"
	text, err := os.ReadFile(filepath.Join(root, from+".yaml"))
	if err != nil {
		return file{}, err
	}
	var b bytes.Buffer
	if text, err = yaml.YAMLToJSONStrict(text); err == nil {
		err = json.Indent(&b, text, "", " ")
	}
	if err != nil {
		return file{}, fmt.Errorf("%s: %w", from, err)
	}
	return file{from + ".json", append(b.Bytes(), '\n')}, nil
}
