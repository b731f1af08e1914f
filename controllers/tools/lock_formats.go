package tools

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"reconcile.dev/reconcile/controllers/manifests"
)

// lockedByYarn are the packages of a lock file of yarn, of its first version or of later ones.
func lockedByYarn(text []byte) (out []locked, _ error) {
	var name string
	var fields map[string]string
	add := func() {
		if name != "" && fields["version"] != "" {
			out = append(out, yarnPackage(name, fields))
		}
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] != ' ':
			add()
			name, _, _ = strings.Cut(strings.Trim(line, `":`), ",")
			name, fields = strings.Trim(name, `" `), map[string]string{}
		case name != "" && !strings.HasPrefix(line, "   "):
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			fields[strings.Trim(key, `":`)] = strings.Trim(value, `"`)
		}
	}
	add()
	return out, nil
}

// yarnPackage is the package that satisfies a requirement, such as jest@^29.0.0.
func yarnPackage(required string, fields map[string]string) locked {
	name, wanted := cutVersion(required)
	resolution, modern := fields["resolution"]
	if !modern {
		at, sum, _ := strings.Cut(fields["resolved"], "#")
		p := npmPackage{Version: fields["version"], Resolved: at, Integrity: fields["integrity"]}
		if p.Integrity == "" {
			p.Integrity = sum
		}
		if alias, is := strings.CutPrefix(wanted, "npm:"); is && strings.LastIndexByte(alias, '@') > 0 {
			p.Name, _ = cutVersion(alias)
		}
		return p.locked("node_modules/" + name)
	}
	is, at := cutVersion(resolution)
	l := locked{name: name, version: fields["version"], from: []string{yarnSource(at)}}
	if is != name {
		l.from[0] += " as " + is
	}
	if fields["checksum"] != "" {
		l.sums = map[string]string{"": fields["checksum"]}
	}
	return l
}

// yarnSource is where a package comes from, by its reference, such as npm:29.7.0; versions and commits do not count.
func yarnSource(reference string) string {
	at, options, _ := strings.Cut(reference, "::")
	at, part, _ := strings.Cut(at, "#")
	switch protocol, _, _ := strings.Cut(at, ":"); protocol {
	case "npm":
		values, _ := url.ParseQuery(options)
		return strings.TrimSpace("npm " + origin(values.Get("__archiveUrl")))
	case "patch":
		return "patch " + part
	case "workspace", "link", "portal", "file":
		return inProject("file:" + strings.TrimPrefix(at, protocol+":"))
	}
	return at
}

// cutVersion cuts a name, which may begin with @, from what follows it.
func cutVersion(s string) (name, version string) {
	if s == "" {
		return "", ""
	}
	at := strings.IndexByte(s[1:], '@') + 1
	if at == 0 {
		return s, ""
	}
	return s[:at], s[at+1:]
}

// lockedByPnpm are the packages of a lock file of pnpm, and what its projects have in place of one.
func lockedByPnpm(text []byte) (out []locked, _ error) {
	var file struct {
		Importers map[string]map[string]yaml.Node
		Packages  map[string]struct {
			Resolution struct{ Integrity, Tarball, Repo, Directory string }
		}
		Patched map[string]yaml.Node `yaml:"patchedDependencies"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	for id, p := range file.Packages {
		l := locked{}
		l.name, l.version = pnpmPackage(id)
		switch r := p.Resolution; {
		case r.Repo != "":
			l.from = []string{r.Repo}
		case r.Directory != "":
			l.from = []string{inProject(r.Directory)}
		default:
			l.from = []string{origin(r.Tarball)}
		}
		if p.Resolution.Integrity != "" {
			l.sums = map[string]string{"": p.Resolution.Integrity}
		}
		out = append(out, l)
	}
	for _, sections := range file.Importers {
		for _, key := range []string{"dependencies", "devDependencies", "optionalDependencies"} {
			section := sections[key]
			var all map[string]struct{ Version string }
			if section.Decode(&all) == nil {
				for name, d := range all {
					out = append(out, locked{name: name, from: []string{pnpmSource(d.Version)}})
				}
			}
		}
	}
	for id := range file.Patched {
		name, _ := cutVersion(id)
		out = append(out, locked{name: name, from: []string{"patch"}})
	}
	return out, nil
}

// pnpmPackage is the name and the version in an id: name@version(peers), in older versions /name/version_peers.
func pnpmPackage(id string) (name, version string) {
	id, _, _ = strings.Cut(strings.TrimPrefix(id, "/"), "(")
	scope := ""
	if at := strings.IndexByte(id, '/'); at > 0 && id[0] == '@' {
		scope, id = id[:at+1], id[at+1:]
	}
	at := strings.IndexAny(id, "@/")
	if at < 0 {
		return scope + id, ""
	}
	if name, version = scope+id[:at], id[at+1:]; id[at] == '/' {
		version, _, _ = strings.Cut(version, "_")
	}
	return name, version
}

// pnpmSource is what a project has in place of a package, by the version in its dependencies; "" for the package itself.
func pnpmSource(version string) string {
	version, _, _ = strings.Cut(version, "(")
	if folder, is := strings.CutPrefix(version, "link:"); is {
		return inProject(folder)
	}
	name, other := pnpmPackage(version)
	if other == "" {
		return ""
	}
	return "as " + name
}

// lockedByComposer are the packages of a composer.lock. A version that is a branch has another commit at each update.
func lockedByComposer(text []byte) (out []locked, _ error) {
	type place struct{ Type, URL, Reference, Shasum string }
	type entry struct {
		Name, Version string
		Source, Dist  place
	}
	var file struct {
		Packages []entry
		Dev      []entry `json:"packages-dev"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	for _, p := range append(file.Packages, file.Dev...) {
		l := locked{name: p.Name, version: p.Version, sums: map[string]string{}}
		if p.Source.URL != "" {
			l.from = append(l.from, p.Source.Type+" "+inProject(p.Source.URL))
		}
		if at, _, isArchive := strings.Cut(p.Dist.URL, "/zipball/"); isArchive {
			l.from = append(l.from, at)
		} else if at := origin(p.Dist.URL); at != "" {
			l.from = append(l.from, at)
		} else if p.Dist.URL != "" {
			l.from = append(l.from, p.Dist.Type+" "+inProject(p.Dist.URL))
		}
		isBranch := strings.HasPrefix(p.Version, "dev-") || strings.HasSuffix(p.Version, "-dev")
		for kind, sum := range map[string]string{"source": p.Source.Reference, "dist": p.Dist.Reference + p.Dist.Shasum} {
			if sum != "" && !isBranch {
				l.sums[kind] = sum
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// lockedGem is a gem in a Gemfile.lock: how far it is to the right, its name, its version, and its checksum.
var lockedGem = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^( +)([^ ]+) \(([^)]+)\)(?: (\S+))?$`) })

// lockedByBundler are the gems of a Gemfile.lock, in sections by where they come from. Its checksums are in a section of their own.
func lockedByBundler(text []byte) (out []locked, _ error) {
	section, at := "", map[string]int{}
	var remotes []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		remote, isRemote := strings.CutPrefix(line, "  remote: ")
		gem := lockedGem().FindStringSubmatch(line)
		switch {
		case line != "" && line[0] != ' ':
			section, remotes = line, nil
		case isRemote:
			remotes = append(remotes, section+" "+inProject(strings.TrimSuffix(remote, "/")))
		case gem == nil:
		case section == "CHECKSUMS":
			if i, known := at[gem[2]+" "+gem[3]]; known && gem[4] != "" {
				out[i].sums = map[string]string{"": gem[4]}
			}
		case len(gem[1]) == 4 && len(remotes) > 0:
			at[gem[2]+" "+gem[3]] = len(out)
			out = append(out, locked{name: gem[2], version: gem[3], from: remotes})
		}
	}
	return out, nil
}

// lockedByPipenv are the packages of a Pipfile.lock.
func lockedByPipenv(text []byte) (out []locked, _ error) {
	type entry struct {
		Version, Index, Git, Path, File string
		Hashes                          []string
	}
	var file struct {
		Default, Develop map[string]entry
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	for _, group := range []map[string]entry{file.Default, file.Develop} {
		for name, p := range group {
			l := locked{name: name, version: strings.TrimPrefix(p.Version, "=="), sums: map[string]string{}}
			l.from = []string{strings.TrimSpace(p.Index + " " + p.Git + " " + inProject(p.Path) + " " + origin(p.File))}
			for _, sum := range p.Hashes {
				l.sums[sum] = sum
			}
			out = append(out, l)
		}
	}
	return out, nil
}

// lockedByBun are the packages of a bun.lock, by the path of names that leads to them. It is JSON with commas before brackets, which YAML has, too.
func lockedByBun(text []byte) (out []locked, _ error) {
	var file struct {
		Packages map[string][]yaml.Node
		Patches  map[string]yaml.Node `yaml:"patchedDependencies"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	for at, parts := range file.Packages {
		if len(parts) == 0 {
			continue
		}
		is, version := cutVersion(parts[0].Value)
		l := locked{name: at, version: version, from: []string{bunSource(version, parts[1:])}}
		if at != is && !strings.HasSuffix(at, "/"+is) {
			l.from[0] += " as " + is
		}
		if sum := parts[len(parts)-1].Value; strings.HasPrefix(sum, "sha") {
			l.sums = map[string]string{"": sum}
		}
		out = append(out, l)
	}
	for id := range file.Patches {
		name, _ := cutVersion(id)
		out = append(out, locked{name: name, from: []string{"patch"}})
	}
	return out, nil
}

// bunSource is where a package comes from: of a version of a registry, the server that follows it, and else the repository, archive or folder.
func bunSource(version string, more []yaml.Node) string {
	if exactVersion().MatchString(version) {
		server := ""
		if len(more) > 0 {
			server = origin(more[0].Value)
		}
		return strings.TrimSpace("npm " + server)
	}
	at, _, _ := strings.Cut(version, "#")
	for _, protocol := range []string{"workspace:", "link:", "file:", "root:"} {
		if folder, is := strings.CutPrefix(at, protocol); is {
			return inProject("file:" + folder)
		}
	}
	return inProject(at)
}

// lockedByNuGet are the packages of a packages.lock.json, by framework. It does not say from which server they come.
func lockedByNuGet(text []byte) (out []locked, _ error) {
	var file struct {
		Dependencies map[string]map[string]struct{ Type, Resolved, ContentHash string }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	for framework, all := range file.Dependencies {
		for name, p := range all {
			l := locked{name: name, version: strings.TrimSpace(p.Resolved + " for " + framework), from: []string{"a server"}}
			if strings.EqualFold(p.Type, "Project") {
				l.from = []string{"the project"}
			}
			if p.ContentHash != "" {
				l.sums = map[string]string{"": p.ContentHash}
			}
			out = append(out, l)
		}
	}
	return out, nil
}

// pinned is a requirement of pip: its name, and its version or address.
var pinned = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:==+\s*([^\s;,]+)|@\s*(\S+))?`)
})

// lockedByPip are the packages of a file of requirements with checksums, as pip-compile writes it. Options say for all
// packages where they come from.
func lockedByPip(text []byte) (out []locked, _ error) {
	var servers []string
	for line := range strings.Lines(strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\\\n", " ")) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		words := strings.Fields(strings.ReplaceAll(line, "=http", " http"))
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		switch words[0] {
		case "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--no-index":
			servers = append(servers, inProject(words[len(words)-1]))
			continue
		case "-e", "--editable":
			words = words[1:]
		}
		l := locked{name: strings.Join(words, " "), sums: map[string]string{}}
		if m := pinned().FindStringSubmatch(strings.Join(words, " ")); m != nil && (m[2] != "" || m[3] != "" || !strings.ContainsAny(words[0], "/:")) {
			l.name, l.version = manifests.Normal(manifests.PyPI, m[1]), m[2]
			if m[3] != "" {
				l.from = []string{cutCommit(m[3])}
			}
		} else if len(words) > 0 && words[0][0] != '-' {
			l.name, l.from = cutCommit(words[0]), []string{inProject(cutCommit(words[0]))}
		} else {
			continue
		}
		for _, w := range words {
			if hash, is := strings.CutPrefix(w, "--hash="); is {
				l.sums[hash] = hash
			}
		}
		out = append(out, l)
	}
	slices.Sort(servers)
	for i := range out {
		if out[i].from == nil {
			out[i].from = []string{"pip " + strings.Join(slices.Compact(servers), " ")}
		}
	}
	return out, nil
}

// cutCommit is an address without the commit and the options at its end.
func cutCommit(address string) string {
	address, _, _ = strings.Cut(address, "#")
	if at := strings.LastIndexByte(address, '@'); strings.HasPrefix(address, "git+") && at > strings.LastIndexByte(address, '/') {
		return address[:at]
	}
	return address
}
