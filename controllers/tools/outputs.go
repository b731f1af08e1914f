package tools

import (
	"path"
	"strings"
)

// Outputs tells the files of a project that its tools left there, by their names and by those of all files.
func Outputs(files []string) func(file string) bool {
	anywhere := map[string]bool{}
	beside := map[string]map[string]bool{} // what is left, by the pattern for the file beside it
	for _, t := range Catalog() {
		for pattern, left := range t.Leaves {
			to := anywhere
			if pattern != "" {
				if to = beside[pattern]; to == nil {
					to = map[string]bool{}
					beside[pattern] = to
				}
			}
			for _, l := range left {
				to[l] = true
			}
		}
	}
	places := map[string]bool{}
	for _, f := range files {
		dir, name := path.Split(f)
		for pattern, left := range beside {
			at, is := dir, matches(pattern, name)
			if strings.HasSuffix(pattern, "/") {
				var before string
				before, _, is = strings.Cut("/"+f, "/"+pattern)
				at = strings.TrimPrefix(before+"/", "/")
			}
			if is {
				for l := range left {
					places[at+l] = true
				}
			}
		}
	}
	return func(file string) bool {
		for at := range anywhere {
			if folder, isFolder := strings.CutSuffix(at, "/"); isFolder && strings.Contains("/"+file, "/"+folder+"/") || matches(at, path.Base(file)) {
				return true
			}
		}
		for i, r := range file {
			if r == '/' && places[file[:i+1]] {
				return true
			}
		}
		return places[file]
	}
}
