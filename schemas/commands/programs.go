package commands

import (
	"path"
	"slices"
	"strings"
)

// Wildcards of a pattern do not match arguments by which a program runs another one, or writes a file that the argument names:
// such an argument must be in the pattern itself. The tables below know these arguments.

func set(names string) map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		out[name] = true
	}
	return out
}

// starters are programs whose arguments are other commands. No wildcard matches an argument of them.
var starters = set("env xargs sudo doas su runuser pkexec nohup time timeout nice ionice chrt taskset setsid stdbuf script watch " +
	"parallel ssh exec command builtin eval source . trap chroot unshare nsenter setpriv capsh strace ltrace gdb lldb valgrind perf " +
	"busybox toybox flock entr expect systemd-run docker podman kubectl nix nix-shell direnv mise asdf npx pnpx bunx uvx pipx " +
	"vi vim nvim view ex ed emacs nano less more most man pager git-shell rsh rlogin socat nc ncat netcat at batch crontab")

// shells are programs whose -c has a text for a shell.
var shells = set("sh bash dash zsh ash ksh mksh fish csh tcsh rbash")

// interpreters are programs whose first argument that is no option is, or names, a program. No wildcard matches up to it.
var interpreters = set("python python2 python3 node nodejs deno bun ruby perl php lua awk gawk mawk nawk sed tclsh osascript java Rscript " +
	"julia pwsh powershell")

// danger has, by program, the arguments that no wildcard matches. "--name" also means abbreviations of it, and "--name=…"; "-x"
// the option with a value attached; "*x" a letter in any group of short options; "x=" any argument with that text.
var danger = map[string][]string{
	"find":  {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"},
	"fd":    {"*x", "*X", "--exec", "--exec-batch"},
	"rg":    {"--pre", "--hostname-bin"},
	"tree":  {"*o", "*R", "--output"},
	"file":  {"*C", "--compile"},
	"sort":  {"*o", "--output", "--compress-program"},
	"sed":   {"*i", "*e", "*f", "--in-place", "--expression", "--file"},
	"awk":   {"*f", "*i", "*l", "*e", "*E", "--file", "--include", "--load", "--source", "--exec"},
	"diff":  {"*l", "--paginate"},
	"date":  {"*s", "--set"},
	"tar":   {"*I", "*F", "*P", "*C", "--to-command", "--use-compress-program", "--checkpoint-action", "--info-script", "--new-volume-script", "--rsh-command", "--absolute-names", "--directory"},
	"zip":   {"*T", "-TT", "--unzip-command"},
	"rsync": {"*e", "--rsh", "--rsync-path"},
	"curl":  {"*o", "*O", "*K", "*T", "*d", "*F", "--output", "--output-dir", "--remote-name", "--remote-name-all", "--config", "--upload-file", "--data", "--form", "--dump-header", "--cookie-jar", "--trace", "--trace-ascii"},
	"wget":  {"*O", "*P", "*o", "*a", "--output-document", "--directory-prefix", "--output-file", "--use-askpass", "--execute", "*e", "--post-file", "--body-file"},
	"git": {"-c", "-C", "*O", "*x", "--exec", "--exec-path", "--config-env", "--config", "--output", "--output-directory", "--ext-diff",
		"--textconv", "--upload-pack", "--receive-pack", "--open-files-in-pager", "--paginate", "--git-dir", "--work-tree", "--template",
		"--separate-git-dir", "--edit-description", "--extcmd", "--tool", "--gui", "ext::", "alias."},
	"go":     {"-exec", "-toolexec", "-vettool", "-overlay", "-modfile", "-C", "extld", "extar", "-gccgoflags"},
	"npm":    {"*C", "*g", "--prefix", "--global", "--location", "--script-shell", "--node-options", "--userconfig", "--globalconfig", "--registry", "--shell", "--editor", "--viewer", "--git"},
	"pip":    {"*t", "*i", "*f", "--target", "--prefix", "--root", "--src", "--index-url", "--extra-index-url", "--find-links", "--trusted-host", "--proxy", "--python", "--user", "--break-system-packages", "--log"},
	"pytest": {"*p", "*c", "*o", "--rootdir", "--confcutdir", "--override-ini", "--config-file", "--basetemp", "--junitxml", "--junit-xml", "--pdbcls", "--debug", "--log-file"},
	"make":   {"*f", "*C", "*I", "--file", "--makefile", "--directory", "--eval", "--include-dir", "="},
	"cargo":  {"--config", "--manifest-path", "--target-dir", "*C"},
	"chmod":  {"--reference"},
	"jq":     {"*f", "*L", "--from-file"},
}

// sameAs are other names of programs in danger.
var sameAs = map[string]string{"pip3": "pip", "gmake": "make", "gawk": "awk", "mawk": "awk", "nawk": "awk", "gfind": "find", "gsed": "sed",
	"gtar": "tar", "bsdtar": "tar", "fdfind": "fd", "pnpm": "npm", "yarn": "npm"}

func dangers(program string) []string {
	name := path.Base(program)
	if other, ok := sameAs[name]; ok {
		name = other
	}
	return danger[name]
}

// isDangerous reports whether no wildcard may match the argument of a program.
func isDangerous(arg string, list []string) bool {
	return slices.ContainsFunc(list, func(d string) bool { return isOption(arg, d) })
}

func isOption(arg, d string) bool {
	name, _, _ := strings.Cut(arg, "=")
	switch {
	case strings.HasPrefix(d, "--"):
		return len(name) > 2 && strings.HasPrefix(d, name)
	case strings.HasPrefix(d, "*"):
		return len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.Contains(arg, d[1:])
	case strings.HasPrefix(d, "-"):
		return name == d || name == "-"+d
	}
	return strings.Contains(arg, d)
}

// unwrap returns the command that a program only starts, with limits or another priority; nil for other commands.
func unwrap(argv []string) []string {
	rest := argv[1:]
	switch argv[0] {
	case "nohup", "time", "command", "env":
	case "nice":
		if len(rest) > 1 && rest[0] == "-n" && isNumber(rest[1]) {
			rest = rest[2:]
		}
	case "timeout":
		if len(rest) == 0 || !isNumber(strings.TrimRight(rest[0], "smhd")) {
			return nil
		}
		rest = rest[1:]
	default:
		return nil
	}
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") || strings.Contains(rest[0], "=") {
		return nil
	}
	return rest
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789.") == "" }

// shellText returns the text that a shell is to run.
func shellText(argv []string) (string, bool) {
	if len(argv) != 3 || argv[1] != "-c" && argv[1] != "-lc" {
		return "", false
	}
	dir, name := path.Split(argv[0])
	known := dir == "" || dir == "/bin/" || dir == "/usr/bin/"
	return argv[2], known && (name == "sh" || name == "bash" || name == "dash" || name == "zsh")
}
