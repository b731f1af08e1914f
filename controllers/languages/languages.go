// Package languages names the languages of source files by the extensions of their names.
package languages

import (
	"path"
	"strings"
)

// The languages whose files are read in more than lines.
const (
	Go         = "go"
	TypeScript = "typescript"
	JavaScript = "javascript"
	Python     = "python"
	Rust       = "rust"
	Java       = "java"
	C          = "c"
	CPP        = "cpp"
	Shell      = "shell"
	Ruby       = "ruby"
)

var byExtension = map[string]string{
	"go": Go, "ts": TypeScript, "tsx": TypeScript, "mts": TypeScript, "cts": TypeScript, "js": JavaScript, "jsx": JavaScript,
	"mjs": JavaScript, "cjs": JavaScript, "py": Python, "pyi": Python, "rs": Rust, "java": Java, "c": C, "h": C, "cc": CPP, "cpp": CPP,
	"cxx": CPP, "hpp": CPP, "hh": CPP, "sh": Shell, "bash": Shell, "rb": Ruby, "rake": Ruby, "gemspec": Ruby,
	"cs": "csharp", "kt": "kotlin", "kts": "kotlin", "swift": "swift", "php": "php", "scala": "scala", "lua": "lua", "pl": "perl",
	"pm": "perl", "ex": "elixir", "exs": "elixir", "erl": "erlang", "hs": "haskell", "ml": "ocaml", "mli": "ocaml", "dart": "dart",
	"zig": "zig", "clj": "clojure", "r": "r", "jl": "julia", "sql": "sql", "css": "css", "scss": "scss", "html": "html", "vue": "vue",
	"svelte": "svelte", "json": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "xml": "xml", "md": "markdown", "proto": "protobuf",
	"tf": "terraform", "nix": "nix", "mk": "makefile",
}

var byName = map[string]string{
	"Makefile": "makefile", "Dockerfile": "dockerfile", "Gemfile": Ruby, "Rakefile": Ruby, "CMakeLists.txt": "cmake", "Jenkinsfile": "groovy",
}

// Of returns the language of a file by its path, in lower case; "" for one that is not known.
func Of(p string) string {
	name := path.Base(p)
	if l, ok := byName[name]; ok {
		return l
	}
	return byExtension[strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))]
}

var otherNames = map[string]string{
	"golang": Go, "ts": TypeScript, "js": JavaScript, "py": Python, "rs": Rust, "c++": CPP, "cxx": CPP, "sh": Shell, "bash": Shell, "rb": Ruby,
	"c#": "csharp",
}

// Named returns the language that a person names, such as TypeScript, ts or C++; ok is false for one that is not known.
func Named(word string) (language string, ok bool) {
	word = strings.ToLower(word)
	if l, known := otherNames[word]; known {
		return l, true
	}
	for _, l := range byExtension {
		if l == word {
			return l, true
		}
	}
	for _, l := range byName {
		if l == word {
			return l, true
		}
	}
	return "", false
}
