package tools

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that let a change pass because less is looked at.
var faults = []mutants.Mutant{
	{"nothing looks at what used a removed file", "removals.go", "if len(gone) == 0 || !t.Role.joins() {", "if true {", "TestRemovals"},
	{"a linter of files judges what used a removed one", "removals.go", "(r.ByPackage() || !r.Named())", "true", "TestRemovals"},
	{"packages that import a removed file are passed over", "removals.go", "folders[checks.Folder(f)] == \"\" && !slices.Contains(j.Asked, f)", "!slices.Contains(j.Asked, f)", "TestRemovals"},
	{"a package that is gone has no users", "removals.go", "return !hasFolder(left, checks.Folder(f))", "return false", "TestRemovals"},
	{"a tool of another folder is replaced", "discover.go", " && o.Folder == t.Folder", "", "TestDiscover"},
	{"a folder without its manifest is output", "outputs.go", "if pattern != \"\" {", "if false {", "TestOutputs"},
	{"a folder hides others that begin so", "outputs.go", "\"/\"+folder+\"/\"", "folder+\"/\"", "TestOutputs"},
	{"a manifest may declare another package", "declared.go", "out[name] = \"as \" + real", "out[name] = \"as\"[:0] + real[:0]", "TestDoubts"},
	{"a folder outside of the project is in it", "declared.go", "path.IsAbs(source) || folder == \"..\" || ", "", "TestDoubts"},
	{"a requirement may be an archive", "declared.go", "m != nil && m[3] != \"\"", "m != nil && false", "TestDoubts"},
	{"code may hide behind a link", "doubts.go", "isLink(f, to) && (err", "false && (err", "TestDoubts"},
	{"a link may lead elsewhere than before", "doubts.go", "f.Status != preview.Removed && strings.Contains(head", "false && strings.Contains(head", "TestDoubts"},
	{"a link may lead out of the repository", "doubts.go", "strings.HasPrefix(at, \"../\") || LanguageOf", "LanguageOf", "TestDoubts"},
	{"a binary lock file may change", "doubts.go", "slices.Contains(binaryLocks, path.Base(before)) && ", "false && ", "TestDoubts"},
	{"an assertion of a constant counts", "assertions.go", "n > 0 && !isConstant(trimmed)", "n > 0", "TestDoubts"},
	{"an assertion that is commented out counts", "assertions.go", "case strings.HasPrefix(trimmed, comment), trimmed == \"\":", "case trimmed == \"\":", "TestDoubts"},
	{"fewer assertions raise no doubt", "assertions.go", "if fewer <= 0 || ", "if true || ", "TestDoubts"},
	{"what tests share may assert less", "assertions.go", "!there && test != \"\"", "(there || !there) && test == \"\"", "TestDoubts"},
	{"a section may be taken out", "sections.go", "if _, there := is[part]; !there {", "if false {", "TestDoubts"},
	{"a new section raises no doubt", "sections.go", "(known || len(before) > 0 || strings.HasPrefix(part, \"its section \"))", "known", "TestDoubts"},
	{"commands of CI may change", "doubts.go", "isCI(before) && ", "false && ", "TestDoubts"},
	{"a failure may be ignored", "doubts.go", "disarmed().MatchString(line)", "false", "TestDoubts"},
	{"what nobody could read raises no doubt", "doubts.go", "case err != nil:", "case err != nil && false:", "TestDoubts"},
	{"a version may have other content", "locks.go", "if there && now != sum {", "if there && now != sum && false {", "TestDoubts"},
	{"a checksum may be taken out", "locks.go", "return len(was) > 0 && same == 0", "return false", "TestDoubts"},
	{"what is published later raises a doubt", "locks.go", "return len(was) > 0 && same == 0", "return len(was) > 0 && len(was) != len(is)", "TestDoubts"},
	{"a dependency may come from anywhere", "locks.go", "return !slices.Contains(known, from)", "return !slices.Contains(known, from) && false", "TestDoubts"},
	{"a new dependency may come from anywhere", "locks.go", "if !isKnown {\n\t\t\tknown = all\n", "if !isKnown {\n\t\t\tcontinue\n", "TestDoubts"},
	{"another package may be in its place", "locks.go", "!strings.HasSuffix(at, \"/\"+name)", "false", "TestDoubts"},
	{"another package of bun may be in its place", "lock_formats.go", "at != is && !strings.HasSuffix(at, \"/\"+is)", "false", "TestDoubts"},
	{"a package of bun may come from anywhere", "lock_formats.go", "server = origin(more[0].Value)", "server = more[0].Value[:0]", "TestDoubts"},
	{"a package of NuGet may be a project", "lock_formats.go", "strings.EqualFold(p.Type, \"Project\")", "false", "TestDoubts"},
	{"checksums may be taken out of requirements", "lock_formats.go", "l.sums[hash] = hash", "_ = hash", "TestDoubts"},
	{"pip may ask another server", "lock_formats.go", "servers = append(servers, inProject(words[len(words)-1]))", "servers = servers[:0]", "TestDoubts"},
	{"a package of yarn may be patched", "lock_formats.go", "return \"patch \" + part", "return \"npm\" + part[:0]", "TestDoubts"},
	{"another package of yarn may be in its place", "lock_formats.go", "if is != name {", "if false {", "TestDoubts"},
	{"another package of pnpm may be in its place", "lock_formats.go", "if other == \"\" {", "if other == \"\" || true {", "TestDoubts"},
	{"a package of pnpm may be patched", "lock_formats.go", "range file.Patched", "range map[string]yaml.Node{}", "TestDoubts"},
	{"a package of composer may have another commit", "lock_formats.go", "if sum != \"\" && !isBranch {", "if false && !isBranch {", "TestDoubts"},
	{"a new commit of a branch raises a doubt", "lock_formats.go", "if sum != \"\" && !isBranch {", "if sum != \"\" && !(false && isBranch) {", "TestDoubts"},
	{"a gem may have other content", "lock_formats.go", "known && gem[4] != \"\"", "known && false", "TestDoubts"},
	{"a member of a workspace is checked by itself", "discover.go", "t.Workspace && d.inWorkspace(folder)", "t.Workspace && false", "TestDiscover"},
	{"what is in no workspace is left to it", "workspaces.go", "return !slices.ContainsFunc(root.Workspace.Exclude", "return true || !slices.ContainsFunc(root.Workspace.Exclude", "TestDiscover"},
	{"a tool for packages runs outside of all modules", "discover.go", "r.ByPackage() && len(modules) > 0", "false", "TestDiscover"},
	{"scripts without an extension are passed over", "jobs.go", " || slices.Contains(t.Scripts, file)", "", "TestJobsOfScripts"},
	{"a test may hide another", "weakened.go", "+ name; seen[key] {", "+ name; seen[key] && false {", "TestDoubtsOfWhatRuns"},
	{"a stand-in may be tested", "doubts.go", "isSetup(f.Path)) && standIn()", "isSetup(f.Path)) && false && standIn()", "TestDoubtsOfWhatRuns"},
	{"a copy of a library may change", "doubts.go", "case isCopy(p):", "case false:", "TestDoubtsOfWhatRuns"},
	{"what a script runs may change", "doubts.go", "f.Status != preview.Added && ranBy[p] != \"\"", "false", "TestDoubtsOfWhatRuns"},
	{"new tests may assert nothing", "assertions.go", "case len(asserts) > 0 || ", "case len(asserts) >= 0 || ", "TestDoubtsOfWhatRuns"},
	{"a test may expect something else", "assertions.go", "if n := otherwise(before, after); n > 0 {", "if n := otherwise(before, after); n < 0 {", "TestDoubts"},
	{"a variable of a target may change", "sections.go", "value != \"\" && !used[m[1]]", "false && !used[m[1]]", "TestDoubtsOfWhatRuns"},
	{"what a target calls may change", "sections.go", "range makes().FindAllStringSubmatch(commands, -1)", "range makes().FindAllStringSubmatch(commands[:0], -1)", "TestDoubtsOfWhatRuns"},
	{"a build may lose tests", "doubts.go", "if built && runsMore()", "if false && runsMore()", "TestDoubtsOfWhatRuns"},
	{"a link may get another name", "doubts.go", "f.Status == preview.Renamed && !hunks", "false && !hunks", "TestDoubtsOfRenamedLinks"},
	{"a new commit of a repository raises a doubt", "locks.go", "s, _, _ = strings.Cut(s, \"#\")\n", "", "TestDoubts"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
