package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"reconcile.dev/reconcile/controllers/languages"
	"reconcile.dev/reconcile/controllers/manifests"
)

// File is a source file.
type File struct {
	Path string
	Text []byte
}

// imported is one import of a file.
type imported struct {
	ecosystem, path string
	line            int
	apis            map[string]int // uses by name
}

// importsOf finds the imports of a file.
func importsOf(f File) []imported {
	text := string(f.Text)
	switch languages.Of(f.Path) {
	case languages.Go:
		return goImports(f)
	case languages.TypeScript, languages.JavaScript:
		return scripts(text)
	case languages.Python:
		return pythonImports(text)
	case languages.Rust:
		return byLine(text, rustUse(), manifests.Cargo)
	case languages.Ruby:
		return byLine(text, rubyRequire(), manifests.Gem)
	case languages.Java, "kotlin":
		return javaImports(text)
	}
	return nil
}

func goImports(f File) (out []imported) {
	set := token.NewFileSet()
	file, _ := parser.ParseFile(set, f.Path, f.Text, parser.SkipObjectResolution) // as far as it can be parsed
	if file == nil {
		return nil
	}
	at := map[string]int{}
	for _, i := range file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		name := localName(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		at[name] = len(out)
		out = append(out, imported{manifests.Go, p, set.Position(i.Pos()).Line, map[string]int{}})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				if i, ok := at[x.Name]; ok {
					out[i].apis[x.Name+"."+s.Sel.Name]++
				}
			}
		}
		return true
	})
	return out
}

var majorVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v\d+$|\.v\d+$`) })

// localName guesses the name of a package by its import path.
func localName(p string) string {
	base := path.Base(p)
	if majorVersion().MatchString(base) && !strings.Contains(base, ".") {
		base = path.Base(path.Dir(p))
	}
	base = strings.TrimSuffix(strings.TrimPrefix(majorVersion().ReplaceAllString(base, ""), "go-"), "-go")
	return strings.ReplaceAll(base, "-", "")
}

var (
	rustUse     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*(?:pub\s+)?use\s+(?:::)?(\w+)|\b(\w+)::\w`) })
	rubyRequire = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*require\s*\(?["']([^"'./][^"']*)["']`) })
	jsImport    = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*(?:import|export)\s+(?:type\s+)?([^;'"]*?)\s*from\s*["']([^"']+)["']|^\s*import\s*["']([^"']+)["']|(?:(?:const|let|var)\s+([\w{},: ]+?)\s*=\s*)?(?:\brequire|\bimport)\(\s*["']([^"']+)["']\s*\)`)
	})
	pyImport = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[ \t]*import[ \t]+([^\n#;]+)|^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]+)`)
	})
	javaImport = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^import\s+(?:static\s+)?([\w.]+)`) })
)

func lineOf(text string, at int) int { return 1 + strings.Count(text[:at], "\n") }

// byLine finds imports that are one name. Each name counts once, at its first place.
func byLine(text string, pattern *regexp.Regexp, ecosystem string) (out []imported) {
	seen := map[string]bool{}
	for _, m := range pattern.FindAllStringSubmatchIndex(text, -1) {
		for g := 2; g < len(m); g += 2 {
			if m[g] < 0 {
				continue
			}
			if name := text[m[g]:m[g+1]]; !seen[name] {
				seen[name] = true
				out = append(out, imported{ecosystem, name, lineOf(text, m[g]), uses(text, name, "::")})
			}
		}
	}
	return out
}

// uses counts what is named after a name and a separator.
func uses(text, name, sep string) map[string]int {
	out := map[string]int{}
	pattern, err := regexp.Compile(`\b` + regexp.QuoteMeta(name) + regexp.QuoteMeta(sep) + `(\w+)`)
	if err != nil {
		return out
	}
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		out[m[1]]++
	}
	return out
}

// scripts finds the imports of JavaScript and TypeScript.
func scripts(text string) (out []imported) {
	for _, m := range jsImport().FindAllStringSubmatchIndex(text, -1) {
		group := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return text[m[2*i]:m[2*i+1]]
		}
		p, names := group(2)+group(3)+group(5), group(1)+group(4)
		if strings.HasPrefix(p, ".") || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "@/") || strings.HasPrefix(p, "~") || strings.HasPrefix(p, "#") {
			continue
		}
		at := m[0]
		for at < m[1] && (text[at] == '\n' || text[at] == ' ') {
			at++
		}
		out = append(out, imported{manifests.NPM, packageOf(p), lineOf(text, at), namesIn(text, names)})
	}
	return out
}

// packageOf is the package of a path of node: with its scope, without a folder in it.
func packageOf(p string) string {
	parts := strings.SplitN(p, "/", 3)
	if strings.HasPrefix(p, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z_$][\w$]*`) })

// namesIn counts the uses of the names of an import clause, and of the members of a default or a namespace.
func namesIn(text, clause string) map[string]int {
	apis := map[string]int{}
	before, list, braces := strings.Cut(clause, "{")
	if braces {
		for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(list), "}"), ",") {
			if w := word().FindAllString(part, -1); len(w) > 0 {
				if w[0] == "type" && len(w) > 1 {
					w = w[1:]
				}
				apis[w[0]] = max(1, strings.Count(text, w[len(w)-1])-1)
			}
		}
	}
	if w := word().FindAllString(before, -1); len(w) > 0 {
		for name, n := range uses(text, w[len(w)-1], ".") {
			apis[name] += n
		}
	}
	return apis
}

func pythonImports(text string) (out []imported) {
	add := func(module string, at int, apis map[string]int) {
		top, _, _ := strings.Cut(module, ".")
		if top != "" {
			out = append(out, imported{manifests.PyPI, top, lineOf(text, at), apis})
		}
	}
	for _, m := range pyImport().FindAllStringSubmatchIndex(text, -1) {
		if m[2] >= 0 {
			for part := range strings.SplitSeq(text[m[2]:m[3]], ",") {
				if w := strings.Fields(part); len(w) > 0 {
					add(w[0], m[2], uses(text, w[len(w)-1], "."))
				}
			}
			continue
		}
		apis := map[string]int{}
		for part := range strings.SplitSeq(strings.Trim(text[m[6]:m[7]], "() \t"), ",") {
			if w := strings.Fields(part); len(w) > 0 {
				apis[w[0]] = max(1, strings.Count(text, w[len(w)-1])-1)
			}
		}
		if !strings.HasPrefix(text[m[4]:m[5]], ".") {
			add(text[m[4]:m[5]], m[4], apis)
		}
	}
	return out
}

func javaImports(text string) (out []imported) {
	for _, m := range javaImport().FindAllStringSubmatchIndex(text, -1) {
		p := text[m[2]:m[3]]
		out = append(out, imported{manifests.Maven, p, lineOf(text, m[0]), map[string]int{p[strings.LastIndexByte(p, '.')+1:]: 1}})
	}
	return out
}

// pythonNames are the modules of packages that are called otherwise.
var pythonNames = map[string]string{
	"pyyaml": "yaml", "beautifulsoup4": "bs4", "pillow": "PIL", "scikit-learn": "sklearn", "scikit-image": "skimage", "python-dateutil": "dateutil",
	"opencv-python": "cv2", "opencv-python-headless": "cv2", "python-dotenv": "dotenv", "pyjwt": "jwt", "mysqlclient": "MySQLdb", "psycopg2-binary": "psycopg2",
	"attrs": "attr", "protobuf": "google", "grpcio": "grpc", "pycryptodome": "Crypto", "gitpython": "git", "python-multipart": "multipart", "pyzmq": "zmq",
	"msgpack-python": "msgpack", "djangorestframework": "rest_framework", "setuptools": "setuptools", "pyserial": "serial", "discord-py": "discord",
}

// importName is what the code imports for a dependency.
func importName(ecosystem, name string) string {
	switch ecosystem {
	case manifests.PyPI:
		normal := manifests.Normal(ecosystem, name)
		if other, ok := pythonNames[normal]; ok {
			return other
		}
		return strings.ReplaceAll(normal, "-", "_")
	case manifests.Cargo:
		return strings.ReplaceAll(name, "-", "_")
	case manifests.Maven:
		group, _, _ := strings.Cut(name, ":")
		return group
	}
	return name
}

// standard are the modules of the languages themselves, and names that are no packages.
var standard = map[string]map[string]bool{
	manifests.NPM: set(`assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain events fs http http2 https
		inspector module net os path perf_hooks process punycode querystring readline repl stream string_decoder sys timers tls trace_events tty url util v8 vm
		wasi worker_threads zlib bun deno`),
	manifests.PyPI: set(`__future__ __main__ abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 calendar cmath cmd code codecs codeop collections
		colorsys compileall concurrent configparser contextlib contextvars copy copyreg cProfile csv ctypes curses dataclasses datetime dbm decimal difflib dis
		distutils doctest email encodings enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc getopt getpass gettext glob
		graphlib grp gzip hashlib heapq hmac html http imaplib imp importlib inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox
		marshal math mimetypes mmap modulefinder multiprocessing netrc numbers operator optparse os pathlib pdb pickle pickletools pkgutil platform plistlib
		poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc queue quopri random re readline reprlib resource runpy sched secrets select
		selectors shelve shlex shutil signal site smtplib socket socketserver sqlite3 ssl stat statistics string stringprep struct subprocess symtable sys
		sysconfig syslog tarfile tempfile termios textwrap threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle types
		typing unicodedata unittest urllib uuid venv warnings wave weakref webbrowser winreg wsgiref xml xmlrpc zipapp zipfile zipimport zlib zoneinfo _thread`),
}

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

func builtIn(ecosystem, name string) bool {
	return standard[ecosystem][name] || ecosystem == manifests.NPM && strings.Contains(name, ":")
}
